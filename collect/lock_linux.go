package collect

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/dpsight/dpsight/schemas/spool"
)

// lockRun locks a run's spool folder. The lock is shared with the supervisor, and ends when both processes have ended.
// A file with a process id would outlive its process, and another process may get the same id.
func lockRun(dir string) (*os.File, error) {
	f, err := os.Open(filepath.Join(dir, spool.Dir))
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Running reports whether a run is still being recorded: whether its collector, or the supervisor of its processes, is
// alive. Running takes a shared lock, so that two processes that call Running at once do not take each other for a
// collector.
func Running(dir string) bool {
	f, err := os.Open(filepath.Join(dir, spool.Dir))
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}
