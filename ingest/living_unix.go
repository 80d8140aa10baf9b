//go:build unix

package ingest

import (
	"errors"
	"syscall"
)

// alive reports whether a process has this number. Another process may have the number by now: then a journal stays
// unsealed, which loses nothing.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
