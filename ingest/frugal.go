package ingest

import (
	"os"
	"runtime/debug"
)

// Frugal has garbage collected twice as often while runs are ingested, unless GOGC says how often: millions of events
// are columns of hundreds of megabytes, of which the usual setting keeps as much again. It costs a few percent of the
// time.
func Frugal() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	usual := debug.SetGCPercent(50)
	return func() { debug.SetGCPercent(usual) }
}
