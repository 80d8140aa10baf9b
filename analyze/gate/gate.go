package gate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// Schema is the version of [Document].
const Schema = "dpsight.check/1"

// Document is what "dpsight check --format json" prints.
type Document struct {
	Schema      string           `json:"schema"`
	OK          bool             `json:"ok"`
	Baseline    string           `json:"baseline"` // as it was named
	Thresholds  []CheckThreshold `json:"thresholds"`
	FloorBytes  int64            `json:"floor_bytes"` // what a metric that the baseline has none of may grow to
	Experiments []Experiment     `json:"experiments"` // in the baseline's order, then the new ones
	Failures    []string         `json:"failures"`    // a sentence each
	Warnings    []string         `json:"warnings"`
}

// CheckThreshold is a threshold as it was given: "category:*", "1.05".
type CheckThreshold struct {
	Metric string `json:"metric"`
	Ratio  string `json:"ratio"`
}

// Experiment is one experiment of the baseline, of the runs, or of both.
type Experiment struct {
	Key            *string        `json:"key"`
	Name           string         `json:"name"`
	Label          string         `json:"-"` // the name, with what tells it from others of that name
	Params         map[string]any `json:"params"`
	State          string         `json:"state"`
	Status         *string        `json:"status"` // of the runs; null where there is none
	Reason         string         `json:"reason,omitempty"`
	Source         *string        `json:"source"` // of the runs
	Profile        *string        `json:"profile"`
	Confidence     string         `json:"confidence,omitempty"` // of predicted runs
	BaselineSource *string        `json:"baseline_source"`
	Runs           int            `json:"runs"` // that ended well
	Comparisons    []Comparison   `json:"comparisons"`
	// DiffersIn is how a missing experiment and a new one of its name differ, so that they are not one: "batch_size: 8,
	// baseline 16".
	DiffersIn []string `json:"differs_in,omitempty"`

	command    []string
	grown      schemas.Category // that grew most at the peak; empty = none, or not known
	grownBytes int64
}

// The states of an experiment in a check. The first three fail it.
const (
	StateRegressed = "regressed" // a metric exceeds its threshold, or could not be checked
	StateMissing   = "missing"   // the baseline has it, and no run is of it
	StateFailing   = "failing"   // it ended well in the baseline and does not now
	StateSame      = "ok"
	StateNew       = "new"         // the baseline lacks it
	StateMended    = "mended"      // it did not end well in the baseline and does now
	StateBroken    = "still fails" // it ended well in neither
	StateLeftOut   = "left out"    // the baseline has it, no run is of it, and the check is partial
)

// Comparison is one metric of one experiment beside the baseline's.
type Comparison struct {
	Metric   string       `json:"metric"`
	Unit     compare.Unit `json:"unit"`
	Limit    string       `json:"limit"` // the threshold's ratio
	Baseline *float64     `json:"baseline"`
	Current  *float64     `json:"current"`
	Delta    *float64     `json:"delta"`
	Ratio    *float64     `json:"ratio"` // current over baseline
	Verdict  string       `json:"verdict"`
	Reason   string       `json:"reason,omitempty"` // why it was skipped or could not be checked
}

// The verdicts of a comparison. The first two fail the check.
const (
	VerdictExceeded  = "exceeded"
	VerdictUnchecked = "unchecked" // the baseline has it, and the run should
	VerdictOK        = "ok"
	VerdictSkipped   = "skipped" // the two cannot be compared
)

// Options say what a check lets pass.
type Options struct {
	Baseline   string // as it was named
	Thresholds []Threshold
	Floor      int64 // bytes
	// Partial takes an experiment of the baseline that no run is of for left out on purpose.
	Partial bool
	// Pair compares the only experiment with the only one of the baseline whatever they are: both were named.
	Pair bool
}

