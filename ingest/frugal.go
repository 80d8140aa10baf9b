package ingest

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/dpsight/dpsight/ingest/torchsnap"
)

// Frugal makes Go collect garbage twice as often while runs are ingested, unless GOGC is set. Millions of events fill
// columns of hundreds of megabytes, and the default setting would keep as much again. More frequent collection costs a
// few per cent of the time. restore restores the previous frequency.
func Frugal() (restore func()) { return collectMore(50) }

func collectMore(percent int) (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	usual := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(usual) }
}

const (
	// From manyEvents events on, it is worthwhile to collect the garbage that decoding left immediately. From
	// hugeEvents events on, the columns are so large that Go collects garbage twice as often again.
	manyEvents = 1 << 18
	hugeEvents = 1 << 21
)

// collectDecoder collects the garbage that decoding a snapshot left, if the snapshot has many events. The garbage takes
// as much memory as the events, and the replay needs memory at the same time.
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
