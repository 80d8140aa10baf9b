package analyze

import (
	"fmt"

	"github.com/dpsight/dpsight/schemas"
)

// SharedActivation says what the hooks of a DP method really cost on one device: most of what they hold is held by
// autograd too, and would be there without them.
type SharedActivation struct {
	RunID  string `json:"run_id"`
	Device string `json:"device"`
	Rank   int32  `json:"rank"`
	// HeldBytes is what hooks hold, SharedBytes the part that others hold too, AutogradBytes the part that autograd
	// does.
	HeldBytes     int64 `json:"held_bytes"`
	SharedBytes   int64 `json:"shared_bytes"`
	AutogradBytes int64 `json:"autograd_bytes"`
	// ExtraBytes is what hooks alone hold, HeldBytes - SharedBytes. Without the hooks it would be free, but for a
	// method that has autograd save less, as book-keeping does, it is no extra cost: see [hooksInsteadOfAutograd].
	ExtraBytes int64 `json:"extra_bytes"`
}

// SharedHookActivations is nil where hooks hold nothing that others hold too.
func (d *DeviceBreakdown) SharedHookActivations() *SharedActivation {
	c := d.Category(schemas.HookActivations)
	if c.SharedBytes == 0 {
		return nil
	}
	return &SharedActivation{Device: d.Device, Rank: d.Rank, HeldBytes: c.HeldBytes, SharedBytes: c.SharedBytes,
		AutogradBytes: c.SharedWith[schemas.Activations], ExtraBytes: c.HeldBytes - c.SharedBytes}
}

// hooksInsteadOfAutograd says that a run's hooks hold activations which the baseline's autograd does: a method that
// takes no parameter gradients from autograd has it save no inputs for them, and its hooks keep those. Empty where
// autograd holds as much as in the baseline, or where either peak is not broken down.
func hooksInsteadOfAutograd(base, run *Summary, baseline string) string {
	if !base.BrokenDown() || !run.BrokenDown() {
		return ""
	}
	delta := func(c schemas.Category) int64 { return run.Main().Category(c).Bytes - base.Main().Category(c).Bytes }
	hooks, autograd := delta(schemas.HookActivations), delta(schemas.Activations)
	if hooks <= 0 || autograd >= 0 {
		return ""
	}
	return fmt.Sprintf("activations are %s less than at %s's peak and hook activations %s more, since hooks hold "+
		"what autograd does not: together they differ by %s",
		mib(-autograd), baseline, mib(hooks), signedMiB(hooks+autograd))
}
