// Package process sets what holds for the whole of a dpsight process, before it does anything.
package process

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
)

// firstCollection is the memory of a process at its first garbage collection, in bytes.
const firstCollection = 96 << 20

// CollectLater delays the first garbage collection. Most commands end before it, and the others avoid the many
// collections of a small, growing heap. From then on Go's own pace applies. If the user has set a pace (GOGC,
// GOMEMLIMIT), it does nothing.
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
