package report

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

func throttledWords(w *wording, x findings.ThrottledFacts) {
	w.Title = fmt.Sprintf("The GPU was slowed down in %d of %d timed steps", x.Steps, x.Sampled)
	w.count("timed steps slowed down", x.Steps, "samples.parquet: throttle_reasons, within steps of steps.parquet")
	w.count("timed steps sampled", x.Sampled, "the same")
	w.say("The GPU ran below its set clock in %d of %d sampled timed steps (%s).", x.Steps, x.Sampled,
		strings.Join(schemas.ThrottleNames(x.Reasons), ", "))
	w.Change = "compare only runs with the same limits and temperatures, or lock the clocks (nvidia-smi " +
		"--lock-gpu-clocks) low enough not to reach the limit"
	w.besideOthers(&x.BesideFacts, "not slowed down")
}

func otherProcessWords(w *wording, x findings.BesideFacts) {
	w.Title = fmt.Sprintf("Another process was on the GPU in %d of %d timed steps", x.Steps, x.Sampled)
	w.count("timed steps with another process", x.Steps, "samples.parquet: other_processes, within steps of "+
		"steps.parquet")
	w.count("timed steps sampled", x.Sampled, "the same")
	w.say("Another process was on the GPU in %d of %d sampled timed steps.", x.Steps, x.Sampled)
	w.Change = "time the run again on a GPU of its own"
	w.besideOthers(&x, "without another process")
}

// besideOthers states the median time of some steps next to the median of the other steps.
func (w *wording) besideOthers(x *findings.BesideFacts, others string) {
	if x.Medians == nil {
		if x.Steps == x.Sampled {
			w.say(" This holds for all timed steps, so its cost is unknown.")
		}
		return
	}
	from := "steps.parquet: " + clockColumn(x.Clock)
	w.milliseconds("median of these", x.Medians[0], from)
	w.milliseconds("median of the others", x.Medians[1], from)
	w.say(" Their median is %s, the others' is %s.", prose.MS(x.Medians[0]), prose.MS(x.Medians[1]))
	w.Assumption = "all else is equal in the steps " + others
}

func clockColumn(clock string) string {
	if clock == timing.ClockGPU {
		return "gpu_ns"
	}
	return "wall_ns"
}

func notIsolatedWords(w *wording, x findings.NotIsolatedFacts) {
	w.Title = "The GPU may not have been free"
	w.say("The GPU may not have been free when the run began: %s.", x.Reason)
	if x.OtherProcesses != nil {
		w.count("other processes", *x.OtherProcesses, "run.json: isolation.other_processes")
	}
	if x.IdleBytes != nil {
		w.bytes("device memory in use before the run", *x.IdleBytes, "run.json: isolation.idle_bytes")
	}
	w.Change = "free the GPU before the run; dpsight collect waits for it"
}

func unsteadyWords(w *wording, x findings.UnsteadyFacts) {
	w.Title = "Timed steps vary: the middle 80 % take " + prose.MS(x.Low) + " to " + prose.MS(x.High)
	from := "steps.parquet: " + clockColumn(x.Clock) + " of the timed steps"
	w.milliseconds("tenth percentile", x.Low, from)
	w.milliseconds("median", x.Median, from)
	w.milliseconds("ninetieth percentile", x.High, from)
	w.say("Of %d timed steps, the middle 80 %% take %s to %s. This range is %s of the median (%s).", x.Steps,
		prose.MS(x.Low), prose.MS(x.High), prose.Share(x.High-x.Low, x.Median), prose.MS(x.Median))
	w.Change = "time more steps, or look for what differs between them (batch sizes, data loading, evaluation)"
}

func repeatsPeakWords(w *wording, x findings.RepeatsPeakFacts) {
	w.Title = fmt.Sprintf("The peaks of %d repeats differ: by %s", x.Repeats, units.MiB(x.HighBytes-x.LowBytes))
	w.bytes("lowest peak", x.LowBytes, "run "+x.LowRun)
	w.bytes("highest peak", x.HighBytes, "run "+x.HighRun)
	w.say("The peaks of %d repeats differ: %s to %s. Repeats should have the same peak.", x.Repeats,
		units.MiB(x.LowBytes), units.MiB(x.HighBytes))
	if x.Bounded {
		w.say(" Some of these peaks are bounded, so the difference is at least that.")
	}
	w.Change = "look for what differs between the repeats: dpsight explain " + x.LowRun + " " + x.HighRun +
		" (Poisson sampling, for example, draws batches of different sizes)"
}

func repeatsTimeWords(w *wording, x findings.RepeatsTimeFacts) {
	w.Title = fmt.Sprintf("The step times of %d repeats disagree: %s to %s", x.Repeats, prose.MS(x.Low),
		prose.MS(x.High))
	from := "steps.parquet of each repeat: median of timed steps"
	w.milliseconds("fastest repeat", x.Low, from)
	w.milliseconds("slowest repeat", x.High, from)
	w.milliseconds("median", x.Median, from)
	w.say("The step times of %d repeats disagree: their medians range from %s to %s, which is %s of the overall median "+
		"(%s). A smaller difference between methods means nothing.", x.Repeats, prose.MS(x.Low), prose.MS(x.High),
		prose.Share(x.High-x.Low, x.Median), prose.MS(x.Median))
	w.Change = "take more repeats and more steps, on a GPU with locked clocks"
}
