package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas/units"
)

func growthWords(w *wording, x findings.GrowthFacts) {
	from := "allocations.parquet: block_bytes live after event %d, the lowest of step %d"
	first, last, steps := x.First, x.Last, x.Last.Step-x.First.Step
	each := *w.Bytes / steps
	w.bytes("lowest of the first of these steps", first.Bytes, fmt.Sprintf(from, first.Event, first.Step))
	w.bytes("lowest of the last", last.Bytes, fmt.Sprintf(from, last.Event, last.Step))
	w.count("steps between", int(steps), "steps.parquet")
	w.bytes("growth a step", each, "steps.parquet and allocations.parquet: the difference by the steps")
	w.peakFigure()
	of := "each step"
	if x.Gaps {
		of = "each recorded step"
	}
	w.say("From step %d to step %d the lowest allocated of %s is above that of the one before: by %s a step, %s "+
		"(%s of %s) in all", first.Step, last.Step, of, units.MiB(each), units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	var parts []string
	for _, p := range x.Categories {
		parts = append(parts, units.MiB(p.Bytes)+" "+prose.Words(p.Name))
		w.bytes("of it "+prose.Words(p.Name), p.Bytes, fmt.Sprintf("owners.parquet: category %s after event %d, less "+
			"that after event %d", p.Name, last.Event, first.Event))
	}
	if len(parts) > 0 {
		w.say(", of it %s", prose.JoinWords(parts))
	}
	parts = nil
	for _, p := range x.Modules {
		parts = append(parts, units.MiB(p.Bytes)+" of module "+p.Name)
		w.bytes("made in it for module "+p.Name, p.Bytes, fmt.Sprintf("allocations.parquet and owners.parquet: live "+
			"after event %d, made after event %d", last.Event, first.Event))
	}
	if len(parts) > 0 {
		w.say("; by module, %s", prose.JoinWords(parts))
	}
	w.say(". Something keeps tensors or graphs of earlier steps alive.")
	w.Change = "keep numbers of a step and not its tensors: loss.item() or loss.detach() in what is summed or put " +
		"into a list, which else keeps the step's whole graph, and torch.no_grad() around what trains nothing"
}

func oomWords(w *wording, x findings.OOMFacts) {
	r := x.Request
	o, d, lay := r.OOM, r.Breakdown, r.Layout
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
	w.Change = "hold less at that moment: what holds most is named; dpsight analyze breakdown " +
		atFailure(r) + " --by category,module says where"
	if o.Absorbed() {
		w.Change = "nothing has to change; with more memory, or less held at that moment, the module may take a " +
			"faster algorithm"
	}
	if lay == nil {
		return
	}
	from = fmt.Sprintf("events.parquet: segments after event %d, less the blocks in them", d.At.Event)
	w.bytes("reserved", lay.Reserved, from)
	w.bytes("cached and free", lay.Free(), from)
	w.bytes("largest free piece", lay.Largest, from)
	if lay.Free() >= o.RequestedBytes {
		w.Change = expandable + "; " + w.Change
	}
	if short := r.ShortOf(); short > 0 {
		w.bytes("short of", short, "requested less what is free on the device, or below the limit")
	}
}
