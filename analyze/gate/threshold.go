package gate

import (
	"errors"
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

// A Threshold limits how much worse a metric may be than in the baseline. A check accepts at most Ratio times the
// baseline's value. For samples and tokens per second, a lower value is worse. For these two metrics, a check accepts
// at least the baseline's value divided by Ratio.
type Threshold struct {
	Metric     compare.Metric // the metric; the name of its category or phase may be a glob
	Experiment string         // a glob of experiments' names; empty means all experiments
	Ratio      *big.Rat       // the exact ratio: 1.05 is 21/20, so growth by exactly 5 % passes for any number of bytes
	Text       string         // the ratio as the user wrote it
	// Place is the file and line of the threshold. Place is "" for a threshold of the command line, which takes
	// precedence over all files.
	Place string
}

// DefaultThresholds are the thresholds of a check if neither the command line nor a configuration file has any.
var DefaultThresholds = []string{"peak=1.05", "time=1.10"}

// DefaultFloor is the default floor in bytes. If the baseline lacks a metric, the metric may be at most the floor.
const DefaultFloor = 1 << 20

// LeastGrowth is the number of bytes by which a category may grow although its threshold is exceeded. If the floor is
// smaller, the floor applies. The allocator rounds a small block up by less than 512 bytes.
const LeastGrowth = 512

// ParseThresholds parses thresholds such as "peak=1.05", "category:gradients=5%", "category:*=1.05" and
// "peak@ghost*=1.02". A ratio without a metric applies to the peak.
func ParseThresholds(list []string) ([]Threshold, error) {
	var out []Threshold
	for _, s := range list {
		metric, ratio := compare.MetricPeak, s
		at := strings.LastIndex(s, "=") // the name of an experiment may contain "="
		if at >= 0 {
			metric, ratio = s[:at], s[at+1:]
		}
		metric, experiment, of := strings.Cut(metric, "@")
		t, err := newThreshold(strings.TrimSpace(metric), strings.TrimSpace(experiment), strings.TrimSpace(ratio))
		switch _, ratios := parseRatio(strings.TrimSpace(ratio)); {
		case at < 0 && !ratios:
			err = errors.New("it is not NAME=RATIO")
		case err == nil && of && t.Experiment == "":
			err = errors.New("it names no experiment behind the @")
		case err == nil && slices.ContainsFunc(out, t.sameAs):
			err = fmt.Errorf("%s is given twice", t.Metric)
		}
		if err != nil {
			return nil, fmt.Errorf("threshold %q: %w", s, err)
		}
		out = append(out, t)
	}
	return out, nil
}

// Limits returns the thresholds of a check, and its floor in bytes. The command line's thresholds come first, and then
// the file's. If neither has thresholds, Limits returns [DefaultThresholds].
func Limits(list []string, floor string, file *schemas.GateConfig) (thresholds []Threshold, bytes int64, err error) {
	if len(list) == 0 && len(file.Thresholds) == 0 {
		list = DefaultThresholds
	}
	if thresholds, err = ParseThresholds(list); err != nil {
		return nil, 0, err
	}
	for _, c := range file.Thresholds {
		t, err := newThreshold(c.Metric, c.Experiment, c.Ratio.Text)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %s: %w", c.Ratio.Place, c.Metric, err)
		}
		t.Place = c.Ratio.Place
		thresholds = append(thresholds, t)
	}
	switch {
	case floor != "":
		if bytes, err = units.ParseBytes(floor); err != nil {
			return nil, 0, fmt.Errorf("--floor: %w", err)
		}
	case file.Floor.Text != "":
		if bytes, err = units.ParseBytes(file.Floor.Text); err != nil {
			return nil, 0, fmt.Errorf("%s: floor: %w", file.Floor.Place, err)
		}
	default:
		bytes = DefaultFloor
	}
	return thresholds, bytes, nil
}

func (t *Threshold) sameAs(o Threshold) bool {
	return o.Metric == t.Metric && o.Experiment == t.Experiment
}

func newThreshold(name, experiment, ratio string) (Threshold, error) {
	metric, err := parseMetric(name)
	if err != nil {
		return Threshold{}, err
	}
	r, ok := parseRatio(ratio)
	if !ok {
		return Threshold{}, fmt.Errorf("%q is not a ratio like 1.05 or a growth like 5%%", ratio)
	}
	if r.Cmp(big.NewRat(1, 1)) < 0 {
		return Threshold{}, errors.New("a ratio below 1 would fail without any growth")
	}
	if !strings.Contains(ratio, "%") && r.Cmp(big.NewRat(mostRatio, 1)) >= 0 {
		return Threshold{}, fmt.Errorf("it lets pass %s times the baseline's: for a growth of %s %% write %s%%, for the "+
			"ratio itself %s%%", ratio, ratio, ratio, percentOver(r))
	}
	return Threshold{Metric: metric, Experiment: experiment, Ratio: r, Text: ratio}, nil
}

