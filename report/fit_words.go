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

// FitFailure says that a search was stopped, or that nothing fits, with no method on no device; nil where something
// does, or may.
func FitFailure(d *predict.FitDocument) error {
	for i := range d.Cells {
		if c := &d.Cells[i]; c.Stopped != "" {
			return schemas.WithHint(fmt.Errorf("the search did not come to its end: %s on %s: %s", c.Method, c.GPU,
				c.Stopped), "what was predicted is kept: the same command goes on from there")
		}
	}
	if !d.Nothing() {
		return nil
	}
	return schemas.WithHint(errors.New(fitSentence(&d.Cells[0], &d.Vary)),
		"dpsight analyze findings on its run says what was in the way")
}

// A Probe is what a search looks at of a run.
type Probe struct{ predict.FitRun }

// Verdict is the prediction's: whether the value fits, and why not where the run's end does not say it; nil with the
// reason where the run ended for another reason than memory.
func (p Probe) Verdict() (fits *bool, why string) { return p.Run.Fits, predictionWhy(&p.Run) }

// tellFit fills in the words for what is odd about each cell, and why its values do not fit.
func tellFit(d predict.FitDocument) predict.FitDocument {
	d.Cells = slices.Clone(d.Cells)
	for i := range d.Cells {
		c := &d.Cells[i]
		c.Probes = slices.Clone(c.Probes)
		for k := range c.Probes {
			p := &c.Probes[k]
			p.Why = whyWords(&p.Because)
			if p.Fits == nil && strings.HasSuffix(c.Stopped, p.Why) {
				p.Why = "" // Stopped says it
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

// oddityWords say where memory does not grow with the value.
func oddityWords(name string, o predict.Oddity) string {
	if o.Figure == "" {
		return fmt.Sprintf("%s %d fits, though %d does not", name, o.Value, o.Below)
	}
	return fmt.Sprintf("%s %d takes less than %d: %s %s at most, and %s", name, o.Value, o.Below, units.MiB(o.Bytes),
		o.Figure, units.MiB(o.Was))
}

// fitSentence says in one line what the search found.
func fitSentence(c *predict.FitCell, v *predict.Vary) string {
	on := fmt.Sprintf("%s on %s with %s for its tensors", c.Method, c.GPU, units.MiB(c.MemoryBytes))
	switch c.Outcome {
	case predict.FitNone:
		return fmt.Sprintf("%s: nothing fits: not even %s %d", on, v.Name, c.Lowest(v))
	case predict.FitAll:
		if slices.ContainsFunc(c.Probes, func(p predict.FitProbe) bool { return p.Fits != nil && !*p.Fits }) {
			return fmt.Sprintf("%s: %s %d fits, the highest that was asked for, and not all below it do", on, v.Name,
				c.Highest(v))
		}
		if slices.ContainsFunc(c.Probes, func(p predict.FitProbe) bool { return p.Fits == nil }) {
			return fmt.Sprintf("%s: %s %d fits, the highest that was asked for", on, v.Name, c.Highest(v))
		}
		return fmt.Sprintf("%s: everything that was tried fits: %s %d, the highest that was asked for, too", on, v.Name,
			c.Highest(v))
	case predict.FitUnset:
		if c.Largest == nil {
			return fmt.Sprintf("%s: the search was stopped before anything was known to fit: %s", on, c.Stopped)
		}
		return fmt.Sprintf("%s: the search was stopped at %s %d, which fits: %s", on, v.Name, *c.Largest, c.Stopped)
	}
	if c.Refused == nil {
		return fmt.Sprintf("%s: %s %d fits", on, v.Name, *c.Largest)
	}
	return fmt.Sprintf("%s: %s %d is the largest seen to fit, %d does not fit", on, v.Name, *c.Largest, *c.Refused)
}
