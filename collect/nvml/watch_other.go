//go:build !linux || !cgo

package nvml

import (
	"sync/atomic"
	"time"
)

// native returns nil, since this build cannot have a real library.
func native([]Device, time.Duration) func(int, *atomic.Int32) []Reading { return nil }
