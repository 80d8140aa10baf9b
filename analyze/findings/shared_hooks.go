package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const (
	hooksPercent  = 1  // of the peak, held by DP hooks
	sharedPercent = 50 // of that, held by others too
)

// sharedHooks says what the activations that a DP method's hooks capture really cost, where others hold most of them.
func (x *evidence) sharedHooks() []Finding {
	c := x.d.Category(schemas.HookActivations)
	if !memory.AtLeast(c.HeldBytes, x.d.AllocatedBytes, hooksPercent) ||
		!memory.AtLeast(c.SharedBytes, c.HeldBytes, sharedPercent) {
		return nil
	}
	f := x.finding(SharedHooks)
	x.of(&f, c.SharedBytes)
	x.hookFigures(&f, &c)
	f.Sentence = fmt.Sprintf("The hooks of the DP method hold %s at %s, of which %s (%s) are held by others too "+
		"(%s by autograd): what the hooks cost is %s, not what they hold.",
		prose.MiB(c.HeldBytes), x.peak, prose.MiB(c.SharedBytes),
		prose.Share(float64(c.SharedBytes), float64(c.HeldBytes)),
		prose.MiB(c.SharedWith[schemas.Activations]), prose.MiB(c.HeldBytes-c.SharedBytes))
	return []Finding{f}
}

func (x *evidence) hookFigures(f *Finding, c *memory.CategoryBytes) {
	from := x.at(schemas.HookActivations)
	f.bytes("held by hooks", c.HeldBytes, from)
	f.bytes("held by others too", c.SharedBytes, from+", blocks with several tagged owners")
	f.bytes("held by autograd too", c.SharedWith[schemas.Activations], from+", blocks that category activations "+
		"owns too")
	x.peakFigure(f)
}
