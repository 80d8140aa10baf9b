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

// tellPredictions fills in why a run does not fit, and adds to the warnings of each run the requests that failed and
// that it went on without.
func tellPredictions(doc predict.PredictionDocument) predict.PredictionDocument {
	doc.Runs = slices.Clone(doc.Runs)
	for i := range doc.Runs {
		doc.Runs[i].Warnings = append(RunWords(doc.Runs[i].Remarks), survivedWords(&doc.Runs[i])...)
		doc.Runs[i].Why = predictionWhy(&doc.Runs[i])
	}
	return doc
}

// predictionWhy says what the status does not: why a run does not fit, or how it ended.
func predictionWhy(p *predict.PredictionRun) string { return whyWords(&p.Because) }

// whyWords are empty where there is no cause.
func whyWords(b *predict.Because) string {
	switch b.Cause {
	case predict.CauseEnded:
		return strings.TrimSpace(b.Status + ": " + b.Reason)
	case predict.CauseCaught:
		return "the script caught " + units.Plural(b.Caught, "request that failed", "requests that failed") +
			" for want of memory and went on"
	case predict.CauseUnsaid:
		return "a process did not live to say what it took"
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
		out = append(out, fmt.Sprintf("a request for %s failed %s, and the script went on: what is said of it "+
			"later may be of less than it was to do", units.MiB(o.RequestedBytes), when))
	}
	if n := p.AbsorbedOOMs; n > 0 {
		out = append(out, units.Plural(n, "request", "requests")+" for workspaces failed, and torch itself went on "+
			"with smaller ones: a device with more memory may hold more at the peak")
	}
	return out
}

// predictionAdvice says what can be done about what ended the run, empty where nothing is known.
func predictionAdvice(p *predict.PredictionRun) string {
	if p.Fits != nil {
		return ""
	}
	if p.Because.Cause == predict.CauseNothing {
		return "was an option as --device cuda forgotten? The script has to put its model on a CUDA device"
	}
	for _, n := range p.Notes {
		if strings.HasPrefix(n, "cudnn") && strings.Contains(n, "RNN") {
			return "cuDNN's recurrent networks need a device: with torch.backends.cudnn.enabled = False the script " +
				"is predicted with torch's own kernels, which take other memory"
		}
	}
	return ""
}

// caughtWords say that requests failed in a run that ended well all the same; empty where none did.
func caughtWords(n int) string {
	if n == 0 {
		return ""
	}
	return "; the script caught " + units.Plural(n, "request that failed", "requests that failed")
}

// predictionSentence says in one line whether the run fits.
func predictionSentence(p *predict.PredictionRun) string {
	on := p.GPU
	if p.MemoryBytes != nil {
		on += " with " + units.MiB(*p.MemoryBytes) + " for its tensors"
		// the figure that findings and torch's own error have
		if all := p.OfDeviceBytes; all > *p.MemoryBytes {
			on += fmt.Sprintf(" (of %s, of which its CUDA context takes %s)", units.MiB(all),
				units.MiB(all-*p.MemoryBytes))
		}
	}
	switch {
	case p.Fits == nil && p.Status == schemas.StatusOK:
		return fmt.Sprintf("of %s it is not known whether it fits on %s: %s", p.Title(), on, predictionWhy(p))
	case p.Fits == nil:
		return fmt.Sprintf("%s ended early (%s), so whether it fits on %s is not known", p.Title(), p.Status, on)
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
