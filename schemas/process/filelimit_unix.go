//go:build unix

package process

import (
	"os"
	"os/signal"
	"syscall"
)

// SurviveFileLimit has a write beyond the limit of a file's size (ulimit -f) fail like one to a full disk. Its signal
// would end dpsight in the middle of one. It is taken, not ignored, since what is ignored here would be ignored in the
// experiment too.
func SurviveFileLimit() { signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ) }
