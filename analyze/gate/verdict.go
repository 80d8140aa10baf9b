package gate

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

// failures says in a sentence each why the experiment fails the check.
func (x *Experiment) failures(o *Options) []string {
	var out []string
	switch x.State {
	case StateMissing:
		if len(x.DiffersIn) > 0 {
			return []string{fmt.Sprintf("%s is missing: the baseline has it, and the run of that name is another "+
				"experiment, since it differs in %s", x.Label, strings.Join(x.DiffersIn, "; "))}
		}
		return []string{x.Label + " is missing: the baseline has it, and no run is of it"}
	case StateFailing:
		why := *x.Status
		if x.Reason != "" {
			why += ": " + x.Reason
		}
		out = append(out, fmt.Sprintf("%s fails now (%s) and did not in the baseline", x.Label, why))
	}
	for i := range x.Comparisons {
		c := &x.Comparisons[i]
		switch c.Verdict {
		case VerdictUnchecked:
			out = append(out, fmt.Sprintf("%s: %s could not be checked: %s", x.Label, mustParse(c.Metric).Title(),
				c.Reason))
		case VerdictExceeded:
			out = append(out, x.Label+": "+c.sentence(o)+x.cause(c))
		}
	}
	return out
}

// sentence says by how much the metric grew, or fell where less is worse.
func (c *Comparison) sentence(o *Options) string {
	m := mustParse(c.Metric)
	if *c.Baseline == 0 {
		s := fmt.Sprintf("%s grew from nothing to %s", m.Title(), quantity(*c.Current, c.Unit))
		if c.Unit == compare.UnitBytes {
			s += fmt.Sprintf(", more than the floor of %s", quantity(float64(o.Floor), c.Unit))
		}
		return s
	}
	verb, by := "grew", *c.Delta
	if m.More() {
		verb, by = "fell", -by
	}
	return fmt.Sprintf("%s %s by %s (%s), from %s to %s, and the threshold is %s", m.Title(), verb,
		quantity(by, c.Unit), percentText(by / *c.Baseline),
		quantity(*c.Baseline, c.Unit), quantity(*c.Current, c.Unit), c.Limit)
}

// cause names the category that grew most where the peak did.
func (x *Experiment) cause(c *Comparison) string {
	if c.Metric != compare.MetricPeak || x.grown == "" {
		return ""
	}
	return fmt.Sprintf("; the largest part of it is %s (+%s)", x.grown,
		quantity(float64(x.grownBytes), compare.UnitBytes))
}

// growth finds the category that grew most between two peaks, the first of equals; empty where none did or one side is
// not broken down.
func growth(base, now *schemas.BaselineExperiment) (category schemas.Category, bytes int64) {
	if base.Categories == nil || now.Categories == nil {
		return "", 0
	}
	for _, c := range schemas.Categories {
		if d := now.Categories[c] - base.Categories[c]; d > bytes {
			category, bytes = c, d
		}
	}
	return category, bytes
}

// quantity prints a value with its unit in a sentence. Bytes too few to show in MiB are printed as bytes.
func quantity(v float64, u compare.Unit) string {
	switch u {
	case compare.UnitBytes:
		if v < 1<<20/10 {
			return prose.Thousands(strconv.FormatFloat(v, 'f', -1, 64)) + " bytes"
		}
		return prose.MiB(int64(v))
	case compare.UnitMS:
		return prose.Thousands(strconv.FormatFloat(v, 'f', 3, 64)) + " ms"
	case compare.UnitJoules:
		return strconv.FormatFloat(v, 'f', 3, 64) + " J"
	}
	return strconv.FormatFloat(v, 'f', 2, 64) + " a second"
}

// percentText prints a share with two digits, and with more where two would make a change look like a round number that
// it is not.
func percentText(share float64) string {
	exact := 100 * share
	for digits := 2; digits <= 10; digits++ {
		text := strconv.FormatFloat(exact, 'f', digits, 64)
		shown, _ := strconv.ParseFloat(text, 64)
		if shown != math.Trunc(shown) || math.Abs(shown-exact) < 1e-11 {
			return text + " %"
		}
	}
	return strconv.FormatFloat(exact, 'f', 2, 64) + " %"
}

// Sentence is the check's result in one.
func (d *Document) Sentence() string {
	switch n := len(d.Failures); n {
	case 0:
		matched := 0
		for i := range d.Experiments {
			if len(d.Experiments[i].Comparisons) > 0 {
				matched++
			}
		}
		return fmt.Sprintf("no regression in %s", countOf(matched, "experiment"))
	case 1:
		return d.Failures[0]
	default:
		return fmt.Sprintf("%s; and %d more", d.Failures[0], n-1)
	}
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
