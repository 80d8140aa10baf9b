//go:build !linux || !cgo

package nvml

import (
	"sync/atomic"
	"time"
)

// native is for a real library, which this build has none of.
func native([]Device, time.Duration) func(int, *atomic.Int32) []Reading { return nil }
