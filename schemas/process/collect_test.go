package process

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestCollectLater checks that Go collects no garbage while the heap is small. After the first collection, Go collects
// garbage as often as usual.
func TestCollectLater(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	runtime.GC()
	CollectLater()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var kept []byte
	for range 100 {
		kept = make([]byte, 100<<10)
	}
	runtime.KeepAlive(kept)
	if runtime.ReadMemStats(&after); after.NumGC != before.NumGC {
		t.Errorf("%d collections of a small heap", after.NumGC-before.NumGC)
	}
	runtime.GC()
	// CollectLater restores the memory limit last. SetMemoryLimit(-1) returns the limit without changing it.
	for end := time.Now().Add(10 * time.Second); debug.SetMemoryLimit(-1) != math.MaxInt64; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the limit stays after the first collection")
		}
	}
	if percent := debug.SetGCPercent(100); percent != 100 {
		t.Errorf("GOGC is %d after the first collection", percent)
	}
}
