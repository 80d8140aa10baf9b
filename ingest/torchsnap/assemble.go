package torchsnap

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/ingest/pickle"
	"github.com/dpsight/dpsight/schemas"
)

// maxDevices bounds the traces of one snapshot: a hostile list can name one trace a million times.
const maxDevices = 1024

// snapshot follows the value of the pickle to the rows that count.
func (b *builder) snapshot(v pickle.Value) (*Snapshot, error) {
	s := &Snapshot{Stacks: b.stacks, Protocol: b.d.Protocol(), Settings: Settings{MaxSplitSize: -1}}
	slices.SortStableFunc(b.events.internal, func(x, y internalRow) int { return x.row - y.row })
	if err := b.broken(v); err != nil {
		return nil, err
	}
	var r root
	switch {
	case isList(v): // the oldest era: nothing but segments
		r.segments = v
	case v.Ref().Tag == tagSnapshot:
		r = b.roots[v.Ref().ID]
	case v.Kind() == pickle.Dict:
		return nil, fmt.Errorf("%w: a dict without %q and %q", ErrNotSnapshot, words[kSegments], words[kDeviceTraces])
	default:
		return nil, fmt.Errorf("%w: %s", ErrNotSnapshot, describe(v))
	}
	var err error
	if r.segments.Kind() != 0 {
		if s.Segments, err = b.resolve(r.segments); err != nil {
			return nil, err
		}
	}
	if r.traces.Kind() != 0 {
		if err = b.devices(s, r.traces); err != nil {
			return nil, err
		}
	}
	if s.Settings, err = b.settings(r.settings); err != nil {
		return nil, err
	}
	if s.Annotations, err = b.annotations(r.annotations); err != nil {
		return nil, err
	}
	s.Metadata = b.events.texts
	s.TraceKeys = b.traceKeys()
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
		d, err := b.columns(&b.traces[item.Ref().ID])
		if err != nil {
			return fmt.Errorf("device %d: %w", device, err)
		}
		s.Devices[device], s.MetadataID[device] = d.cols, d.meta
		for _, e := range d.internal {
			e.Device = device
			s.Internal = append(s.Internal, e)
		}
	}
	return nil
}
