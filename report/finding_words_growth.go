package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/growth"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/units"
)

// FindingGrowth describes how memory grows, in a finding about growth.
type FindingGrowth struct {
	// Unit is what the growth is counted by: "step", "evaluation_pass" or "line_pass". Passes count from 0.
	Unit string `json:"unit"`
	// InStep is the step that contains all passes. InStep is null for growth from step to step, and for passes outside
	// all steps.
	InStep *int64 `json:"in_step"`
	First  int64  `json:"first_step"`
	Last   int64  `json:"last_step"`
	Steps  int64  `json:"steps"` // steps from the first to the last
	// SlopeBytes is the median slope over all pairs of steps. SlopeLowBytes and SlopeHighBytes enclose the slope with a
	// confidence of 95 %.
	SlopeBytes     float64 `json:"slope_bytes_per_step"`
	SlopeLowBytes  float64 `json:"slope_low_bytes_per_step"`
	SlopeHighBytes float64 `json:"slope_high_bytes_per_step"`
	// Tau is Kendall's tau: 1 if each step's lowest allocated is above those of all earlier steps.
	Tau         float64 `json:"tau"`
	Probability float64 `json:"p"` // the probability of such a tau or a higher one for steps in random order
	Steady      bool    `json:"steady"`
	GivenBack   bool    `json:"given_back"`
	// LimitBytes is the device's memory, and ExhaustedStep the step at which it will be full at this rate. LimitBytes
	// and ExhaustedStep are null if unknown.
	LimitBytes    *int64 `json:"limit_bytes"`
	ExhaustedStep *int64 `json:"exhausted_at_step"`
	EarliestStep  *int64 `json:"exhausted_earliest_step"`
	LatestStep    *int64 `json:"exhausted_latest_step"`
}

func newFindingGrowth(g *growth.Growth) *FindingGrowth {
	out := &FindingGrowth{Unit: string(g.Unit), InStep: g.Step, First: g.First.At, Last: g.Last.At, Steps: g.Steps(),
		SlopeBytes: g.Slope, SlopeLowBytes: g.SlopeLow, SlopeHighBytes: g.SlopeHigh, Tau: g.Tau, Probability: g.P,
		Steady: g.Steady, GivenBack: g.GivenBack}
	if e := g.Exhaustion; e != nil {
		out.LimitBytes, out.ExhaustedStep, out.EarliestStep, out.LatestStep = &e.LimitBytes, &e.At, &e.Earliest, &e.Latest
	}
	return out
}

// growthRate states how fast memory grows: "4.2 MiB a step".
func growthRate(g *growth.Growth) string {
	size := table.Size(int64(math.Round(g.Slope)))
	switch g.Unit {
	case growth.EvaluationPass:
		return size + " an evaluation pass"
	case growth.LinePass:
		return size + " each time " + grouping.LineText(g.Line) + " runs"
	}
	return size + " a step"
}

func growthWords(w *wording, x findings.GrowthFacts) {
	w.Growth = newFindingGrowth(x.Growth)
	steps, unit := "steps", "step"
	if x.Unit != growth.Step {
		steps, unit = "passes", "pass"
	}
	w.growthFigures(&x, unit)
	w.Title = growthTitle(&x, *w.Bytes, steps)
	if x.Devices > 1 {
		w.Title += fmt.Sprintf(", on %s of rank %d", *w.Device, *w.Rank)
		w.say("On %s of rank %d: ", *w.Device, *w.Rank)
	}
	if evenly(&x, *w.Bytes) {
		w.say("Memory grows by %s: %s in %s %s (%s of %s)", growthRate(x.Growth), table.Size(*w.Bytes),
			table.Count(x.Steps()).Text, steps, w.share(*w.Bytes), w.peak)
	} else {
		w.say("Memory grows by %s (%s of %s) in %s %s, and by %s in the median %s", table.Size(*w.Bytes),
			w.share(*w.Bytes), w.peak, table.Count(x.Steps()).Text, steps, table.Size(int64(math.Round(x.Slope))), unit)
	}
	var parts []string
	for _, p := range x.Categories {
		parts = append(parts, table.Size(p.Bytes)+" "+prose.Words(p.Name))
	}
	if len(parts) > 0 {
		w.say(". This includes %s", prose.JoinWords(parts))
	}
	parts = nil
	for _, p := range x.Modules {
		parts = append(parts, table.Size(p.Bytes)+" of module "+p.Name)
	}
	if len(parts) > 0 {
		w.say("; by module, %s", prose.JoinWords(parts))
	}
	w.say(". The lowest allocated memory rises from %s %d to %s %d", unit, x.First.At, unit, x.Last.At)
	switch {
	case x.Gaps:
		w.say(", in the recorded steps")
	case x.Step != nil:
		w.say(", all within step %d", *x.Step)
	}
	w.say(", so something keeps tensors or graphs of earlier %s alive.", steps)
	if x.Alike > 0 {
		w.say(" %s in the same way, and no faster.", units.Plural(x.Alike, "other device grows", "other devices grow"))
	}
	if x.GivenBack {
		w.say(" Most of it is freed before the run ends: it raises the peak, but it is not a leak.")
	}
	if e := x.Exhaustion; e != nil {
		w.ahead = fmt.Sprintf("At this rate the process reaches its limit of %s at about %s %s",
			table.Size(e.LimitBytes), unit, about(e.At))
		if from, to := about(e.Earliest), about(e.Latest); from != to {
			w.ahead += fmt.Sprintf(" (95 %% confidence: %s to %s)", from, to)
		}
		w.ahead += ", or earlier because of cached memory."
		w.say(" %s", w.ahead)
	}
	if x.BaseBytes > 0 {
		w.bytes("kept by views", x.BaseBytes, "holders.parquet: view_bytes less than the block's")
		w.bytes("shown by them", x.ViewBytes, "the same")
		w.say(" Views keep %s alive but show only %s: a view keeps its whole base.", table.Size(x.BaseBytes),
			table.Size(x.ViewBytes))
	}
	w.Change = growthChange(w.ID, unit)
	if w.found.Cycle {
		w.Change = cycleChange
	}
	w.Assumption = fmt.Sprintf("what a %[1]s makes is freed when the next %[1]s ends; this counts the %[2]s that ran, "+
		"and each further one adds to it", unit, steps)
	if x.Elsewhere {
		w.Assumption += "; this is the peak of this device, and another device has the highest of the run"
	}
}

