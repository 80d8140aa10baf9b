// Package export writes runs in formats that other programs open: a trace for Perfetto, an event file for TensorBoard,
// and Feather files (Arrow) with every event.
package export

import (
	"errors"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/schemas"
)

// Tables are the tables of a run that [Of] needs.
const Tables = timeline.CategoryTables | schemas.WantTimes | schemas.WantClock | schemas.WantReserved |
	schemas.WantSamples | timeline.MarksTables

// A Run has what an export contains of one run.
type Run struct {
	identity.Identity
	Devices []Device
	Samples []schemas.Sample // samples of all GPUs that NVML read
}

// A Device is one device of one rank.
type Device struct {
	Device string // name of the device, such as cuda:0
	Rank   int32
	// Timeline has a point for each event, and is nil for a device without allocator events.
	Timeline *timeline.DeviceTimeline
	TimeNS   []int64        // when event i+1 happened, in Unix time; empty if unknown
	Reserved []memory.Level // reserved bytes after each event that changed them
	Steps    []schemas.Step
	Phases   []schemas.Phase
	Failed   []schemas.OOM
	Marks    []timeline.Mark // moments that the script marked
}

// Of splits a run's tables by device. A run without allocator events has only its steps and phases.
func Of(in schemas.Tables) (Run, error) {
	all, err := timeline.CategoryTimeline(in, timeline.EventRange{}, 0)
	if none := (*memory.NoEventsError)(nil); err != nil && !errors.As(err, &none) {
		return Run{}, err
	}
	marked, err := timeline.Marks(in)
	if none := (*memory.NoEventsError)(nil); err != nil && !errors.As(err, &none) {
		return Run{}, err
	}
	run := Run{Identity: all.Identity, Samples: in.Samples}
	for _, p := range identity.Places(&in) {
		d := Device{Device: p.String(), Rank: p.Rank, Reserved: memory.ReservedSteps(&in, p)}
		for i := range all.Devices {
			if t := &all.Devices[i]; t.Device == d.Device && t.Rank == d.Rank {
				d.Timeline = t
			}
		}
		for i := range in.Clocks {
			if c := &in.Clocks[i]; c.Rank == p.Rank && c.Device == p.Device {
				d.TimeNS = c.TimeNS
			}
		}
		for i := range in.Steps {
			if s := &in.Steps[i]; s.Rank == p.Rank && s.Device == p.Device {
				d.Steps = append(d.Steps, *s)
			}
		}
		for i := range in.Phases {
			if f := &in.Phases[i]; f.Rank == p.Rank && f.Device == p.Device {
				d.Phases = append(d.Phases, *f)
			}
		}
		if in.Report != nil {
			for i := range in.Report.OOMs {
				if o := &in.Report.OOMs[i]; o.Rank == p.Rank && o.Device == p.Device {
					d.Failed = append(d.Failed, *o)
				}
			}
		}
		for i := range marked.Marks {
			if m := &marked.Marks[i]; m.Rank == p.Rank && m.Device == d.Device {
				d.Marks = append(d.Marks, *m)
			}
		}
		run.Devices = append(run.Devices, d)
	}
	return run, nil
}

// timeOf returns when an event happened, in ns of Unix time. Event 0 is the state before the first event. Without a
// clock, events are a microsecond apart.
func (d *Device) timeOf(event int64) int64 {
	if len(d.TimeNS) == 0 {
		return event * 1000
	}
	return d.TimeNS[min(max(event-1, 0), int64(len(d.TimeNS))-1)]
}

// title returns a name that distinguishes a device from the run's other devices.
func (r *Run) title(d *Device) string {
	for i := range r.Devices {
		if r.Devices[i].Rank != r.Devices[0].Rank {
			return "rank" + number(int64(d.Rank)) + "-" + d.Device
		}
	}
	return d.Device
}
