package findings

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const (
	hooksPercent    = 1  // of the peak, held by DP hooks
	sharedPercent   = 50 // of that, held by others too
	ownHooksPercent = 1  // of the peak, held by DP hooks and nothing else
)

// bookKeeping are the methods that use activations after backward.
var bookKeeping = []string{"bk", "flash_bk"}

// hooks says what the activations that a DP method's hooks capture really cost.
func (x *finder) hooks() []Finding {
	c := x.d.Category(schemas.HookActivations)
	var out []Finding
	if memory.AtLeast(c.HeldBytes, x.d.AllocatedBytes, hooksPercent) &&
		memory.AtLeast(c.SharedBytes, c.HeldBytes, sharedPercent) {
		f := x.finding(SharedHooks)
		x.of(&f, c.SharedBytes)
		x.hookFigures(&f, &c)
		f.Sentence = fmt.Sprintf("The hooks of the DP method hold %s at %s, of which %s (%s) are held by others too "+
			"(%s by autograd): what the hooks cost is %s, not what they hold.",
			prose.MiB(c.HeldBytes), x.peak, prose.MiB(c.SharedBytes),
			prose.Share(float64(c.SharedBytes), float64(c.HeldBytes)),
			prose.MiB(c.SharedWith[schemas.Activations]), prose.MiB(c.HeldBytes-c.SharedBytes))
		out = append(out, f)
	}
	if own := c.HeldBytes - c.SharedBytes; memory.AtLeast(own, x.d.AllocatedBytes, ownHooksPercent) {
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
		out = append(out, f)
	}
	return out
}

func (x *finder) hookFigures(f *Finding, c *memory.CategoryBytes) {
	from := x.at(schemas.HookActivations)
	f.bytes("held by hooks", c.HeldBytes, from)
	f.bytes("held by others too", c.SharedBytes, from+", blocks with several tagged owners")
	f.bytes("held by autograd too", c.SharedWith[schemas.Activations], from+", blocks that category activations "+
		"owns too")
	x.peakFigure(f)
}
