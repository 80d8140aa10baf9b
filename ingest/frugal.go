package ingest

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/dpsight/dpsight/ingest/torchsnap"
)

// Frugal has garbage collected twice as often while runs are ingested, unless GOGC says how often: millions of events
// are columns of hundreds of megabytes, of which the usual setting keeps as much again. It costs a few percent of the
// time.
func Frugal() (restore func()) { return collectMore(50) }

func collectMore(percent int) (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	usual := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(usual) }
}

const (
	// manyEvents is from how many on it pays to collect at once what decoding them left, hugeEvents from how many on
	// their columns are so large that garbage is collected twice as often again.
	manyEvents = 1 << 18
	hugeEvents = 1 << 21
)

// collectDecoder collects what decoding a snapshot left, if that is much: it takes as much memory as the events do, and
// the replay would be made beside it.
func collectDecoder(s *torchsnap.Snapshot) (restore func()) {
	n := 0
	for i := range s.Devices {
		n += s.Devices[i].Len()
	}
	if n >= manyEvents {
		runtime.GC()
	}
	if n < hugeEvents {
		return func() {}
	}
	return collectMore(25)
}
