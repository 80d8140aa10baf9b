package gate

import (
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// Result is what a check found.
type Result struct {
	OK          bool
	Baseline    string // name of the baseline, as the user gave it
	Thresholds  []CheckThreshold
	FloorBytes  int64        // how many bytes a metric that the baseline lacks may grow
	Experiments []Experiment // experiments in the baseline's order, then the new ones
	// Nothing is the reason why the check compared no experiment, although no single experiment fails. Nothing is nil
	// if some experiment was compared.
	Nothing *Reason
	// Identities are the identities of the runs' experiments.
	Identities []identity.Identity
	// Gone lists tables that somebody removed from the runs or from the baseline's runs.
	Gone []GoneTable
	// Undigested counts the checked Runs that have files without digests. UndigestedBaseline is true if the baseline
	// has no digest.
	Runs, Undigested   int
	UndigestedBaseline bool
	// Acknowledged are the acknowledgements in the baseline that had no effect.
	Acknowledged []Acknowledged
	// Idle lists thresholds of a file for experiments that neither the baseline nor the runs have.
	Idle []CheckThreshold
}

// CheckThreshold is a threshold as given: "category:*", "1.05".
type CheckThreshold struct {
	Metric     string `json:"metric"`
	Experiment string `json:"experiment,omitempty"` // a glob of experiments' names; empty = all
	Ratio      string `json:"ratio"`
	Place      string `json:"place,omitempty"` // "dpsight.yaml:7"; empty = the command line or a default
}

// Experiment is one experiment of the baseline, of the runs, or of both.
type Experiment struct {
	Key            *string        `json:"key"`
	Name           string         `json:"name"`
	Label          string         `json:"-"` // the name, made unique if several experiments have it
	Params         map[string]any `json:"params"`
	State          string         `json:"state"`
	Fails          bool           `json:"fails"`  // the experiment makes the check fail
	Status         *string        `json:"status"` // status of the runs; null if there is no run
	Reason         string         `json:"reason,omitempty"`
	Source         *string        `json:"source"` // source of the runs
	Profile        *string        `json:"profile"`
	Confidence     string         `json:"confidence,omitempty"` // level of confidence of predicted runs
	BaselineSource *string        `json:"baseline_source"`
	BaselineStatus *string        `json:"baseline_status"`
	Runs           int            `json:"runs"` // number of runs that ended well
	// PeakBytes and BaselinePeakBytes are the peaks of the runs and of the baseline, given even if no threshold is on
	// the peak.
	PeakBytes         *int64       `json:"peak_bytes"`
	BaselinePeakBytes *int64       `json:"baseline_peak_bytes"`
	Comparisons       []Comparison `json:"-"`
	// DiffersIn says how a missing experiment and a new experiment of the same name differ, so that the two were not
	// paired.
	DiffersIn []Difference `json:"-"`
	// Grown is the category that grew most at the peak; empty = no category grew, or it is not known.
	Grown      schemas.Category `json:"-"`
	GrownBytes int64            `json:"-"`
	Cautions   []Caution        `json:"-"`
	// Places are the categories, modules and lines in which a regressed experiment grew, the largest growth first; see
	// [Experiment.Locate].
	Places []Place `json:"places,omitempty"`
	// RunID and BaselineRunID are the runs with the median peaks; empty if there are no runs, as for a baseline file.
	RunID, BaselineRunID string `json:"-"`
	// BaselinePlaces are the baseline's places, if the baseline is a file with places.
	BaselinePlaces []schemas.BaselinePlace `json:"-"`

	command []string
}

// OtherRules reports whether different rules made the categories of the run and of the baseline.
func (x *Experiment) OtherRules() bool {
	return slices.ContainsFunc(x.Cautions, func(c Caution) bool { return c.Kind == CautionRules })
}

// Comparison compares one metric of one experiment with the baseline's value.
type Comparison struct {
	Metric   string       `json:"metric"`
	Unit     compare.Unit `json:"unit"`
	Limit    string       `json:"limit"` // ratio of the threshold
	Baseline *float64     `json:"baseline"`
	Current  *float64     `json:"current"`
	Delta    *float64     `json:"delta"`
	Ratio    *float64     `json:"ratio"` // current value over the baseline's
	// BaselineHigh and CurrentHigh are the upper bounds of a bounded value; null for values without bounds.
	BaselineHigh *float64 `json:"baseline_high,omitempty"`
	CurrentHigh  *float64 `json:"current_high,omitempty"`
	Verdict      string   `json:"verdict"`
	// Acknowledged is what lets the metric pass though it exceeds its threshold; null if no acknowledgement applies.
	Acknowledged *schemas.Acknowledgement `json:"acknowledged,omitempty"`
	Reason       *Reason                  `json:"-"` // why the metric was not checked; nil if it was
}

// The verdicts of a comparison. VerdictExceeded and VerdictUnchecked fail the check.
const (
	VerdictExceeded  = "exceeded"
	VerdictUnchecked = "unchecked" // the baseline has the metric, and the run should have it too
	VerdictOK        = "ok"
	VerdictImproved  = "improved" // better by more than the threshold allows a worse value
	VerdictSkipped   = "skipped"  // the two values cannot be compared
	// VerdictAcknowledged: the metric exceeds its threshold, and an acknowledgement in the baseline lets it pass.
	VerdictAcknowledged = "acknowledged"
)

// Options sets what a check tolerates.
type Options struct {
	Baseline   string // name of the baseline, as the user gave it
	BaselineAt string // where the baseline lies, if not under its name
	Thresholds []Threshold
	Floor      int64 // bytes
	// Today is the day of the check, in UTC, in the same form as in acknowledgements.
	Today string
	// Partial accepts that an experiment of the baseline has no run.
	Partial bool
	// Pair compares the only experiment of the runs with the only experiment of the baseline, even if these experiments
	// differ, since the user named both.
	Pair bool
}

// Check compares runs with a baseline.
func Check(baseline schemas.Baseline, runs []analyze.Summary, o Options) Result {
	r := Result{Baseline: o.Baseline, FloorBytes: o.Floor, Thresholds: []CheckThreshold{}, Experiments: []Experiment{},
		Runs: len(runs), UndigestedBaseline: baseline.Undigested()}
	for i := range runs {
		if runs[i].Undigested {
			r.Undigested++
		}
	}
	for _, t := range o.Thresholds {
		r.Thresholds = append(r.Thresholds, CheckThreshold{t.Metric.String(), t.Experiment, t.Text, t.Place})
	}
	current := BaselineOf(runs, "")
	base, now := baseline.Experiments, current.Experiments
	pairs := MatchExperiments(base, now, o.Pair)
	baseLabels, nowLabels := ExperimentLabels(base), ExperimentLabels(now)
	for i := range base {
		j, matched := pairs[i]
		if !matched {
			r.Experiments = append(r.Experiments, goneExperiment(&base[i], baseLabels[i], &o))
			continue
		}
		x := checkPair(&base[i], &now[j], &o, baseLabels[i], nowLabels[j])
		r.Acknowledged = append(r.Acknowledged, x.acknowledge(base[i].Acknowledged, o.Today)...)
		x.settle(&base[i], &now[j])
		for _, table := range base[i].Gone {
			r.Gone = append(r.Gone, GoneTable{Label: x.Label, Table: table, OfBaseline: true})
		}
		r.Experiments = append(r.Experiments, x)
	}
	matched := map[int]bool{}
	for _, j := range pairs {
		matched[j] = true
	}
	for j := range now {
		if !matched[j] {
			x := described(&now[j], nil)
			x.Label, x.State = nowLabels[j], StateNew
			r.Experiments = append(r.Experiments, x)
		}
	}
	for i, t := range o.Thresholds {
		if t.Experiment != "" && !slices.ContainsFunc(slices.Concat(baseLabels, nowLabels, namesOf(base), namesOf(now)),
			func(s string) bool { return matches(t.Experiment, s) }) {
			r.Idle = append(r.Idle, r.Thresholds[i])
		}
	}
	tellNamesakes(r.Experiments)
	r.Identities = identity.IdentitiesOf(now)
	for j := range now {
		for _, table := range now[j].Gone {
			r.Gone = append(r.Gone, GoneTable{Label: nowLabels[j], Table: table})
		}
	}
	r.judge(len(pairs) > 0)
	return r
}

func namesOf(list []schemas.BaselineExperiment) (names []string) {
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names
}

// GoneTable is a table that somebody removed from a run of an experiment, or from a run of its baseline.
type GoneTable struct {
	Label, Table string
	OfBaseline   bool
}

// judge decides whether the check passes. A check that compared nothing does not pass.
func (r *Result) judge(paired bool) {
	nothing := &Reason{Why: NotInBoth}
	if paired {
		nothing = &Reason{Why: NotWellInBoth}
	}
	failed := false
	for i := range r.Experiments {
		x := &r.Experiments[i]
		failed = failed || x.Fails
		if x.State == StateImproved { // the status was compared, even if no metric was
			nothing = nil
		}
		for k := range x.Comparisons {
			if c := &x.Comparisons[k]; c.Verdict != VerdictSkipped {
				nothing = nil
			} else if nothing != nil {
				nothing = c.Reason
			}
		}
	}
	if !failed {
		r.Nothing = nothing
	}
	r.OK = !failed && nothing == nil
}

func goneExperiment(b *schemas.BaselineExperiment, label string, o *Options) Experiment {
	x := described(nil, b)
	x.Label, x.State, x.Fails = label, StateGone, !o.Partial
	return x
}

// described returns an experiment without comparisons. The experiment's name and other facts come from the runs, or
// from the baseline if there are no runs.
func described(now, base *schemas.BaselineExperiment) Experiment {
	x := Experiment{Comparisons: []Comparison{}}
	e := now
	if now == nil {
		e = base
	} else {
		x.Status, x.Reason, x.Source, x.Profile, x.Runs = &now.Status, now.Reason, &now.Source, now.Profile, now.Runs
		x.Confidence, x.PeakBytes = now.Confidence, now.PeakBytes
	}
	if base != nil {
		x.BaselineSource, x.BaselineStatus, x.BaselinePeakBytes = &base.Source, &base.Status, base.PeakBytes
	}
	x.Key, x.Name, x.Params, x.command = e.Key, e.Name, e.Params, e.Command
	return x
}

func checkPair(base, now *schemas.BaselineExperiment, o *Options, baseLabel, label string) Experiment {
	x := described(now, base)
	x.Label, x.RunID, x.BaselineRunID, x.BaselinePlaces = label, now.RunID, base.RunID, base.Places
	if base.Runs > 0 && now.Runs > 0 {
		x.Grown, x.GrownBytes = growth(base, now)
		for _, t := range expand(o.Thresholds, base, now, base.Name, now.Name, baseLabel, label) {
			x.Comparisons = append(x.Comparisons, compareMetric(base, now, &t, o.Floor))
		}
	}
	x.Cautions = cautions(base, now, x.Comparisons)
	return x
}

// growth finds the category that grew most between two peaks, and by how much. Of equal categories it returns the
// first. growth returns "" if no category grew, if one side is not broken down, or if different rules made the
// categories.
func growth(base, now *schemas.BaselineExperiment) (category schemas.Category, bytes int64) {
	if base.Categories == nil || now.Categories == nil || now.OtherRules(base) {
		return "", 0
	}
	for _, c := range schemas.Categories {
		if d := now.Categories[c] - base.Categories[c]; d > bytes {
			category, bytes = c, d
		}
	}
	return category, bytes
}

// compareMetric checks one metric against its threshold.
func compareMetric(base, now *schemas.BaselineExperiment, t *Threshold, floor int64) Comparison {
	m := t.Metric
	c := Comparison{Metric: m.String(), Unit: m.Unit(), Limit: t.Text, Baseline: valueOf(m, base),
		Current: valueOf(m, now)}
	if reason, fault := incomparable(base, now, m, c.Baseline, c.Current); reason != nil {
		c.Verdict, c.Reason = VerdictSkipped, reason
		if isGlob(m.Of) { // several categories together have no value
			c.Baseline, c.Current = nil, nil
		}
		if fault {
			c.Verdict = VerdictUnchecked
		}
		return c
	}
	if open := openOf(m, base); open > 0 {
		c.BaselineHigh = new(*c.Baseline + open)
	}
	if open := openOf(m, now); open > 0 {
		c.CurrentHigh = new(*c.Current + open)
	}
	delta := *c.Current - *c.Baseline
	c.Delta, c.Ratio = &delta, timing.Ratio(*c.Current, *c.Baseline)
	c.Verdict = VerdictOK
	switch before, after := *c.Baseline+openOf(m, base), *c.Current+openOf(m, now); {
	case t.exceeded(before, *c.Current, floor):
		c.Verdict = VerdictExceeded
		if m.Name == compare.MetricTime {
			c.Reason = insignificant(base.StepMS.Runs, now.StepMS.Runs)
		}
		if c.Reason != nil {
			c.Verdict = VerdictOK
		}
	case t.exceeded(after, *c.Baseline, floor):
		c.Verdict = VerdictImproved
	case t.exceeded(*c.Baseline, after, floor): // if the bounds of the two values overlap, the verdict is open
		c.Verdict, c.Reason = VerdictUnchecked, &Reason{Why: NotExact, OfBaseline: after == *c.Current}
	}
	return c
}
