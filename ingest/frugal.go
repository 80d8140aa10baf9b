package ingest

import (
	"os"
	"runtime/debug"
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
