package findings

import (
	"fmt"
	"math"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const (
	rulePercent = 5 // of the peak, by which the rule of thumb is wrong in some part
	adamPercent = 2 // by which two moments may differ from twice the parameters
)

// ruleOfThumb holds parameters + gradients + 2 × parameters (Adam) + activations against the peak: each part at its own
// maximum, as somebody would know who measured it alone.
func (x *evidence) ruleOfThumb() []Finding {
	whole := x.d.AllocatedBytes
	parts := []schemas.Category{schemas.Parameters, schemas.Gradients, schemas.OptimizerState, schemas.Activations}
	parameters, state := x.d.Category(schemas.Parameters).MaxBytes, x.d.Category(schemas.OptimizerState).MaxBytes
	if parameters == 0 || x.d.Category(schemas.Activations).MaxBytes == 0 {
		return nil
	}
	in := map[schemas.Category]bool{}
	var sum, largest int64
	f := x.finding(RuleOfThumb)
	var over, under []string
	for _, c := range parts {
		in[c] = true
		b := x.d.Category(c)
		sum += b.MaxBytes
		f.bytes("highest "+prose.Words(c), b.MaxBytes, "owners.parquet and allocations.parquet: maximum of category "+c)
		if absent := b.MaxBytes - b.Bytes; absent > 0 {
			largest = max(largest, absent)
			if memory.AtLeast(absent, whole, 1) {
				over = append(over, prose.MiB(absent)+" of "+prose.Words(c))
			}
		}
	}
	var small int64
	for i := range x.d.Categories {
		c := &x.d.Categories[i]
		if in[c.Category] || c.Bytes == 0 {
			continue
		}
		largest = max(largest, c.Bytes)
		f.bytes(prose.Words(c.Category)+" at "+x.peak, c.Bytes, x.at(c.Category))
		if memory.AtLeast(c.Bytes, whole, 1) {
			under = append(under, prose.MiB(c.Bytes)+" of "+prose.Words(c.Category))
		} else {
			small += c.Bytes
		}
	}
	wrong := whole - sum
	if !memory.AtLeast(max(largest, wrong, -wrong), whole, rulePercent) {
		return nil
	}
	if small > 0 {
		under = append(under, prose.MiB(small)+" of others")
	}
	x.peakFigure(&f)
	x.of(&f, max(wrong, -wrong))
	state2 := "the optimizer's state"
	if math.Abs(float64(state-2*parameters)) <= adamPercent/100.0*float64(2*parameters) {
		state2 = "two moments for each parameter"
	}
	f.Sentence = fmt.Sprintf("Parameters, gradients, %s and activations, each at its own maximum, come to %s; %s is "+
		"%s, %s.", state2, prose.MiB(sum), x.peak, prose.MiB(whole), beside(wrong, sum))
	if len(over) > 0 {
		f.Sentence += " Of what the rule counts, " + prose.JoinWords(over) + " are not there at " + x.peak + "."
	}
	if len(under) > 0 {
		f.Sentence += " It leaves out " + prose.JoinWords(under) + "."
	}
	return []Finding{f}
}

// beside is a difference to a sum in words: "3 MiB (5 % of the sum) more". The finding's own share is of the peak.
func beside(delta, whole int64) string {
	switch {
	case delta > 0:
		return fmt.Sprintf("%s (%s of the sum) more", prose.MiB(delta), prose.Share(float64(delta), float64(whole)))
	case delta < 0:
		return fmt.Sprintf("%s (%s of the sum) less", prose.MiB(-delta), prose.Share(float64(-delta), float64(whole)))
	}
	return "the same"
}
