package findings

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const ownHooksPercent = 1 // least percentage of the peak that only DP hooks hold

// bookKeeping are the methods that still use activations after backward has ended.
var bookKeeping = []string{"bk", "flash_bk"}

// OwnHooksFacts are the facts of an [OwnHooks] finding.
type OwnHooksFacts struct {
	HookFacts
	Largest ModulePart
	Needed  bool // the method needs these activations until it has clipped the gradients
}

// ownHooks reports activations that only the hooks of a DP method hold.
func (x *evidence) ownHooks() []Finding {
	c := x.d.Category(schemas.HookActivations)
	own := c.HeldBytes - c.SharedBytes
	if !memory.AtLeast(own, x.d.AllocatedBytes, ownHooksPercent) {
		return nil
	}
	f := x.finding(OwnHooks)
	x.of(&f, own)
	needed := slices.Contains(bookKeeping, x.run.Method())
	f.Facts = OwnHooksFacts{hookFacts(&c), x.largestModule(schemas.HookActivations), needed}
	x.line(&f, x.counted(schemas.HookActivations))
	if !needed {
		x.savesWithout(&f, x.held(schemas.HookActivations, nil), x.looked, AtMost)
	}
	return []Finding{f}
}
