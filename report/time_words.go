package report

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/prose"
)

// tellModuleTimes writes the warnings of each run.
func tellModuleTimes(doc timing.ModuleTimeDocument) timing.ModuleTimeDocument {
	doc.Runs = slices.Clone(doc.Runs)
	for i := range doc.Runs {
		r := &doc.Runs[i]
		r.Warnings = slices.Clone(r.Warnings)
		for _, remark := range r.Remarks {
			r.Warnings = append(r.Warnings, timeWords(remark))
		}
		slices.Sort(r.Warnings)
	}
	return doc
}

// timeWords put a remark on times into words.
func timeWords(r timing.Remark) string {
	switch r.Kind {
	case timing.RemarkOnlyInstrumented:
		return "times come from instrumented steps: the run has no bare steps"
	case timing.RemarkNoInstrumented:
		return "no instrumented step after warm-up: module times are unknown"
	case timing.RemarkUnscaled:
		return "no bare step has phases: times come from instrumented steps and are not scaled"
	case timing.RemarkIdling:
		return fmt.Sprintf("instrumented steps take %s longer than bare ones (%s and %s): their times include idle GPU "+
			"time, and modules with many short calls get too large a share",
			prose.Share(r.InstrumentedMS-r.StepMS, r.StepMS), prose.MS(r.InstrumentedMS), prose.MS(r.StepMS))
	case timing.RemarkNotIngested:
		return notIngested
	case timing.RemarkPredicted:
		return "predicted runs have no times: nothing was computed"
	case timing.RemarkBareRun:
		return "a bare run has no instrumented steps: its time is known only by phase"
	case timing.RemarkModulesNotRecorded:
		return "the recording has no module times"
	case timing.RemarkCaptured:
		return capturedWords(r.Steps)
	}
	panic(fmt.Sprintf("no words for the remark %d", r.Kind))
}

// capturedWords say why steps captured in a CUDA graph have no time.
func capturedWords(steps []int64) string {
	who, has := fmt.Sprintf("step %d", steps[0]), "has"
	if n := len(steps); n > 1 {
		who, has = fmt.Sprintf("%d steps (%d to %d)", n, steps[0], steps[n-1]), "have"
	}
	return fmt.Sprintf("%s %s no time: forward and backward took no GPU time, as when a CUDA graph captures them; call "+
		"dpsight.step() after each replay of a graph to time it", who, has)
}

// noEnergyWords say why a run has no energy although its GPU was sampled.
func noEnergyWords(why timing.NoEnergy) string {
	switch why {
	case timing.EnergyNotRead:
		return "no energy: the GPU's counter gave no reading"
	case timing.EnergyTooShort:
		return fmt.Sprintf("no energy: series of timed steps last less than %d s, too short for a counter that is read "+
			"about once a second", timing.LeastEnergySeconds)
	case timing.EnergyNotCovered:
		return "no energy: the readings of the GPU's counter do not cover the timed steps"
	}
	return ""
}