// growthTitle states what keeps memory: "20 evaluation passes keep their autograd graph: 84 MiB, 4.2 MiB a pass".
func growthTitle(x *findings.GrowthFacts, bytes int64, steps string) string {
	n, kept := x.Steps(), "memory"
	if x.KeepsGraphs() {
		kept = "their autograd graphs"
	}
	if x.BaseBytes > 0 {
		kept = "large tensors by small views"
	}
	if x.Unit == growth.EvaluationPass {
		steps = "evaluation passes"
	}
	if !evenly(x, bytes) {
		return fmt.Sprintf("%s keep %s: %s in total, %s in the median one", strings.ToUpper(steps[:1])+steps[1:], kept,
			table.Size(bytes), table.Size(int64(math.Round(x.Slope))))
	}
	return fmt.Sprintf("%s %s keep %s: %s, %s", table.Count(n).Text, steps, kept, table.Size(bytes), growthRate(x.Growth))
}

// evenly reports whether the median growth of a step times the number of steps equals, within a twentieth, the growth
// of all steps. Only even growth is shown by both the median and the number of steps.
func evenly(x *findings.GrowthFacts, bytes int64) bool {
	return math.Abs(x.Slope*float64(x.Steps())-float64(bytes)) <= float64(bytes)/20
}

// cycleChange is the advice for objects that keep one another alive.
const cycleChange = "break the reference cycle: objects of the script keep each other and their tensors alive until " +
	"Python's garbage collector runs. In a torch.autograd.Function, save inputs and outputs with " +
	"ctx.save_for_backward(…), not as attributes of ctx. Elsewhere, delete one of the references, or make it weak"

// growthChange returns the advice for growing memory. growthChange mentions a graph only if the growth keeps graphs.
func growthChange(id, unit string) string {
	switch id {
	case findings.EvaluationGraphs:
		return "put torch.no_grad() around code that does not train, or keep results without their graph (.detach(), " +
			".item())"
	case findings.KeptGraphs:
		return "detach tensors that one " + unit + " passes to the next (.detach()), and store numbers in lists and sums " +
			"(loss.item()): a tensor with a grad_fn keeps its whole graph"
	case findings.ViewKeepsBase:
		return viewChange
	case findings.GradientGraphs:
		return "remove create_graph=True if nothing differentiates the gradient. Otherwise use torch.autograd.grad(…, " +
			"create_graph=True), or set .grad to None before dropping the tensor. A tensor, its .grad and the graph " +
			"between them keep each other alive, and Python's garbage collector cannot free them"
	}
	return "keep only what you need of each " + unit + ": a number (.item()), a copy in host memory (.cpu()), or a " +
		"copy of a part (.clone(), since a view keeps its whole base). Limit the size of a cache that is meant to grow"
}

// growthFigures states the figures behind the sentence.
func (w *wording) growthFigures(x *findings.GrowthFacts, unit string) {
	from := "allocations.parquet: block_bytes live after event %d, the lowest of %s %d"
	first, last := x.First, x.Last
	rows := "steps.parquet"
	switch x.Unit {
	case growth.EvaluationPass:
		rows = "phases.parquet: phase eval"
	case growth.LinePass:
		rows = fmt.Sprintf("allocations.parquet: line_id %d", x.Line.Line)
	}
	w.bytes("lowest of the first of these", first.Bytes, fmt.Sprintf(from, first.Event, unit, first.At))
	w.bytes("lowest of the last", last.Bytes, fmt.Sprintf(from, last.Event, unit, last.At))
	w.count("steps between", int(x.Steps()), rows)
	w.bytes("growth a step", int64(math.Round(x.Slope)), rows+" and allocations.parquet: the median slope of all pairs")
	w.peakFigure()
	for _, p := range x.Categories {
		w.bytes("of it "+prose.Words(p.Name), p.Bytes, fmt.Sprintf("owners.parquet: category %s after event %d, less "+
			"that after event %d", p.Name, last.Event, first.Event))
	}
	for _, p := range x.Modules {
		w.bytes("made in it for module "+p.Name, p.Bytes, fmt.Sprintf("allocations.parquet and owners.parquet: live "+
			"after event %d, made after event %d", last.Event, first.Event))
	}
}

// about rounds a number of steps to two digits.
func about(steps int64) string {
	unit := int64(1)
	for steps/unit >= 100 {
		unit *= 10
	}
	return table.Count((steps + unit/2) / unit * unit).Text
}
