package blocks

import (
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// Tables lists the tables that [Of] needs.
const Tables = grouping.Tables | schemas.WantEvents | schemas.WantReserved | schemas.WantClock | schemas.WantSamples |
	schemas.WantHost

// A Device is one device's blocks with their context. A Device's columns have a row for each piece: a stretch of a
// block's life in which it counts under one category, with one owner. Nearly all blocks are one piece. The pieces of a
// block follow each other, and blocks are in the order of their allocation.
type Device struct {
	Device string
	Rank   int32
	Events int64 // number of the device's events
	// From and To are the first and the last event at which all live blocks are listed. Event 0 stands for the state
	// before the first event.
	From, To int64
	// Each index of these columns is one piece. Kind and Address are indexes in Kinds and Addresses. A piece counts
	// just after each event from Begin on and before End. An End of 0 means that the piece is not known to end.
	Kind, Begin, End, Address []uint32
	// Next is 1 if the piece belongs to the same block as the piece in the row before.
	Next      []uint8
	Kinds     []Kind
	Addresses []uint64
	// Texts holds the names that Kinds refers to by index. The first text of Texts is empty and stands for an unknown
	// name.
	Texts    []string
	Sources  map[string]string // the text of each line whose file is available, by the line's name
	Phases   []schemas.Phase   // phases with events, in the order of the events
	Steps    []schemas.Step
	Reserved []memory.Level // see [memory.ReservedSteps]
	Segments []SegmentChange
	// TimeNS[i] is when event i+1 happened, see [schemas.EventClock]; empty if unknown.
	TimeNS  []int64
	Samples []schemas.Sample     // samples of the device's GPU, if the GPU is known
	Host    []schemas.HostSample // host memory of the run's processes
	Marks   []schemas.UserMark
	Failed  []Failure
}

// A Kind holds the properties that several pieces can share, so that they are stored once.
type Kind struct {
	Requested, Slack int64 // bytes
	// Category is an index in [schemas.Categories]. Category is the category of the Requested bytes only; Slack is a
	// category of its own.
	Category                        int
	Evidence                        schemas.Evidence
	Module, Name, Line, Phase, Role int // indexes of texts in the device's list
	// Holder tells who kept the block at the last search for holders; empty if there was no search.
	Holder int
}

// A SegmentChange is an event that changes which segments are reserved. A gap has [schemas.ActionGap], no address and
// no bytes. After a gap, only the segments in the following changes with the same event are reserved.
type SegmentChange struct {
	Event  int64
	Action schemas.Action
	Addr   uint64
	Bytes  int64
}

// A Failure is a request that failed because memory was short, just after an event.
type Failure struct {
	Event, Bytes int64
}

// Of lists the blocks of each device. A run without allocator events gives a [*memory.NoEventsError].
func Of(in *schemas.Tables) ([]Device, error) {
	if err := memory.NoEvents(in); err != nil {
		return nil, err
	}
	var out []Device
	for _, p := range identity.Places(in) {
		l := memory.NewLedger(in, p)
		if l.Len() > 0 {
			out = append(out, deviceOf(in, p, l))
		}
	}
	return out, nil
}

// Within lists the blocks of one device that are live at some event between from and to. The tables passed in then
// contain only these blocks.
func Within(in *schemas.Tables, p identity.Place, from, to int64) Device {
	d := deviceOf(in, p, memory.NewLedger(in, p))
	d.From, d.To = max(from, 0), min(to, d.Events)
	return d
}

func deviceOf(in *schemas.Tables, p identity.Place, l *memory.Ledger) Device {
	d := Device{Device: p.String(), Rank: p.Rank, Reserved: memory.ReservedSteps(in, p), Sources: map[string]string{}}
	if v := identity.Verdict(in, p); v != nil {
		d.Events = v.Events
	}
	if c := l.Changes(); len(c) > 0 {
		d.Events = max(d.Events, c[len(c)-1].Seq())
	}
	d.To = d.Events
	newLister(in, p, &d).list(l)
	for i := range in.Phases {
		if f := &in.Phases[i]; f.Rank == p.Rank && f.Device == p.Device {
			d.Phases = append(d.Phases, *f)
		}
	}
	for i := range in.Steps {
		if s := &in.Steps[i]; s.Rank == p.Rank && s.Device == p.Device {
			d.Steps = append(d.Steps, *s)
		}
	}
	for i := range in.Clocks {
		if c := &in.Clocks[i]; c.Rank == p.Rank && c.Device == p.Device {
			d.TimeNS = c.TimeNS
		}
	}
	d.Segments = segmentChanges(in, p)
	d.Samples, d.Host = samplesOf(in), in.Host
	for i := range in.UserMarks {
		if m := &in.UserMarks[i]; m.Rank == p.Rank && m.Device == p.Device {
			d.Marks = append(d.Marks, *m)
		}
	}
	if in.Report != nil {
		for i := range in.Report.OOMs {
			if o := &in.Report.OOMs[i]; o.Rank == p.Rank && o.Device == p.Device {
				d.Failed = append(d.Failed, Failure{o.Seq, o.RequestedBytes})
			}
		}
	}
	return d
}

// samplesOf returns the samples of a run that has one GPU. If there are several GPUs, package ladder decides which
// one a sample belongs to.
func samplesOf(in *schemas.Tables) []schemas.Sample {
	for i := range in.Samples {
		if in.Samples[i].Device != in.Samples[0].Device {
			return nil
		}
	}
	return in.Samples
}

func segmentChanges(in *schemas.Tables, p identity.Place) (out []SegmentChange) {
	for i := range in.Events {
		e := &in.Events[i]
		if e.Rank != p.Rank || e.Device != p.Device {
			continue
		}
		action := schemas.Action(e.Action)
		if action != schemas.ActionGap {
			out = append(out, SegmentChange{e.Seq, action, e.Addr, e.Size})
			continue
		}
		out = append(out, SegmentChange{Event: e.Seq, Action: action})
		for k := range in.Segments {
			s := &in.Segments[k]
			// The table has one row for each block of a segment. Only the first block starts at the segment's start.
			if s.Rank != p.Rank || s.Device != p.Device || s.Seq != e.Seq || s.Address != s.SegmentAddress {
				continue
			}
			action := schemas.ActionSegmentAlloc
			if s.Expandable {
				action = schemas.ActionSegmentMap
			}
			out = append(out, SegmentChange{e.Seq, action, s.SegmentAddress, s.SegmentBytes})
		}
	}
	return out
}

// Within keeps the blocks that are live at any event of a range, and records the range in From and To. Segments, phases
// and all other columns stay complete.
func (d *Device) Within(from, to int64) Device {
	out := *d
	out.From, out.To = max(from, 0), min(to, d.Events)
	out.Kind, out.Begin, out.End, out.Address, out.Next = nil, nil, nil, nil, nil
	for i := 0; i < len(d.Kind); {
		k := i + 1
		for k < len(d.Kind) && d.Next[k] != 0 {
			k++
		}
		if end := int64(d.End[k-1]); int64(d.Begin[i]) <= out.To && (end == 0 || end > out.From) {
			out.Kind = append(out.Kind, d.Kind[i:k]...)
			out.Begin = append(out.Begin, d.Begin[i:k]...)
			out.End = append(out.End, d.End[i:k]...)
			out.Address = append(out.Address, d.Address[i:k]...)
			out.Next = append(out.Next, d.Next[i:k]...)
		}
		i = k
	}
	return out
}
