package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// failures gives a finding for each allocation that failed.
func (in *Input) failures() []Finding {
	if in.Report == nil {
		return nil
	}
	var out []Finding
	ledgers := in.newLedgers()
	for i := range in.Report.OOMs {
		o := &in.Report.OOMs[i]
		p := place{o.Rank, o.Device}
		from := fmt.Sprintf("ingest.json: ooms[%d]", i)
		f := Finding{ID: FindingOOM, Device: new(p.String()), Rank: new(o.Rank), fatal: o.Fatal}
		f.of(o.RequestedBytes, o.LimitBytes, OfLimit)
		f.bytes("requested", o.RequestedBytes, from)
		f.bytes("limit of the process", o.LimitBytes, from)
		f.bytes("free on the device", o.DeviceFreeBytes, from)
		at := in.failureMoment(p, i)
		by := ""
		if o.Module != "" {
			by = " by module " + o.Module
		}
		ended := "and the script went on"
		if o.Fatal {
			ended = "and the run died of it"
		}
		f.Sentence = fmt.Sprintf("A request for %s%s failed %s, %s", mib(o.RequestedBytes), by, when(&at), ended)
		if o.Seq == 0 { // the process died before its last drain
			f.Sentence += "; the events around it are not in the journal."
			out = append(out, f)
			continue
		}
		f.At = &at
		d := in.breakdownAt(p, ledgers.of(p), at, -1)
		lay := in.layoutAt(p, ledgers.of(p), o.Seq)
		f.holders(&d, o, lay)
		out = append(out, f)
	}
	return out
}

// failureMoment is when the i-th failure of the report happened.
func (in *Input) failureMoment(p place, i int) Moment {
	o := &in.Report.OOMs[i]
	m := in.momentOf(p, o.Seq)
	if o.Phase != "" { // by the mark, which is set before the request's last event
		m.Step, m.Phase = nil, new(o.Phase)
		if o.Step >= 0 {
			m.Step = new(o.Step)
		}
	}
	return m
}

// holders says what was in the request's way.
func (f *Finding) holders(d *DeviceBreakdown, o *schemas.OOM, lay *layout) {
	held := slices.Clone(d.Categories)
	slices.SortStableFunc(held, func(a, b CategoryBytes) int { return cmp.Compare(b.Bytes, a.Bytes) })
	const most = 4
	var names []string
	var rest int64
	for i, c := range held {
		if c.Bytes == 0 {
			continue
		}
		f.bytes("held as "+c.Category, c.Bytes, fmt.Sprintf("owners.parquet and allocations.parquet: category %s after event %d", c.Category, d.At.Event))
		if i < most {
			names = append(names, mib(c.Bytes)+" of "+words(c.Category))
		} else {
			rest += c.Bytes
		}
	}
	if rest > 0 {
		names = append(names, mib(rest)+" of others")
	}
	f.bytes("allocated", d.AllocatedBytes, fmt.Sprintf("allocations.parquet: block_bytes live after event %d", d.At.Event))
	f.Sentence += fmt.Sprintf(". Of the %s that the process may take, %s were allocated", mib(o.LimitBytes), mib(d.AllocatedBytes))
	if len(names) > 0 {
		f.Sentence += " (" + joinWords(names) + ")"
	}
	f.Change = "hold less at that moment: what holds most is named; dpsight analyze breakdown --at oom --by category,module says where"
	if lay == nil {
		f.Sentence += "."
		return
	}
	from := fmt.Sprintf("events.parquet: segments after event %d, less the blocks in them", d.At.Event)
	f.bytes("reserved", lay.reserved, from)
	f.bytes("cached and free", lay.free(), from)
	f.bytes("largest free piece", lay.largest, from)
	f.Sentence += fmt.Sprintf(", and %s were cached and free, the largest piece of them %s.", mib(lay.free()), mib(lay.largest))
	if lay.free() >= o.RequestedBytes {
		f.Sentence += " The cache had as many bytes as were asked for, but not in one piece."
		f.Change = expandable + "; " + f.Change
	}
	// What is left is by the process's own limit, where it has set one, or what others and the context leave of the device.
	if short := o.RequestedBytes - min(o.LimitBytes-lay.reserved, o.DeviceFreeBytes); short > 0 {
		f.bytes("short of", short, "requested less what is free on the device, or below the limit")
		f.Sentence += fmt.Sprintf(" With %s less held or cached it would have been served.", mib(short))
	}
}

// failureAt is the moment of the device's n-th request that failed, from 1.
func (in *Input) failureAt(p place, n int64) (found, error) {
	var seen int64
	if in.Report == nil {
		return found{}, fmt.Errorf("%s has not been ingested: nothing says whether it ran out of memory", p)
	}
	for i := range in.Report.OOMs {
		o := &in.Report.OOMs[i]
		if o.Rank != p.rank || o.Device != p.device {
			continue
		}
		if seen++; seen < n {
			continue
		}
		if o.Seq == 0 {
			return found{}, fmt.Errorf("%s ran out of memory %s, and the events before that are not in the journal", p, when(new(in.failureMoment(p, i))))
		}
		by := ""
		if o.Module != "" {
			by = " by module " + o.Module
		}
		note := fmt.Sprintf("%s: a request for %s%s failed here; the process may take %s, and %s were free on the device", p, mib(o.RequestedBytes), by, mib(o.LimitBytes), mib(o.DeviceFreeBytes))
		return found{at: in.failureMoment(p, i), allocated: -1, warnings: []string{note}}, nil
	}
	if seen == 0 {
		return found{}, fmt.Errorf("%s did not run out of memory", p)
	}
	return found{}, fmt.Errorf("%s ran out of memory %s, not %d times", p, timesText(int(seen)), n)
}
