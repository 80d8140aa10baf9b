package compare

import (
	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// Difference has one value, such as the peak, in each of two compared runs.
type Difference struct {
	Metric   string   `json:"metric"`
	Unit     Unit     `json:"unit"`
	Baseline *float64 `json:"baseline"`
	Value    *float64 `json:"value"`
	Delta    *float64 `json:"delta"`
	Ratio    *float64 `json:"ratio"`
}

// pairOf returns the baseline and the other run if exactly two runs are compared.
func pairOf(runs []*analyze.Summary, o *Options) []*analyze.Summary {
	switch {
	case len(runs) == 1 && o.Run != nil:
		return []*analyze.Summary{o.Run, runs[0]}
	case len(runs) == 2 && o.Run == nil && o.Match == nil:
		return runs
	case len(runs) == 2 && o.Run != nil && o.Run.RunID == runs[0].RunID:
		return runs
	case len(runs) == 2 && o.Run != nil && o.Run.RunID == runs[1].RunID:
		return []*analyze.Summary{runs[1], runs[0]}
	}
	return nil
}

// differencesOf lists all values of two runs side by side: first the figures that people report, then the categories at
// either run's peak, then the phases.
func differencesOf(base, run *analyze.Summary) []Difference {
	out := []Difference{}
	add := func(m Metric) {
		d := Difference{Metric: m.String(), Unit: m.Unit(), Baseline: m.ValueIn(base), Value: m.ValueIn(run)}
		if d.Baseline == nil && d.Value == nil {
			return
		}
		if d.Baseline != nil && d.Value != nil && m.clock(base) == m.clock(run) {
			delta := *d.Value - *d.Baseline
			d.Delta, d.Ratio = &delta, timing.Ratio(*d.Value, *d.Baseline)
		}
		out = append(out, d)
	}
	for _, k := range metricKinds {
		if k.of == "" {
			add(Metric{Name: k.name})
		}
	}
	for _, c := range schemas.Categories {
		m := Metric{MetricCategory, c}
		if a, b := m.ValueIn(base), m.ValueIn(run); a != nil && *a != 0 || b != nil && *b != 0 {
			add(m)
		}
	}
	var phases []string
	seen := map[string]bool{}
	for _, s := range []*analyze.Summary{run, base} {
		for i := range s.Phases.Phases {
			if p := s.Phases.Phases[i].Phase; !seen[p] {
				seen[p] = true
				phases = append(phases, p)
			}
		}
	}
	for _, p := range phases {
		add(Metric{MetricPhasePeak, p})
	}
	for _, p := range phases {
		add(Metric{MetricPhase, p})
	}
	return out
}
