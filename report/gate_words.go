package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// CheckSchema is the version of [CheckDocument].
const CheckSchema = "dpsight.check/2"

// CheckDocument is what "dpsight check --format json" prints.
type CheckDocument struct {
	Schema      string                `json:"schema"`
	OK          bool                  `json:"ok"`
	Baseline    string                `json:"baseline"` // name of the baseline, as the user gave it
	Thresholds  []gate.CheckThreshold `json:"thresholds"`
	FloorBytes  int64                 `json:"floor_bytes"` // how many bytes a metric that the baseline lacks may have
	Experiments []CheckExperiment     `json:"experiments"` // experiments in the baseline's order, then the new ones
	Failures    []string              `json:"failures"`    // failures, each a sentence
	Warnings    []string              `json:"warnings"`
}

// CheckExperiment is one experiment of a check, in words.
type CheckExperiment struct {
	gate.Experiment
	Comparisons []CheckComparison `json:"comparisons"`
	DiffersIn   []string          `json:"differs_in,omitempty"` // differences, such as "batch_size: 8, baseline 16"
}

// CheckComparison compares one metric of one experiment with the baseline.
type CheckComparison struct {
	gate.Comparison
	Reason string `json:"reason,omitempty"` // why the metric was skipped or could not be checked
}

// NewCheckDocument puts a check into words.
func NewCheckDocument(r gate.Result) CheckDocument {
	doc := CheckDocument{Schema: CheckSchema, OK: r.OK, Baseline: r.Baseline, Thresholds: r.Thresholds,
		FloorBytes: r.FloorBytes, Experiments: []CheckExperiment{}, Failures: []string{}}
	warnings := compare.NewGrouped()
	for i := range r.Experiments {
		x := CheckExperiment{Experiment: r.Experiments[i], Comparisons: []CheckComparison{}}
		for k := range x.Experiment.DiffersIn {
			x.DiffersIn = append(x.DiffersIn, differenceWords(&x.Experiment.DiffersIn[k]))
		}
		for k := range x.Cautions {
			warnings.Add(cautionWords(&x.Cautions[k]), x.Label)
		}
		for _, c := range x.Experiment.Comparisons {
			said := CheckComparison{Comparison: c}
			if c.Reason != nil {
				said.Reason = reasonWords(c.Reason)
			}
			if c.Verdict == gate.VerdictSkipped {
				warnings.Add(metricName(c.Metric)+" is not compared: "+said.Reason, x.Label)
			}
			x.Comparisons = append(x.Comparisons, said)
		}
		doc.Experiments = append(doc.Experiments, x)
		for _, f := range x.failures(r.FloorBytes) {
			doc.Failures = append(doc.Failures, f.sentence)
		}
	}
	for _, g := range r.Gone {
		table := g.Table
		if g.OfBaseline {
			table = "the baseline's " + table
		}
		warnings.Add(goneWords(table), g.Label)
	}
	if r.Nothing != nil {
		doc.Failures = append(doc.Failures, "nothing was compared: "+reasonWords(r.Nothing))
	}
	doc.Warnings = append(warnings.Lines(), unlikeWords(identity.UnlikeArguments(r.Identities))...)
	doc.Warnings = append(doc.Warnings, undigestedOf(r.Undigested, r.Runs)...)
	for i := range r.Acknowledged {
		doc.Warnings = append(doc.Warnings, idleWords(&r.Acknowledged[i]))
	}
	for _, t := range r.Idle {
		doc.Warnings = append(doc.Warnings, fmt.Sprintf("%s: no experiment has the name %q", t.Place, t.Experiment))
	}
	if r.UndigestedBaseline {
		doc.Warnings = append(doc.Warnings, "an older dpsight wrote the baseline without a digest, so damage to it "+
			"is not detected; --write-baseline writes one with a digest")
	}
	return doc
}

// Sentence returns the check's result in one sentence.
func (d *CheckDocument) Sentence() string {
	switch n := len(d.Failures); n {
	case 0:
		matched, acknowledged := 0, 0
		for i := range d.Experiments {
			list := d.Experiments[i].Comparisons
			if len(list) > 0 {
				matched++
			}
			for k := range list {
				if list[k].Verdict == gate.VerdictAcknowledged {
					acknowledged++
				}
			}
		}
		of := units.Plural(matched, "experiment", "experiments")
		if acknowledged > 0 {
			return fmt.Sprintf("no new regression in %s; acknowledged: %d", of, acknowledged)
		}
		return "no regression in " + of
	case 1:
		return d.Failures[0]
	default:
		return fmt.Sprintf("%s; and %d more", d.Failures[0], n-1)
	}
}

