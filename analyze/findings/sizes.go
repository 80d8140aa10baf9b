package findings

import (
	"fmt"
	"math"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const (
	optimizerPercent = 5 // of the peak, temporaries of the optimizer's step
	slackPercent     = 2 // of the peak, bytes beyond what was requested
	rulePercent      = 5 // of the peak, by which the rule of thumb is wrong in some part
	adamPercent      = 2 // by which two moments may differ from twice the parameters
)

// optimizer looks at a peak that is the optimizer's: torch's foreach implementations hold temporaries of the size of
// all parameters. The category has what was born while noise was added, too, which no other optimizer would do without.
func (x *finder) optimizer() []Finding {
	own := func(a *schemas.Allocation) bool { return a.Phase == schemas.PhaseOptimizer }
	held, whole := x.bytesAtPeak(schemas.OptimizerTemporaries, own), x.d.AllocatedBytes
	if !memory.AtLeast(held, whole, optimizerPercent) {
		return nil
	}
	f := x.finding(OptimizerPeak)
	x.of(&f, held)
	f.bytes("optimizer temporaries", held, x.at(schemas.OptimizerTemporaries)+", born in phase "+schemas.PhaseOptimizer)
	x.peakFigure(&f)
	f.Sentence = fmt.Sprintf("%s (%s) of %s are temporaries of the optimizer's step.", prose.MiB(held),
		prose.Share(float64(held), float64(whole)), x.peak)
	f.Change = "use the optimizer with fused=True, or with foreach=False, which updates one parameter after another"
	x.savesWithout(&f, x.held(schemas.OptimizerTemporaries, own), x.looked, "at most: the step holds no temporary; "+
		"all other allocations stay as they are")
	return []Finding{f}
}

// slack looks at what blocks have beyond what was asked for.
func (x *finder) slack() []Finding {
	held, whole := x.bytesOf(schemas.Slack), x.d.AllocatedBytes
	if !memory.AtLeast(held, whole, slackPercent) {
		return nil
	}
	f := x.finding(Slack)
	x.of(&f, held)
	f.bytes("slack", held, fmt.Sprintf("allocations.parquet: block_bytes less requested_bytes after event %d",
		x.d.At.Event))
	x.peakFigure(&f)
	f.Sentence = fmt.Sprintf("%s (%s) of %s were never asked for: requests are rounded up, and a remainder of up to "+
		"1 MiB stays with a large block.",
		prose.MiB(held), prose.Share(float64(held), float64(whole)), x.peak)
	f.Change = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which splits off remainders from 512 bytes on; " +
		"check roundup_power2_divisions if it is set"
	var voids []memory.Void
	for _, a := range x.l.Allocs {
		end := a.FreeRequestedSeq
		if end == 0 {
			end = 1 << 62
		}
		if a.BlockBytes > a.RequestedBytes {
			voids = append(voids, memory.Void{From: a.AllocSeq, To: end, Bytes: a.BlockBytes - a.RequestedBytes})
		}
	}
	x.savesWithout(&f, voids, x.looked, "at most: each block is as large as its request")
	return []Finding{f}
}

// rule holds parameters + gradients + 2 × parameters (Adam) + activations against the peak: each part at its own
// maximum, as somebody would know who measured it alone.
func (x *finder) rule() []Finding {
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
