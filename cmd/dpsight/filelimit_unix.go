//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// surviveFileLimit has a write beyond the limit of a file's size (ulimit -f) fail like one to a full disk. Its signal
// would end dpsight in the middle of one. It is taken, not ignored, since what is ignored here would be ignored in the
// experiment too.
func surviveFileLimit() { signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ) }
