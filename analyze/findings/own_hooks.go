package findings

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const ownHooksPercent = 1 // of the peak, held by DP hooks and nothing else

// bookKeeping are the methods that use activations after backward.
var bookKeeping = []string{"bk", "flash_bk"}

// ownHooks looks at activations that the hooks of a DP method hold and nothing else does.
func (x *evidence) ownHooks() []Finding {
	c := x.d.Category(schemas.HookActivations)
	own := c.HeldBytes - c.SharedBytes
	if !memory.AtLeast(own, x.d.AllocatedBytes, ownHooksPercent) {
		return nil
	}
	f := x.finding(OwnHooks)
	x.of(&f, own)
	x.hookFigures(&f, &c)
	m, bytes := x.largestModule(schemas.HookActivations)
	where := ""
	if m != nil {
		f.bytes("of it "+grouping.ModulePath(m, 0), bytes, x.at(schemas.HookActivations))
		where = fmt.Sprintf(", the largest part in %s (%s)", grouping.ModuleWords(m), prose.MiB(bytes))
	}
	f.Sentence = fmt.Sprintf("At %s %s (%s of it) are held by the hooks of the DP method and by nothing else%s: "+
		"autograd does not hold them, or no longer, or holds other copies.",
		x.peak, prose.MiB(own), prose.Share(float64(own), float64(x.d.AllocatedBytes)), where)
	if slices.Contains(bookKeeping, x.run.Method()) {
		f.Sentence += " Book-keeping needs them until it has clipped; where parameter gradients are skipped, " +
			"autograd has no use for them."
	} else {
		f.Change = "let the hooks hold what autograd holds (no cast or reshaped copy), and no longer than their " +
			"layer's norm needs"
		x.savesWithout(&f, x.held(schemas.HookActivations, nil), x.looked, "the hooks hold nothing that autograd "+
			"does not; all other allocations stay as they are")
	}
	return []Finding{f}
}
