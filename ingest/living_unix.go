//go:build unix

package ingest

import (
	"errors"
	"syscall"
)

// alive reports whether a process with this id is running. Another process may have got the id since the recording
// process ended. If another process has the id, a journal stays unsealed, but no data is lost.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
