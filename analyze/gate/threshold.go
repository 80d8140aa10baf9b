package gate

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/near"
	"github.com/dpsight/dpsight/schemas/units"
)

// A Threshold is how much of a metric a check lets pass: Ratio times the baseline's, and no more. Of samples and tokens
// a second, of which less is worse, it is the baseline's over Ratio, and no less.
type Threshold struct {
	Metric compare.Metric
	Ratio  *big.Rat // exact: 1.05 is 21/20, so growth of exactly 5 % passes on every number of bytes
	Text   string   // the ratio as given
}

// DefaultThresholds are what a check holds runs to where nobody says.
var DefaultThresholds = []string{"peak=1.05", "time=1.10"}

// ParseThresholds reads "peak=1.05", "category:gradients=5%", "category:*=1.05"; a ratio alone is the peak's.
func ParseThresholds(list []string) ([]Threshold, error) {
	var out []Threshold
	seen := map[compare.Metric]bool{}
	for _, s := range list {
		t, err := parseThreshold(s)
		if err != nil {
			return nil, err
		}
		if seen[t.Metric] {
			return nil, fmt.Errorf("threshold %q: %s is given twice", s, t.Metric)
		}
		seen[t.Metric] = true
		out = append(out, t)
	}
	return out, nil
}

func parseThreshold(s string) (Threshold, error) {
	name, ratio, has := strings.Cut(s, "=")
	if !has {
		name, ratio = compare.MetricPeak, s
	}
	metric, err := compare.ParseMetric(strings.TrimSpace(name))
	if err != nil {
		return Threshold{}, fmt.Errorf("threshold %q: %w", s, err)
	}
	if metric.Name == compare.MetricPhase {
		// The time of a phase is in no baseline document: its spread is, in small phases, larger than any sensible
		// threshold.
		return Threshold{}, fmt.Errorf("threshold %q: a phase is held to its memory, phase-peak:%s, not to its time", s,
			metric.Of)
	}
	ratio = strings.TrimSpace(ratio)
	r, ok := parseRatio(ratio)
	if !ok && !has {
		return Threshold{}, fmt.Errorf("threshold %q is not NAME=RATIO", s)
	}
	if !ok {
		return Threshold{}, fmt.Errorf("threshold %q: %q is not a ratio like 1.05 or a growth like 5%%", s, ratio)
	}
	if r.Cmp(big.NewRat(1, 1)) < 0 {
		return Threshold{}, fmt.Errorf("threshold %q: a ratio below 1 would fail without any growth", s)
	}
	if !strings.Contains(ratio, "%") && r.Cmp(big.NewRat(mostRatio, 1)) >= 0 {
		return Threshold{}, fmt.Errorf("threshold %q lets pass %s times the baseline's: for a growth of %s %% write "+
			"%s%%, for the ratio itself %s%%", s, ratio, ratio, ratio, percentOver(r))
	}
	return Threshold{metric, r, ratio}, nil
}

// mostRatio is the least ratio that nobody means: who writes peak=5 means a growth of 5 %. A larger one can be given in
// percent.
const mostRatio = 3

// percentOver is by how many percent a ratio is over 1.
func percentOver(r *big.Rat) string {
	over := new(big.Rat).Sub(r, big.NewRat(1, 1))
	return strings.TrimSuffix(strings.TrimRight(over.Mul(over, big.NewRat(100, 1)).FloatString(2), "0"), ".")
}

// CheckPhases refuses a threshold on a phase that neither the baseline nor the runs have: a mistyped one would hold
// nothing, and the check pass. Where none has any phases it says nothing.
func CheckPhases(thresholds []Threshold, baseline schemas.Baseline, runs []analyze.Summary) error {
	known := map[string]bool{}
	for _, list := range [][]schemas.BaselineExperiment{baseline.Experiments, BaselineOf(runs, "").Experiments} {
		for i := range list {
			for phase := range list[i].PhasePeaks {
				known[phase] = true
			}
		}
	}
	for _, t := range thresholds {
		if t.Metric.Name == compare.MetricPhasePeak && len(known) > 0 && !known[t.Metric.Of] {
			return fmt.Errorf("threshold %q: no experiment has a phase %q%s", t.Metric.String()+"="+t.Text, t.Metric.Of,
				near.Guess(t.Metric.Of, slices.Sorted(maps.Keys(known))))
		}
	}
	return nil
}

// parseRatio reads "1.05" or "5%" exactly.
func parseRatio(s string) (*big.Rat, bool) {
	digits, percent := strings.CutSuffix(s, "%")
	r, ok := units.ParseDecimal(digits)
	if ok && percent {
		r.Quo(r, big.NewRat(100, 1))
		r.Add(r, big.NewRat(1, 1))
	}
	return r, ok
}

// exceeded reports whether current is worse than the threshold allows. Where the baseline has none of it, so that no
// ratio means anything, more than the floor is too much.
func (t *Threshold) exceeded(baseline, current float64, floor int64) bool {
	b, c := new(big.Rat).SetFloat64(baseline), new(big.Rat).SetFloat64(current)
	switch {
	case b == nil || c == nil: // not finite: nothing measures that
		return true
	case t.Metric.More():
		return c.Mul(c, t.Ratio).Cmp(b) < 0
	case b.Sign() == 0 && t.Metric.Unit() == compare.UnitBytes:
		return c.Cmp(new(big.Rat).SetInt64(floor)) > 0
	}
	return c.Cmp(b.Mul(b, t.Ratio)) > 0
}

// openOf is by how much more a metric may be: what is not known of the peak is slack of blocks from before recording.
func openOf(m compare.Metric, e *schemas.BaselineExperiment) float64 {
	bytes := m.Name == compare.MetricPeak || m.Name == compare.MetricPhasePeak ||
		m == (compare.Metric{Name: compare.MetricCategory, Of: schemas.Slack})
	if !bytes || e.PeakHighBytes == nil || e.PeakBytes == nil {
		return 0
	}
	return float64(*e.PeakHighBytes - *e.PeakBytes)
}

// valueOf is the metric of a reduced experiment, nil where it has none.
func valueOf(m compare.Metric, e *schemas.BaselineExperiment) *float64 {
	switch m.Name {
	case compare.MetricPeak:
		return compare.Whole(e.PeakBytes)
	case compare.MetricReserved:
		return compare.Whole(e.PeakReservedBytes)
	case compare.MetricDevice:
		return compare.Whole(e.PeakDeviceBytes)
	case compare.MetricTime:
		if e.StepMS == nil {
			return nil
		}
		return &e.StepMS.Median
	case compare.MetricSamples:
		return e.SamplesPerS
	case compare.MetricTokens:
		return e.TokensPerS
	case compare.MetricEnergy:
		return e.JoulesPerSample
	case compare.MetricCategory:
		if e.Categories == nil {
			return nil
		}
		bytes := e.Categories[m.Of]
		return compare.Whole(&bytes)
	case compare.MetricPhasePeak:
		if bytes, ok := e.PhasePeaks[m.Of]; ok {
			return compare.Whole(&bytes)
		}
	}
	return nil
}
