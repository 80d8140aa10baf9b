package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// tellPredictions writes why a run does not fit, or how it ended, and the run's warnings, such as about requests that
// failed without ending the run.
func tellPredictions(doc predict.PredictionDocument) predict.PredictionDocument {
	doc.Runs = slices.Clone(doc.Runs)
	for i := range doc.Runs {
		doc.Runs[i].Warnings = append(RunWords(doc.Runs[i].Remarks), survivedWords(&doc.Runs[i])...)
		if doc.Runs[i].Tight() {
			doc.Runs[i].Warnings = append(doc.Runs[i].Warnings, tightWords(&doc.Runs[i]))
		}
		doc.Runs[i].Why = predictionWhy(&doc.Runs[i])
	}
	return doc
}

// predictionWhy says why a run does not fit, or how it ended, where the status does not.
func predictionWhy(p *predict.PredictionRun) string { return whyWords(&p.Because) }

// whyWords put a cause into words, and are empty without a cause.
func whyWords(b *predict.Because) string {
	switch b.Cause {
	case predict.CauseSteps:
		return b.Reason
	case predict.CauseEnded, predict.CauseSoFar:
		return strings.TrimSpace(b.Status + ": " + b.Reason)
	case predict.CauseCaught:
		return "the script caught " + units.Plural(b.Caught, "out-of-memory error", "out-of-memory errors") +
			" and continued"
	case predict.CauseUnsaid:
		return "a process ended before it could report its memory"
	case predict.CauseNothing:
		return confidence.NothingTaken(b.Unheard).Error()
	}
	return ""
}

func survivedWords(p *predict.PredictionRun) (out []string) {
	for i := range p.Survived {
		o := &p.Survived[i]
		when := "before the first step"
		if o.Step >= 0 {
			when = fmt.Sprintf("in step %d", o.Step)
		}
		out = append(out, fmt.Sprintf("a request for %s failed %s, and the script continued: later figures may "+
			"be of less work than planned", units.MiB(o.RequestedBytes), when))
	}
	if n := p.AbsorbedOOMs; n > 0 {
		out = append(out, units.Plural(n, "request", "requests")+" for workspaces failed, and torch continued "+
			"with smaller ones: on a device with more memory the peak may be higher")
	}
	return out
}

// tightWords say that a run fits by its bytes, but without the margin.
func tightWords(p *predict.PredictionRun) string {
	text := fmt.Sprintf("it fits, but leaves only %s, less than the margin of %s (--margin)",
		units.MiB(*p.SpareBytes), units.MiB(*p.MarginBytes))
	if c := p.Confidence; c != nil && len(c.Unchecked) > 0 {
		text += ". No prediction was ever compared with such a device: a real one may need more"
	}
	return text
}

// predictionAdvice says what the user can do about the run's end, or returns "" if there is no advice.
func predictionAdvice(p *predict.PredictionRun) string {
	reason := strings.ToLower(p.Because.Reason)
	switch {
	case p.Fits != nil:
		return ""
	case p.Because.Cause == predict.CauseNothing:
		return useGPU
	case strings.Contains(reason, "invalid device ordinal") || strings.Contains(reason, "invalid device id"):
		return "the script uses a GPU that does not exist; dpsight predict --gpus N simulates N"
	case schemas.SuspectsRead(reason):
		return "the phantom GPU computes no losses or accuracies, so a check of them may fail; dpsight predict --steps N " +
			"ends the script after N steps, before a check at its end"
	}
	return ""
}

// untilThen states the memory of a run that its time limit ended too early for an answer. untilThen returns "" for a
// run that was not ended by its time limit, or whose memory is unknown.
func untilThen(p *predict.PredictionRun) string {
	if p.Status != schemas.StatusTimeout || p.PeakReservedBytes == nil {
		return ""
	}
	return fmt.Sprintf("; before the end of its first step it reserved at most %s",
		units.MiB(*p.PeakReservedBytes))
}

// caughtWords say that requests failed in a run that ended well, and are empty if none failed.
func caughtWords(n int) string {
	if n == 0 {
		return ""
	}
	return "; the script caught " + units.Plural(n, "out-of-memory error", "out-of-memory errors")
}

// predictionSentence says in one line whether a run fits.
func predictionSentence(p *predict.PredictionRun) string {
	on := p.GPU
	if p.MemoryBytes != nil {
		on += " with " + units.MiB(*p.MemoryBytes) + " for its tensors"
		// findings and torch's own error state this figure too
		if all := p.OfDeviceBytes; all > *p.MemoryBytes {
			on += fmt.Sprintf(" (the device has %s, and its CUDA context takes %s)", units.MiB(all),
				units.MiB(all-*p.MemoryBytes))
		}
	}
	switch {
	case p.Fits == nil && p.Status == schemas.StatusOK:
		return fmt.Sprintf("it is unknown whether %s fits on %s: %s", p.Title(), on, predictionWhy(p))
	case p.Fits == nil:
		return fmt.Sprintf("%s ended early (%s), so it is unknown whether it fits on %s", p.Title(), p.Status, on) +
			untilThen(p)
	case p.Because.Cause == predict.CauseSoFar && p.PeakReservedBytes != nil:
		return fmt.Sprintf("%s fits on %s as far as it got: %s reserved at most (%s)", p.Title(), on,
			units.MiB(*p.PeakReservedBytes), p.Reason) + caughtWords(p.CaughtOOMs)
	case p.Because.Cause == predict.CauseSteps && p.PeakReservedBytes != nil:
		return fmt.Sprintf("%s fits on %s: %s reserved at most; it was %s", p.Title(), on,
			units.MiB(*p.PeakReservedBytes), p.Reason) + laterSteps + caughtWords(p.CaughtOOMs)
	case *p.Fits && p.PeakReservedBytes != nil:
		return fmt.Sprintf("%s fits on %s: %s reserved at most", p.Title(), on, units.MiB(*p.PeakReservedBytes)) +
			caughtWords(p.CaughtOOMs)
	case *p.Fits:
		return fmt.Sprintf("%s fits on %s", p.Title(), on) + caughtWords(p.CaughtOOMs)
	case predictionWhy(p) != "":
		return fmt.Sprintf("%s does not fit on %s: %s", p.Title(), on, predictionWhy(p))
	case p.Failure == nil:
		return fmt.Sprintf("%s does not fit on %s", p.Title(), on)
	}
	text := fmt.Sprintf("%s does not fit on %s: a request for %s failed", p.Title(), on,
		units.MiB(p.Failure.RequestedBytes))
	if p.At != nil {
		text += " " + when(p.At)
	}
	return text
}

// laterSteps says that steps after the script's early end are unknown.
const laterSteps = ": what later steps need is unknown"

// endedWords say after which step dpsight ended a script, and are empty if the script ended by itself.
func endedWords(e *schemas.Ended) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf("the script was ended after step %d", e.Step) + laterSteps
}

// decisionWords say why a read of an unknown value got the other of two answers.
func decisionWords(place, failure string) string {
	return fmt.Sprintf("%s reads a value that the phantom GPU does not compute. With the usual answer the script failed "+
		"(%s), so dpsight predicted with the other answer", place, failure)
}

// DecisionProgress says why a run is repeated with another answer for a read.
func DecisionProgress(d schemas.Decision) string {
	return fmt.Sprintf("%s read a value that the phantom GPU does not compute, and the script failed (%s): predicting "+
		"again with the other answer", d.Place, d.Error)
}
