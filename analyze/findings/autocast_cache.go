package findings

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const autocastPercent = 5 // least percentage of the peak in casts that autocast keeps and no graph needs

// autocastCache looks for the low-precision copies of weights that autocast keeps until its outermost context ends.
// Copies that autograd also holds count as activations, since they would exist without the cache, too.
func (x *evidence) autocastCache() []Finding {
	c := x.d.Category(schemas.AutocastCache)
	if !memory.AtLeast(c.Bytes, x.d.AllocatedBytes, autocastPercent) {
		return nil
	}
	f := x.finding(AutocastCache)
	x.of(&f, c.Bytes)
	f.Facts = HeldFacts{Blocks: int(c.Blocks)}
	x.line(&f, x.counted(schemas.AutocastCache))
	// Without the cache a cast of a weight lives until its layer has used it, and the next layer's cast is made only
	// afterwards.
	voids := x.held(schemas.AutocastCache, nil)
	slices.SortFunc(voids, func(a, b memory.Void) int { return cmp.Compare(a.From, b.From) })
	var after []memory.Void
	for i, v := range voids[:len(voids)-1] {
		if next := voids[i+1].From; next < v.To {
			after = append(after, memory.Void{From: next, To: v.To, Bytes: v.Bytes})
		}
	}
	x.savesWithout(&f, after, x.looked, Replayed)
	return []Finding{f}
}
