package process

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestCollectLater collects nothing while the heap is small, and at Go's own pace from the first collection on.
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
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		percent := debug.SetGCPercent(-1)
		debug.SetGCPercent(percent)
		if percent == 100 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("GOGC is %d after the first collection", percent)
		}
	}
}
