package gate

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/schemas"
)

// The states of an experiment in a check. Field Fails of [Experiment] says whether the experiment fails the check.
const (
	StateOK            = "ok"
	StateImproved      = "improved"       // better by more than a threshold allows a worse value, or ends well again
	StateRegressed     = "regressed"      // a metric exceeds its threshold; fails unless that is acknowledged
	StateNotComparable = "not comparable" // nothing could be compared; fails if something should have been compared
	StateNewlyFailing  = "newly failing"  // the experiment ended well in the baseline and does not now; fails
	StateNewlyOOM      = "newly OOM"      // the experiment ended well in the baseline and now runs out of memory; fails
	StateNew           = "new"            // the baseline lacks the experiment
	// StateGone: the baseline has the experiment, and no run belongs to it. An experiment with StateGone fails unless
	// the check is partial.
	StateGone = "gone"
)

// States lists all states of an experiment, those that fail a check first.
var States = []string{StateNewlyOOM, StateNewlyFailing, StateRegressed, StateNotComparable, StateGone, StateNew,
	StateImproved, StateOK}

// settle sets the state of an experiment that both the runs and the baseline have, from its comparisons.
func (x *Experiment) settle(base, now *schemas.BaselineExperiment) {
	has := func(verdict string) bool {
		return slices.ContainsFunc(x.Comparisons, func(c Comparison) bool { return c.Verdict == verdict })
	}
	wasOK, isOK := base.Status == schemas.StatusOK, now.Status == schemas.StatusOK
	exceeded, unchecked := has(VerdictExceeded), has(VerdictUnchecked)
	switch {
	case wasOK && now.Status == schemas.StatusOOM:
		x.State = StateNewlyOOM
	case wasOK && !isOK:
		x.State = StateNewlyFailing
	case exceeded, has(VerdictAcknowledged):
		x.State = StateRegressed
	case unchecked:
		x.State = StateNotComparable
	case !wasOK && isOK, x.improved(base, now):
		x.State = StateImproved
	case has(VerdictOK), has(VerdictImproved):
		x.State = StateOK
	default:
		x.State = StateNotComparable
	}
	x.Fails = wasOK && !isOK || exceeded || unchecked
}

// improved reports whether a metric of the experiment improved. A category counts as improved only if the peak is lower
// too, since bytes that moved to another category are not saved.
func (x *Experiment) improved(base, now *schemas.BaselineExperiment) bool {
	lower := base.PeakBytes != nil && now.PeakBytes != nil && *now.PeakBytes < *base.PeakBytes
	return slices.ContainsFunc(x.Comparisons, func(c Comparison) bool {
		m, err := compare.ParseMetric(c.Metric)
		return c.Verdict == VerdictImproved && err == nil && (lower || m.Name != compare.MetricCategory)
	})
}
