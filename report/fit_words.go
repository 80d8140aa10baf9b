package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// FitFailure returns an error if a search was stopped, or if no value fits with any method on any device.
func FitFailure(d *predict.FitDocument) error {
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.Stopped == "" {
			continue
		}
		hint := "run the same command again: it continues from here"
		if c.Unanswered {
			hint = "choose values with which the run succeeds, or correct your script; then run the command again"
		}
		return schemas.WithHint(fmt.Errorf("the search did not finish: %s on %s: %s", c.Method, c.GPU, c.Stopped), hint)
	}
	if !d.Nothing() {
		return nil
	}
	return schemas.WithHint(errors.New(fitSentence(&d.Cells[0], &d.Vary)),
		"dpsight findings on its run says what held the memory")
}

// A Probe is one predicted run of a search.
type Probe struct{ predict.FitRun }

// Verdict returns whether the value fits, and if not the reason, unless the run's end already states it. If the run
// ended for a reason other than memory, fits is nil and why has the reason.
func (p Probe) Verdict() (fits *bool, why string) { return p.Run.Fits, predictionWhy(&p.Run) }

// Leaves reports whether the value fits and leaves that many bytes of the device's memory free.
func (p Probe) Leaves(bytes int64) bool { return p.Run.Leaves(bytes) }

// tellFit writes the words that explain special outcomes of each cell, and why its values do not fit.
func tellFit(d predict.FitDocument) predict.FitDocument {
	d.Cells = slices.Clone(d.Cells)
	for i := range d.Cells {
		c := &d.Cells[i]
		c.Probes = slices.Clone(c.Probes)
		for k := range c.Probes {
			p := &c.Probes[k]
			p.Why = whyWords(&p.Because)
			if p.Fits == nil && strings.HasSuffix(c.Stopped, p.Why) {
				p.Why = "" // Stopped already gives the reason
			}
		}
		if len(c.Oddities) == 0 {
			continue
		}
		c.Odd = nil
		for _, o := range c.Oddities {
			c.Odd = append(c.Odd, oddityWords(d.Vary.Name, o))
		}
	}
	return d
}

// oddityWords say at which values memory does not grow with the value.
func oddityWords(name string, o predict.Oddity) string {
	if o.Figure == "" {
		return fmt.Sprintf("%s %d fits, though %d does not", name, o.Value, o.Below)
	}
	return fmt.Sprintf("%[1]s %[2]d takes less than %[1]s %[3]d: %[4]s %[5]s, not %[6]s", name, o.Value, o.Below,
		units.MiB(o.Bytes), o.Figure, units.MiB(o.Was))
}

// fitSentence states the result of a search in one line.
func fitSentence(c *predict.FitCell, v *predict.Vary) string {
	return fmt.Sprintf("%s on %s with %s for its tensors: ", c.Method, c.GPU, units.MiB(c.MemoryBytes)) +
		outcomeWords(c, v) + marginWords(c, v)
}

// outcomeWords state which value fits, judged by bytes alone.
func outcomeWords(c *predict.FitCell, v *predict.Vary) string {
	highest := fmt.Sprintf("%s %d", v.Name, c.Highest(v))
	switch c.Outcome {
	case predict.FitNone:
		return fmt.Sprintf("nothing fits: not even %s %d", v.Name, c.Lowest(v))
	case predict.FitAll:
		if slices.ContainsFunc(c.Probes, func(p predict.FitProbe) bool { return p.Fits != nil && !*p.Fits }) {
			return highest + ", the highest value asked for, fits" + spareWords(c.SpareBytes) +
				", but some smaller ones do not"
		}
		if slices.ContainsFunc(c.Probes, func(p predict.FitProbe) bool { return p.Fits == nil }) {
			return highest + ", the highest value asked for, fits" + spareWords(c.SpareBytes)
		}
		return "every value tried fits, also " + highest + ", the highest asked for" +
			spareWords(c.SpareBytes)
	case predict.FitUnset:
		if c.Largest == nil {
			return "the search stopped before any value was known to fit: " + c.Stopped
		}
		return fmt.Sprintf("the search stopped at %s %d, which fits%s: %s", v.Name, *c.Largest,
			spareWords(c.SpareBytes), c.Stopped)
	}
	if c.Refused == nil {
		return fmt.Sprintf("%s %d fits%s", v.Name, *c.Largest, spareWords(c.SpareBytes))
	}
	return fmt.Sprintf("%s %d is the largest seen to fit%s, %d does not fit", v.Name, *c.Largest,
		spareWords(c.SpareBytes), *c.Refused)
}

// spareWords state in brackets how much memory a value leaves free, if known.
func spareWords(bytes *int64) string {
	if bytes == nil {
		return ""
	}
	return " (" + units.MiB(*bytes) + " to spare)"
}

// marginWords continue with the largest value that leaves the margin. marginWords are empty without a margin, if
// nothing fits, or if the search was stopped: then the reason ends the sentence.
func marginWords(c *predict.FitCell, v *predict.Vary) string {
	switch m := c.Margin; {
	case m == nil || c.Largest == nil || c.Outcome == predict.FitUnset:
		return ""
	case m.Largest == nil:
		return fmt.Sprintf("; no value tried leaves the margin of %s", units.MiB(m.Bytes))
	case *m.Largest == *c.Largest:
		return fmt.Sprintf("; it leaves the margin of %s", units.MiB(m.Bytes))
	default:
		return fmt.Sprintf("; %s %d is the largest that leaves the margin of %s%s", v.Name, *m.Largest,
			units.MiB(m.Bytes), spareWords(m.SpareBytes))
	}
}
