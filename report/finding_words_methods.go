package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

func cheaperMethodWords(w *wording, x findings.CheaperMethodFacts) {
	own, best := &x.Own, &x.Best
	w.Title = "Method " + best.Run.Method() + " gives the same result for less"
	w.trialPeak(own)
	w.trialPeak(best)
	w.trialStep(own)
	w.trialStep(best)
	w.say("With the same parameters, %s takes %s and peaks at %s; %s takes %s and peaks at %s.",
		best.Run.Title(), trialStepWords(best), trialPeakWords(best), own.Run.Title(), trialStepWords(own),
		units.MiB(own.PeakBytes))
	if x.Overlap {
		w.say(" The ranges of their steps overlap, so a saving of time is not certain.")
	}
	w.Change = "use method " + best.Run.Method() + ", which gives the same clipped sum; at other batch sizes, compare " +
		"again"
	w.Assumption = trialSource(best) + ": " + trialRuns(best, " of the same parameters")
}

// methods appends what runs of other methods show about the change.
func (w *wording) methods(m *findings.Methods) {
	if m == nil {
		return
	}
	lowest := trialRuns(&m.Lowest, trialMethod(&m.Lowest))
	noneLower := "no recorded method of the same parameters peaks lower: the lowest is " +
		trialPeakWords(&m.Lowest) + ", " + lowest
	w.trialPeak(&m.Lowest)
	if m.Best == nil {
		w.say(" Another method would save nothing: of the methods without this memory, the lowest recorded peak is %s, "+
			"of %s with the same parameters.", trialPeakWords(&m.Lowest), lowest)
		w.Change, w.Assumption = w.rest, noneLower
		return
	}
	best, it := m.Best, "it takes"
	w.Assumption = noneLower
	if m.Lower {
		w.Assumption = fmt.Sprintf("%s: a peak of %s, %s", trialSource(best), trialPeakWords(best),
			trialRuns(best, trialMethod(best)+" of the same parameters"))
	}
	if best.Run.RunID != m.Lowest.Run.RunID {
		w.trialPeak(best)
		it = fmt.Sprintf("method %s (a peak of %s, %s) takes", best.Run.Method(), trialPeakWords(best),
			trialRuns(best, ""))
	}
	if m.Own.Step != nil && best.Step != nil {
		w.Assumption += fmt.Sprintf("; %s %s, this one %s", it, trialStepWords(best), trialStepWords(&m.Own))
	}
}

// trialPeak adds the figure of a trial's peak. A trial is a run of another method.
func (w *wording) trialPeak(t *findings.Trial) {
	w.bytes("peak of "+t.Run.Title(), t.PeakBytes, trialRuns(t, ""))
}

func (w *wording) trialStep(t *findings.Trial) {
	w.milliseconds("step of "+t.Run.Title(), t.Step.Median, trialRuns(t, "")+": steps.parquet")
}

func trialMethod(t *findings.Trial) string { return " (method " + t.Run.Method() + ")" }

// trialStepWords state a trial's median step, with the range of its repeats, or of a single run's steps.
func trialStepWords(t *findings.Trial) string {
	text := prose.MS(t.Step.Median) + " a step"
	of := "runs"
	switch {
	case t.Step.N < 2:
		return text
	case t.Step.Of == timing.OfMedian:
		return text + fmt.Sprintf(" (%s to %s with 95 %% confidence)", prose.MS(t.Step.Low), prose.MS(t.Step.High))
	case t.Step.Over == timing.OverSteps:
		of = "steps"
	}
	return text + fmt.Sprintf(" (%s to %s in %d %s)", prose.MS(t.Step.Low), prose.MS(t.Step.High), t.Step.N, of)
}

// trialRuns names the runs from which a trial's figures come.
func trialRuns(t *findings.Trial, what string) string {
	if t.Runs == 1 {
		return "run " + t.Run.RunID + what
	}
	return fmt.Sprintf("medians of %d runs%s, %s among them", t.Runs, what, t.Run.RunID)
}

// trialSource says whether a trial's figures were measured or predicted, which the reader of a saving must know.
func trialSource(t *findings.Trial) string {
	if t.Run.Source == schemas.Predicted {
		return schemas.Predicted
	}
	return schemas.Measured
}

// trialPeakWords state the peak of another method's runs.
func trialPeakWords(t *findings.Trial) string {
	if t.AtMost {
		return "at most " + units.MiB(t.PeakBytes)
	}
	return units.MiB(t.PeakBytes)
}
