package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/findings"
)

func oomWords(w *wording, x findings.OOMFacts) {
	r := x.Request
	o, d, lay := r.OOM, r.Breakdown, r.Layout
	w.Title = fmt.Sprintf("Out of memory: a %s failed %s", requestWords(o), when(&r.At))
	if o.Absorbed() {
		w.Title = fmt.Sprintf("A %s failed %s, and torch continued without it", requestWords(o), when(&r.At))
	}
	w.Sentence = failedWords(r)
	from := fmt.Sprintf("ingest.json: ooms[%d]", r.Index)
	w.bytes("requested", o.RequestedBytes, from)
	if o.LimitBytes > 0 {
		w.bytes("limit of the process", o.LimitBytes, from)
	}
	w.bytes("free on the device", o.DeviceFreeBytes, from)
	if d == nil {
		return
	}
	for _, c := range r.Holders() {
		w.bytes("held as "+c.Category, c.Bytes,
			fmt.Sprintf("owners.parquet and allocations.parquet: category %s after event %d", c.Category, d.At.Event))
	}
	w.bytes("allocated", d.AllocatedBytes,
		fmt.Sprintf("allocations.parquet: block_bytes live after event %d", d.At.Event))
	if taken := r.BesideTensors(); taken > 0 {
		from := fmt.Sprintf("ingest.json: limit_bytes less device_free_bytes, less what events.parquet has reserved "+
			"after event %d", d.At.Event)
		if r.Whole {
			w.bytes("limit taken by contexts, driver and others", taken, from)
		}
		w.bytes("limit left for tensors", o.LimitBytes-taken, from)
	}
	w.Change = "hold less memory at that moment; dpsight breakdown " + atFailure(r) + " --by category,module lists " +
		"what held it"
	if o.Absorbed() {
		w.Change = "nothing has to change; with more free memory at that moment, the module may use a faster algorithm"
	}
	if lay == nil {
		return
	}
	from = fmt.Sprintf("events.parquet: segments after event %d, less the blocks in them", d.At.Event)
	w.bytes("reserved", lay.Reserved, from)
	w.bytes("cached and free", lay.Free(), from)
	w.bytes("largest free piece", lay.Largest, from)
	if lay.Free() >= o.RequestedBytes && !x.Expandable {
		w.Change = expandable + "; " + w.Change
	}
	if short := r.ShortOf(); short > 0 {
		w.bytes("short of", short, "requested less what is free on the device, or below the limit")
	}
}
