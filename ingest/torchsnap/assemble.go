package torchsnap

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/ingest/pickle"
	"github.com/dpsight/dpsight/schemas"
)

// maxDevices is the largest number of traces in a snapshot, since a hostile list can contain the same trace a million
// times.
const maxDevices = 1024

// snapshot makes the Snapshot from the pickle's value, with the rows to which that value leads.
func (b *builder) snapshot(v pickle.Value) (*Snapshot, error) {
	s := &Snapshot{Stacks: b.stacks, Protocol: b.d.Protocol(), Settings: Settings{MaxSplitSize: -1}}
	slices.SortStableFunc(b.events.internal, func(x, y internalRow) int { return x.row - y.row })
	if err := b.broken(v); err != nil {
		return nil, err
	}
	var r root
	switch {
	case isList(v): // the oldest format: the snapshot is a list of segments
		r.segments = v
	case v.Ref().Tag == tagSnapshot:
		r = b.roots[v.Ref().ID]
	case v.Kind() == pickle.Dict:
		return nil, fmt.Errorf("%w: a dict without %q and %q", ErrNotSnapshot, words[kSegments], words[kDeviceTraces])
	default:
		return nil, fmt.Errorf("%w: %s", ErrNotSnapshot, describe(v))
	}
	if r.traces.Kind() != 0 {
		if err := b.devices(s, r.traces); err != nil {
			return nil, err
		}
	}
	if r.segments.Kind() != 0 {
		var err error
		if s.Segments, err = b.resolve(r.segments); err != nil {
			if len(s.Devices) == 0 {
				return nil, err
			}
			b.passOver(fmt.Errorf("the list of segments is passed over: %w", err))
			s.Segments = nil
		}
	}
	s.Settings = b.settings(r.settings)
	s.Annotations = b.annotations(r.annotations)
	s.Metadata = b.events.texts
	s.TraceKeys = b.traceKeys()
	s.Odd = b.odd.list()
	return s, nil
}

func (b *builder) devices(s *Snapshot, v pickle.Value) error {
	if !isList(v) {
		return b.wrong(whatSnapshot, kDeviceTraces, "a list of traces", v)
	}
	items := b.items(v)
	if len(items) > maxDevices {
		return fmt.Errorf("%d devices, more than %d", len(items), maxDevices)
	}
	s.Devices = make([]schemas.EventColumns, len(items))
	s.MetadataID = make([][]uint32, len(items))
	s.Unread = make([]int64, len(items))
	for device, item := range items {
		if item.Kind() == pickle.List && item.Ref().Tag == 0 {
			continue // a device without events
		}
		if item.Ref().Tag != tagTrace {
			if err := b.broken(item); err != nil {
				return fmt.Errorf("device %d: %w", device, err)
			}
			return fmt.Errorf("the trace of device %d is %s, want a list of trace events", device, describe(item))
		}
		t := &b.traces[item.Ref().ID]
		d := b.columns(t)
		s.Devices[device], s.MetadataID[device], s.Unread[device] = d.cols, d.meta, t.unread
		for _, e := range d.internal {
			e.Device = device
			s.Internal = append(s.Internal, e)
		}
	}
	return nil
}
