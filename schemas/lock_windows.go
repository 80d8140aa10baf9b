package schemas

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lockPath locks a file beside path; that lock file stays. On Windows a folder cannot be locked, and could not be
// renamed while a file in it is open.
func lockPath(path string, wait bool) (*Lock, error) {
	name := filepath.Clean(path) + ".lock"
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, filePermission(name))
	if err != nil {
		return nil, err
	}
	how := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK)
	if !wait {
		how |= windows.LOCKFILE_FAIL_IMMEDIATELY
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, new(windows.Overlapped))
	switch err {
	case nil:
		return &Lock{release: func() { f.Close() }}, nil
	case windows.ERROR_LOCK_VIOLATION:
		f.Close()
		return nil, ErrLocked
	}
	f.Close()
	return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
}
