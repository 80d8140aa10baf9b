package findings

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const (
	hooksPercent  = 1  // least percentage of the peak that DP hooks hold
	sharedPercent = 50 // least percentage of the hooks' bytes that others hold too
)

// sharedHooks reports what the activations that a DP method's hooks capture really cost, if other owners also hold most
// of these activations.
func (x *evidence) sharedHooks() []Finding {
	c := x.d.Category(schemas.HookActivations)
	if !memory.AtLeast(c.HeldBytes, x.d.AllocatedBytes, hooksPercent) ||
		!memory.AtLeast(c.SharedBytes, c.HeldBytes, sharedPercent) {
		return nil
	}
	f := x.finding(SharedHooks)
	x.of(&f, c.SharedBytes)
	f.Facts = hookFacts(&c)
	x.line(&f, func(i int, a *schemas.Allocation) int64 {
		if !slices.ContainsFunc(x.l.Owners[i], func(o *schemas.Owner) bool {
			return o.Category == schemas.HookActivations && o.HoldsAt(x.d.At.Event)
		}) {
			return 0
		}
		return a.RequestedBytes
	})
	return []Finding{f}
}

// HookFacts are the facts of a [SharedHooks] finding: how many bytes hooks hold, and how many of these bytes other
// owners, or autograd, hold too.
type HookFacts struct{ HeldBytes, SharedBytes, AutogradBytes int64 }

func hookFacts(c *memory.CategoryBytes) HookFacts {
	return HookFacts{c.HeldBytes, c.SharedBytes, c.SharedWith[schemas.Activations]}
}
