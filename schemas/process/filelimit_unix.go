//go:build unix

package process

import (
	"os"
	"os/signal"
	"syscall"
)

// SurviveFileLimit makes a write beyond the limit of a file's size (ulimit -f) return an error, as on a full disk.
// Otherwise the signal SIGXFSZ would end dpsight in the middle of the write. SurviveFileLimit handles the signal and
// does not ignore it, since the experiment's process would inherit an ignored signal.
func SurviveFileLimit() { signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ) }
