//go:build unix

package collect

import (
	"time"

	"golang.org/x/sys/unix"
)

// processCPU returns the CPU time that this process has used, or 0 if the system does not tell.
func processCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