// parseMetric parses a metric as [compare.ParseMetric] does, but accepts only metrics that a threshold can limit.
// parseMetric also accepts a glob instead of a category's name.
func parseMetric(s string) (compare.Metric, error) {
	name, of, _ := strings.Cut(s, ":")
	if name == compare.MetricCategory && isGlob(of) {
		if !slices.ContainsFunc(schemas.Categories, func(c schemas.Category) bool { return matches(of, c) }) {
			return compare.Metric{}, fmt.Errorf("no category matches %q; there are %s", of,
				strings.Join(schemas.Categories, ", "))
		}
		return compare.Metric{Name: name, Of: of}, nil
	}
	metric, err := compare.ParseMetric(s)
	if err == nil && metric.Name == compare.MetricPhase {
		// A baseline has no times of phases. The times of small phases spread more than any sensible threshold allows.
		err = fmt.Errorf("a phase is held to its memory, phase-peak:%s, not to its time", metric.Of)
	}
	return metric, err
}

// mostRatio is the smallest ratio that is refused as a mistake: peak=5 is surely meant as a growth of 5 %. A larger
// growth can be given in per cent.
const mostRatio = 3

// percentOver returns the per cent by which a ratio exceeds 1.
func percentOver(r *big.Rat) string {
	over := new(big.Rat).Sub(r, big.NewRat(1, 1))
	return strings.TrimSuffix(strings.TrimRight(over.Mul(over, big.NewRat(100, 1)).FloatString(2), "0"), ".")
}

// CheckNames returns an error if a threshold names a phase or an experiment that neither the baseline nor the runs
// have. A mistyped name would match nothing, and the check would pass. If neither the baseline nor the runs have
// phases, CheckNames accepts any phase. A configuration file's threshold may name experiments that neither has, since a
// check may leave out some experiments.
func CheckNames(thresholds []Threshold, baseline schemas.Baseline, runs []analyze.Summary) error {
	phases, experiments := map[string]bool{}, map[string]bool{}
	for _, list := range [][]schemas.BaselineExperiment{baseline.Experiments, BaselineOf(runs, "").Experiments} {
		labels := ExperimentLabels(list)
		for i := range list {
			experiments[list[i].Name], experiments[labels[i]] = true, true
			for phase := range list[i].PhasePeaks {
				phases[phase] = true
			}
		}
	}
	known := func(names map[string]bool, glob string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(names)), func(s string) bool { return matches(glob, s) })
	}
	for _, t := range thresholds {
		if phase := t.Metric.Of; t.Metric.Name == compare.MetricPhasePeak && len(phases) > 0 && !known(phases, phase) {
			return fmt.Errorf("threshold %q: no experiment has a phase %q%s", &t, phase,
				near.Guess(phase, slices.Sorted(maps.Keys(phases))))
		}
		if t.Experiment != "" && t.Place == "" && !known(experiments, t.Experiment) {
			return fmt.Errorf("threshold %q: no experiment is called %q%s", &t, t.Experiment,
				near.Guess(t.Experiment, slices.Sorted(maps.Keys(experiments))))
		}
	}
	return nil
}

// String returns the threshold in the form that a command line has.
func (t *Threshold) String() string {
	if t.Experiment == "" {
		return t.Metric.String() + "=" + t.Text
	}
	return t.Metric.String() + "@" + t.Experiment + "=" + t.Text
}

// parseRatio parses a ratio such as "1.05" or "5%" exactly.
func parseRatio(s string) (*big.Rat, bool) {
	digits, percent := strings.CutSuffix(s, "%")
	r, ok := units.ParseDecimal(digits)
	if ok && percent {
		r.Quo(r, big.NewRat(100, 1))
		r.Add(r, big.NewRat(1, 1))
	}
	return r, ok
}

// exceeded reports whether current is worse than the threshold allows. If the baseline's value is 0 bytes, a ratio
// means nothing. In this case, current may be at most floor.
func (t *Threshold) exceeded(baseline, current float64, floor int64) bool {
	b, c := new(big.Rat).SetFloat64(baseline), new(big.Rat).SetFloat64(current)
	switch {
	case b == nil || c == nil: // a value that is not finite is no measurement
		return true
	case t.Metric.More():
		return c.Mul(c, t.Ratio).Cmp(b) < 0
	case b.Sign() == 0 && t.Metric.Unit() == compare.UnitBytes:
		return c.Cmp(new(big.Rat).SetInt64(floor)) > 0
	case t.Metric.Name == compare.MetricCategory && current-baseline <= float64(min(floor, LeastGrowth)):
		return false
	}
	return c.Cmp(b.Mul(b, t.Ratio)) > 0
}

// openOf returns by how many bytes a bounded metric may be larger than its lower bound. The unknown part of a peak is
// the slack of blocks from before recording.
func openOf(m compare.Metric, e *schemas.BaselineExperiment) float64 {
	bytes := m.Name == compare.MetricPeak || m.Name == compare.MetricPhasePeak ||
		m == (compare.Metric{Name: compare.MetricCategory, Of: schemas.Slack})
	if !bytes || e.PeakHighBytes == nil || e.PeakBytes == nil {
		return 0
	}
	return float64(*e.PeakHighBytes - *e.PeakBytes)
}

// valueOf returns a metric's value in a reduced experiment. valueOf returns nil if the experiment has no such value.
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
