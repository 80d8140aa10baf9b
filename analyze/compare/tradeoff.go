package compare

import "github.com/dpsight/dpsight/analyze/timing"

// A StepCost is the figure by which the steps of a study's experiments can be compared: a time or a rate.
type StepCost string

// The costs: time if all steps have the same size, else the rate.
const (
	CostTime    StepCost = "step_ms"
	CostTokens  StepCost = "tokens_per_s"
	CostSamples StepCost = "samples_per_s"
)

// Cost chooses the figure to compare the cells by. If steps differ in their number of samples, that is a rate, since a
// larger step takes longer with any method.
func (s *Study) Cost() StepCost {
	differ := false
	for _, what := range s.Configuration.Varying {
		differ = differ || what == "batch_size" || what == "seq_len"
	}
	if !differ {
		return CostTime
	}
	tokens, samples := true, true
	for i := range s.Cells {
		if c := &s.Cells[i]; c.StepMS != nil {
			tokens = tokens && c.TokensPerS != nil
			samples = samples && c.SamplesPerS != nil
		}
	}
	switch {
	case tokens:
		return CostTokens
	case samples:
		return CostSamples
	}
	return CostTime
}

// CostOf returns a cell's median cost and its range, or nil if the cell has no times. For a rate, the slowest step
// gives the lowest value and the fastest step the highest.
func (c *Cell) CostOf(cost StepCost) *timing.Interval {
	if c.StepMS == nil || cost == CostTime {
		return c.StepMS
	}
	rate := c.SamplesPerS
	if cost == CostTokens {
		rate = c.TokensPerS
	}
	if rate == nil || c.StepMS.Low <= 0 {
		return nil
	}
	v := *c.StepMS
	v.Median = *rate
	v.Low, v.High = min(*rate, *rate*c.StepMS.Median/c.StepMS.High), max(*rate, *rate*c.StepMS.Median/c.StepMS.Low)
	return &v
}