// Check holds runs to a baseline.
func Check(baseline schemas.Baseline, runs []analyze.Summary, o Options) Document {
	doc := Document{Schema: Schema, Baseline: o.Baseline, FloorBytes: o.Floor, Thresholds: []CheckThreshold{},
		Experiments: []Experiment{},
		Failures:    []string{}, Warnings: []string{}}
	for _, t := range o.Thresholds {
		doc.Thresholds = append(doc.Thresholds, CheckThreshold{t.Metric.String(), t.Text})
	}
	current := BaselineOf(runs, "")
	base, now := baseline.Experiments, current.Experiments
	pairs := MatchExperiments(base, now, o.Pair)
	baseLabels, nowLabels := ExperimentLabels(base), ExperimentLabels(now)
	warnings := compare.NewGrouped()
	compared, skipped := 0, ""
	for i := range base {
		j, matched := pairs[i]
		if !matched {
			doc.Experiments = append(doc.Experiments, missingExperiment(&base[i], baseLabels[i], &o))
			continue
		}
		x := checkPair(&base[i], &now[j], &o)
		x.Label = nowLabels[j]
		doc.Experiments = append(doc.Experiments, x)
		for _, w := range cautions(&base[i], &now[j], &o) {
			warnings.Add(w, x.Label)
		}
		for _, c := range x.Comparisons {
			switch c.Verdict {
			case VerdictSkipped:
				warnings.Add(mustParse(c.Metric).Title()+" is not compared: "+c.Reason, x.Label)
				skipped = c.Reason
			default:
				compared++
			}
		}
	}
	for j := range now {
		if !slices.Contains(slices.Collect(maps.Values(pairs)), j) {
			x := described(&now[j], nil)
			x.Label, x.State = nowLabels[j], StateNew
			doc.Experiments = append(doc.Experiments, x)
		}
	}
	tellNamesakes(doc.Experiments)
	for i := range doc.Experiments {
		doc.Failures = append(doc.Failures, doc.Experiments[i].failures(&o)...)
	}
	if len(doc.Failures) == 0 && compared == 0 {
		switch {
		case skipped != "":
		case len(pairs) > 0:
			skipped = "no experiment ended well in both"
		default:
			skipped = "no experiment is in both"
		}
		doc.Failures = append(doc.Failures, "nothing was compared: "+skipped)
	}
	doc.Warnings = append(append(doc.Warnings, warnings.Lines()...),
		identity.ArgumentNotes(identity.IdentitiesOf(now))...)
	doc.OK = len(doc.Failures) == 0
	return doc
}

func mustParse(s string) compare.Metric {
	m, err := compare.ParseMetric(s)
	if err != nil {
		panic(err) // it was printed by String
	}
	return m
}

func missingExperiment(b *schemas.BaselineExperiment, label string, o *Options) Experiment {
	x := described(nil, b)
	x.Label, x.State = label, StateMissing
	if o.Partial {
		x.State = StateLeftOut
	}
	return x
}

// described is an experiment without comparisons, as the runs say, else as the baseline does.
func described(now, base *schemas.BaselineExperiment) Experiment {
	x := Experiment{Comparisons: []Comparison{}}
	e := now
	if now == nil {
		e = base
	} else {
		x.Status, x.Reason, x.Source, x.Profile, x.Runs = &now.Status, now.Reason, &now.Source, now.Profile, now.Runs
		x.Confidence = now.Confidence
	}
	if base != nil {
		x.BaselineSource = &base.Source
	}
	x.Key, x.Name, x.Params, x.command = e.Key, e.Name, e.Params, e.Command
	return x
}

func checkPair(base, now *schemas.BaselineExperiment, o *Options) Experiment {
	x := described(now, base)
	wasOK, isOK := base.Status == schemas.StatusOK, now.Status == schemas.StatusOK
	switch {
	case wasOK && !isOK:
		x.State = StateFailing
	case !wasOK && !isOK:
		x.State = StateBroken
	case !wasOK:
		x.State = StateMended
	default:
		x.State = StateSame
	}
	if base.Runs == 0 || now.Runs == 0 {
		return x
	}
	x.grown, x.grownBytes = growth(base, now)
	for _, t := range expand(o.Thresholds, base, now) {
		c := compareMetric(base, now, &t, o.Floor)
		if (c.Verdict == VerdictExceeded || c.Verdict == VerdictUnchecked) && x.State != StateFailing {
			x.State = StateRegressed
		}
		x.Comparisons = append(x.Comparisons, c)
	}
	return x
}

