// Package process has settings for a whole dpsight process, which commands make before anything else.
package process

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
)

// firstCollection is how many bytes the Go runtime uses when its garbage collector first runs.
const firstCollection = 96 << 20

// CollectLater delays the first run of Go's garbage collector. Most commands end before the first collection, and all
// other commands avoid the many collections of a small, growing heap. After the first collection, Go's usual pace
// applies. If the user has set GOGC or GOMEMLIMIT, CollectLater does nothing.
func CollectLater() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(firstCollection)
	runtime.AddCleanup(new([64]byte), func(int) {
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
	}, 0)
}
