package findings

import (
	"math"
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const (
	rulePercent = 5 // least percentage of the peak by which some part of the rule of thumb is wrong
	adamPercent = 2 // largest percentage by which two moments differ from twice the parameters
)

// RuleOfThumbFacts are the facts of a [RuleOfThumb] finding.
type RuleOfThumbFacts struct {
	Counted  []RulePart
	SumBytes int64        // highest sum of the parts that the rule counts
	LeftOut  []NamedBytes // bytes at the peak of the categories that the rule leaves out
	Adam     bool         // the optimizer's state has the size of two moments
}

// A RulePart has a category's bytes at the category's own maximum, and at the peak.
type RulePart struct {
	Category        schemas.Category
	MaxBytes, Bytes int64
}

// ruleOfThumb compares the peak with the sum of parameters, gradients, 2 × parameters (Adam's state) and activations.
// Each part counts at its own maximum, as a user who measures one part alone would see it.
func (x *evidence) ruleOfThumb() []Finding {
	whole := x.d.AllocatedBytes
	parts := []schemas.Category{schemas.Parameters, schemas.Gradients, schemas.OptimizerState, schemas.Activations}
	parameters, state := x.d.Category(schemas.Parameters).MaxBytes, x.d.Category(schemas.OptimizerState).MaxBytes
	if parameters == 0 || x.d.Category(schemas.Activations).MaxBytes == 0 {
		return nil
	}
	facts := RuleOfThumbFacts{
		Adam: math.Abs(float64(state-2*parameters)) <= adamPercent/100.0*float64(2*parameters)}
	var largest int64
	for _, c := range parts {
		b := x.d.Category(c)
		facts.SumBytes += b.MaxBytes
		facts.Counted = append(facts.Counted, RulePart{c, b.MaxBytes, b.Bytes})
		largest = max(largest, b.MaxBytes-b.Bytes)
	}
	for i := range x.d.Categories {
		if c := &x.d.Categories[i]; !slices.Contains(parts, c.Category) && c.Bytes != 0 {
			largest = max(largest, c.Bytes)
			facts.LeftOut = append(facts.LeftOut, NamedBytes{c.Category, c.Bytes})
		}
	}
	wrong := whole - facts.SumBytes
	if !memory.AtLeast(max(largest, wrong, -wrong), whole, rulePercent) {
		return nil
	}
	f := x.finding(RuleOfThumb)
	x.of(&f, max(wrong, -wrong))
	f.Facts = facts
	return []Finding{f}
}