// BaselineGaps lists what a check against the baseline cannot detect, because the baseline lacks figures.
func BaselineGaps(b *schemas.Baseline) []string {
	g := compare.NewGrouped()
	for _, gap := range gate.Gaps(b) {
		if len(gap.Gone) > 0 {
			g.Add("the baseline lacks figures: the run has no "+strings.Join(gap.Gone, ", ")+"; dpsight ingest --again "+
				"rebuilds it from the journal", gap.Label)
		} else if gap.Status != schemas.StatusOK {
			g.Add("it did not end well ("+gap.Status+"), and a check accepts the same ending", gap.Label)
		} else {
			g.Add("it has no peak, so a check will not compare it", gap.Label)
		}
	}
	return g.Lines()
}

// A checkFailure is one reason why an experiment fails the check.
type checkFailure struct {
	sentence string
	place    *gate.Place // where most of the growth is; nil if unknown
}

// failures returns the reasons why the experiment fails the check.
func (x *CheckExperiment) failures(floor int64) []checkFailure {
	var out []checkFailure
	switch {
	case !x.Fails:
		return nil
	case x.State == gate.StateGone:
		if len(x.DiffersIn) > 0 {
			return []checkFailure{{sentence: fmt.Sprintf("%s is missing: the baseline has it, but the run of that name is "+
				"another experiment (%s)", x.Label, strings.Join(x.DiffersIn, "; "))}}
		}
		return []checkFailure{{sentence: x.Label + " is missing: the baseline has it, but no run does"}}
	case x.newlyFails():
		why := *x.Status
		if x.Reason != "" {
			why += ": " + x.Reason
		}
		out = append(out, checkFailure{sentence: fmt.Sprintf("%s fails (%s), and did not in the baseline", x.Label,
			why)})
	}
	for i := range x.Comparisons {
		c := &x.Comparisons[i]
		switch c.Verdict {
		case gate.VerdictUnchecked:
			out = append(out, checkFailure{sentence: fmt.Sprintf("%s: %s could not be checked: %s", x.Label,
				metricName(c.Metric), c.Reason)})
		case gate.VerdictExceeded:
			f := checkFailure{x.Label + ": " + c.sentence(floor) + x.cause(c), x.place(c.Metric)}
			if f.place != nil {
				f.sentence += "; its largest place: " + placeWords(f.place)
			}
			out = append(out, f)
		}
	}
	return out
}

// sentence says by how much the metric grew, or by how much it fell if a lower value is worse.
func (c *CheckComparison) sentence(floor int64) string {
	name := metricName(c.Metric)
	if *c.Baseline == 0 {
		s := fmt.Sprintf("%s grew from nothing to %s", name, quantity(*c.Current, c.Unit))
		if c.Unit == compare.UnitBytes {
			s += fmt.Sprintf(", more than the floor of %s", quantity(float64(floor), c.Unit))
		}
		return s
	}
	verb, by := "grew", *c.Delta
	if m, err := compare.ParseMetric(c.Metric); err == nil && m.More() {
		verb, by = "fell", -by
	}
	return fmt.Sprintf("%s %s by %s (%s), from %s to %s; the threshold is %s", name, verb,
		quantity(by, c.Unit), percentText(by / *c.Baseline),
		quantity(*c.Baseline, c.Unit), quantity(*c.Current, c.Unit), c.Limit)
}

// cause names the category that grew most, if the metric is the peak.
func (x *CheckExperiment) cause(c *CheckComparison) string {
	if c.Metric != compare.MetricPeak || x.Grown == "" {
		return ""
	}
	return fmt.Sprintf("; the largest part of it is %s (+%s)", x.Grown,
		quantity(float64(x.GrownBytes), compare.UnitBytes))
}

// differenceWords name a difference: "batch_size: 8, baseline 4".
func differenceWords(d *gate.Difference) string {
	text := func(s *string) string {
		if s == nil {
			return "none"
		}
		return *s
	}
	return d.What + ": " + text(d.Now) + ", baseline " + text(d.Baseline)
}

