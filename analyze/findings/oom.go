package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/memory"
)

// failures gives a finding for each allocation that failed.
func (x *evidence) failures() (out []Finding) {
	for _, r := range memory.FailedRequests(x.in, x.ledgers) {
		out = append(out, failureFinding(&r))
	}
	return out
}

func failureFinding(r *memory.FailedRequest) Finding {
	o := r.Oom
	from := fmt.Sprintf("ingest.json: ooms[%d]", r.Index)
	f := Finding{ID: OOM, Device: &r.Device, Rank: &r.Rank, failed: r, Sentence: r.Sentence}
	f.of(o.RequestedBytes, o.LimitBytes, OfLimit)
	f.bytes("requested", o.RequestedBytes, from)
	f.bytes("limit of the process", o.LimitBytes, from)
	f.bytes("free on the device", o.DeviceFreeBytes, from)
	d, lay := r.Breakdown, r.Layout
	if d == nil {
		return f
	}
	f.At = &r.At
	for _, c := range r.Holders() {
		f.bytes("held as "+c.Category, c.Bytes,
			fmt.Sprintf("owners.parquet and allocations.parquet: category %s after event %d", c.Category, d.At.Event))
	}
	f.bytes("allocated", d.AllocatedBytes,
		fmt.Sprintf("allocations.parquet: block_bytes live after event %d", d.At.Event))
	if taken := memory.BesideTensors(o, d.ReservedBytes); taken > 0 {
		from := fmt.Sprintf("ingest.json: limit_bytes less device_free_bytes, less what events.parquet has reserved "+
			"after event %d", d.At.Event)
		if r.Whole {
			f.bytes("limit taken by contexts, driver and others", taken, from)
		}
		f.bytes("limit left for tensors", o.LimitBytes-taken, from)
	}
	f.Change = "hold less at that moment: what holds most is named; dpsight analyze breakdown " +
		memory.AtFailure(r.Nth) +
		" --by category,module says where"
	if o.Absorbed() {
		f.Change = "nothing has to change; with more memory, or less held at that moment, the module may take a " +
			"faster algorithm"
	}
	if lay == nil {
		return f
	}
	from = fmt.Sprintf("events.parquet: segments after event %d, less the blocks in them", d.At.Event)
	f.bytes("reserved", lay.Reserved, from)
	f.bytes("cached and free", lay.Free(), from)
	f.bytes("largest free piece", lay.Largest, from)
	if lay.Free() >= o.RequestedBytes {
		f.Change = expandable + "; " + f.Change
	}
	if short := r.ShortOf(); short > 0 {
		f.bytes("short of", short, "requested less what is free on the device, or below the limit")
	}
	return f
}
