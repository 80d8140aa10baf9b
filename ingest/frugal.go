package ingest

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/dpsight/dpsight/ingest/torchsnap"
)

// Frugal has garbage collected four times as often while runs are ingested, unless GOGC says how often: millions of
// events are columns of hundreds of megabytes, of which the usual setting keeps as much again. It takes no time that
// can be measured, for columns have no pointers.
func Frugal() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	usual := debug.SetGCPercent(25)
	return func() { debug.SetGCPercent(usual) }
}

// manyEvents is from how many on it pays to collect what decoding them left.
const manyEvents = 1 << 18

// collectDecoder collects what decoding a snapshot left, if that is much: it takes as much memory as the events do, and
// the replay would be made beside it.
func collectDecoder(s *torchsnap.Snapshot) {
	n := 0
	for i := range s.Devices {
		n += s.Devices[i].Len()
	}
	if n >= manyEvents {
		runtime.GC()
	}
}