// cautionWords state what else may have changed the figures of an experiment and its baseline.
func cautionWords(c *gate.Caution) string {
	var differ []string
	for i := range c.Differ {
		differ = append(differ, differenceWords(&c.Differ[i]))
	}
	switch c.Kind {
	case gate.CautionSource:
		return fmt.Sprintf("the run is %s, the baseline %s", *c.Differ[0].Now, *c.Differ[0].Baseline)
	case gate.CautionConfidence:
		return fmt.Sprintf("the confidence differs: %s, baseline %s", *c.Differ[0].Now, *c.Differ[0].Baseline)
	case gate.CautionVersion:
		d := &c.Differ[0]
		return fmt.Sprintf("%s differs: %s, baseline %s", d.What, *d.Now, *d.Baseline)
	case gate.CautionRules:
		mend := "dpsight ingest --again STORE updates the run"
		if c.Rules[1] < c.Rules[0] {
			mend = "dpsight ingest --again STORE updates the runs, --write-baseline a file"
		}
		return fmt.Sprintf("the peak is comparable, but its categories are not: the run has %s, the baseline %s; %s",
			rulesName(c.Rules[0]), rulesName(c.Rules[1]), mend)
	case gate.CautionParameters:
		return "compared although the parameters differ: " + strings.Join(differ, "; ")
	case gate.CautionArguments:
		return "compared although the commands differ in their " + differ[0]
	case gate.CautionNormOnly:
		return "norm_only computes only norms: it clips nothing, adds no noise and is not private, unlike the other method"
	case gate.CautionOverlap:
		return fmt.Sprintf("the spreads of the step times overlap: %.3g to %.3g ms, baseline %.3g to %.3g ms",
			c.Now.Low, c.Now.High, c.Baseline.Low, c.Baseline.High)
	}
	panic("no words for the caution " + string(c.Kind))
}

// acknowledgedWords say who acknowledged a change, up to which value, until when, and why.
func acknowledgedWords(a *schemas.Acknowledgement, unit compare.Unit) string {
	return fmt.Sprintf("acknowledged by %s up to %s, until %s: %s", a.By, quantity(a.UpTo, unit), a.Until, a.Why)
}

// idleWords say why an acknowledgement has no effect.
func idleWords(a *gate.Acknowledged) string {
	m, _ := compare.ParseMetric(a.Metric)
	said := fmt.Sprintf("%s: %s was acknowledged by %s (%s)", a.Label, metricName(a.Metric), a.By, a.Why)
	switch a.Idle {
	case gate.IdleExpired:
		return said + fmt.Sprintf(" until %s, which has passed", a.Until)
	case gate.IdleExceeded:
		return said + fmt.Sprintf(" up to %s, but it is worse", quantity(a.UpTo, m.Unit()))
	}
	return said + fmt.Sprintf(" until %s, but nothing exceeds its threshold", a.Until)
}

// reasonWords say why values were not compared.
func reasonWords(r *gate.Reason) string {
	side := "the run"
	if r.OfBaseline {
		side = "the baseline"
	}
	switch r.Why {
	case gate.NotMeasured:
		return side + " is " + r.Source + "; only measured runs have it"
	case gate.NotBrokenDown:
		return side + "'s peak is not broken down"
	case gate.NotKept:
		return side + "'s " + r.Table + " is missing"
	case gate.NotAPhase:
		return side + " has no such phase"
	case gate.NotSignificant:
		return fmt.Sprintf("it may be chance: a rank test of %d runs against the baseline's %d gives p = %.2f", r.Runs[0],
			r.Runs[1], r.P)
	case gate.NotExact:
		return side + " has only bounds, and they include the threshold"
	case gate.NotOneRules:
		return fmt.Sprintf("not comparable: the run has %s, the baseline %s", rulesName(r.Rules[0]),
			rulesName(r.Rules[1]))
	case gate.NotOneClock:
		return "GPU time cannot be compared with wall time"
	case gate.NotWellInBoth:
		return "no experiment ended well in both"
	case gate.NotInBoth:
		return "no experiment is in both"
	case gate.NotKnown:
		return side + " has none"
	}
	panic("no words for the reason " + string(r.Why))
}

// quantity prints a value with its unit in a sentence. Bytes that would show as 0 MiB are printed in bytes.
func quantity(v float64, u compare.Unit) string {
	switch u {
	case compare.UnitBytes:
		if v < 1<<20/10 {
			return units.Grouped(strconv.FormatFloat(v, 'f', -1, 64)) + " bytes"
		}
		return units.MiB(int64(v))
	case compare.UnitMS:
		return units.Grouped(strconv.FormatFloat(v, 'f', 3, 64)) + " ms"
	case compare.UnitJoules:
		return strconv.FormatFloat(v, 'f', 3, 64) + " J"
	}
	return strconv.FormatFloat(v, 'f', 2, 64) + " a second"
}

// percentText prints a share with two digits. percentText uses more digits if two would make the share look like a
// whole number.
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