// expand makes one threshold a category of category:*; a category's own threshold comes before it.
func expand(thresholds []Threshold, base, now *schemas.BaselineExperiment) []Threshold {
	var out []Threshold
	given := func(m compare.Metric) bool {
		return slices.ContainsFunc(thresholds, func(t Threshold) bool { return t.Metric == m })
	}
	for _, t := range thresholds {
		if t.Metric != (compare.Metric{Name: compare.MetricCategory, Of: compare.EveryCategory}) {
			out = append(out, t)
			continue
		}
		if base.Categories == nil || now.Categories == nil {
			if base.Categories != nil || now.Categories != nil { // one row says so
				out = append(out, t)
			}
			continue // a bare run has none, and was never asked for any
		}
		for _, c := range schemas.Categories {
			m := compare.Metric{Name: compare.MetricCategory, Of: c}
			if (base.Categories[c] != 0 || now.Categories[c] != 0) && !given(m) {
				out = append(out, Threshold{m, t.Ratio, t.Text})
			}
		}
	}
	return out
}

// compareMetric holds one metric to its threshold.
func compareMetric(base, now *schemas.BaselineExperiment, t *Threshold, floor int64) Comparison {
	m := t.Metric
	c := Comparison{Metric: m.String(), Unit: m.Unit(), Limit: t.Text, Baseline: valueOf(m, base),
		Current: valueOf(m, now)}
	if reason, bad := incomparable(base, now, m, c.Baseline, c.Current); reason != "" {
		c.Verdict, c.Reason = VerdictSkipped, reason
		if bad {
			c.Verdict = VerdictUnchecked
		}
		return c
	}
	delta := *c.Current - *c.Baseline
	c.Delta, c.Ratio = &delta, timing.Ratio(*c.Current, *c.Baseline)
	c.Verdict = VerdictOK
	if t.exceeded(*c.Baseline, *c.Current, floor) {
		c.Verdict = VerdictExceeded
	}
	return c
}

// incomparable says why two values cannot be compared, and whether that is a fault of the run: memory that the baseline
// knows must be known again, or a check would pass on what it did not see.
func incomparable(base, now *schemas.BaselineExperiment, m compare.Metric, before, after *float64) (reason string,
	fault bool) {
	measured := base.Source == schemas.Measured && now.Source == schemas.Measured
	memory := m.Name == compare.MetricPeak || m.Name == compare.MetricReserved || m.Name == compare.MetricCategory ||
		m.Name == compare.MetricPhasePeak
	switch {
	case !memory && !measured:
		who, source := "the run", now.Source
		if source == schemas.Measured {
			who, source = "the baseline", base.Source
		}
		return fmt.Sprintf("%s is %s, and only measured runs have it", who, source), false
	case before == nil && m.Name == compare.MetricCategory:
		return "the baseline's peak is not broken down", false
	case before == nil && m.Name == compare.MetricPhasePeak:
		return "the baseline has no such phase", false
	case before == nil:
		return "the baseline has none", false
	case after == nil && m.Name == compare.MetricCategory:
		return "the run's peak is not broken down", true
	case after == nil && m.Name == compare.MetricPhasePeak:
		return "the run has no such phase", false
	case after == nil:
		return "the run has none", memory || m.Name == compare.MetricTime
	case m.Timed() && base.StepMS != nil && now.StepMS != nil && base.StepMS.Clock != now.StepMS.Clock:
		return "GPU time cannot be compared with wall time", false
	}
	return "", false
}
