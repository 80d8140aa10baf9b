//go:build darwin || linux

package schemas

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// lockPath locks the folder or file itself, so no lock file stays beside it.
func lockPath(path string, wait bool) (*Lock, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how); err {
		case nil:
			st, err := f.Stat()
			if err != nil {
				f.Close()
				return nil, err
			}
			return &Lock{st, func() { f.Close() }}, nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			f.Close()
			return nil, ErrLocked
		default:
			f.Close()
			return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
		}
	}
}
