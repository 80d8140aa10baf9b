package memory

import (
	"github.com/dpsight/dpsight/schemas"
)

// SharedActivation says how many bytes the hooks of a DP method really cost on one device. Autograd also holds most
// activations that the hooks hold, so most of their bytes would be allocated without the hooks.
type SharedActivation struct {
	RunID  string `json:"run_id"`
	Device string `json:"device"`
	Rank   int32  `json:"rank"`
	// HeldBytes are the bytes that hooks hold. SharedBytes is the part that other owners hold too, and AutogradBytes
	// the part that autograd holds too.
	HeldBytes     int64 `json:"held_bytes"`
	SharedBytes   int64 `json:"shared_bytes"`
	AutogradBytes int64 `json:"autograd_bytes"`
	// ExtraBytes are the bytes that only hooks hold, HeldBytes - SharedBytes. Without the hooks these bytes would be
	// free. ExtraBytes are no extra cost if the method makes autograd save less, as book-keeping does; see
	// [compare.HooksInsteadOfAutograd].
	ExtraBytes int64 `json:"extra_bytes"`
}

// SharedHookActivations returns what hooks share with other owners on the device; nil if they share nothing.
func (d *DeviceBreakdown) SharedHookActivations() *SharedActivation {
	c := d.Category(schemas.HookActivations)
	if c.SharedBytes == 0 {
		return nil
	}
	return &SharedActivation{Device: d.Device, Rank: d.Rank, HeldBytes: c.HeldBytes, SharedBytes: c.SharedBytes,
		AutogradBytes: c.SharedWith[schemas.Activations], ExtraBytes: c.HeldBytes - c.SharedBytes}
}
