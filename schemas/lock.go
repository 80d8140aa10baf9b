package schemas

import (
	"errors"
	"os"
)

// ErrLocked says that another process, or another part of this process, holds the lock.
var ErrLocked = errors.New("another dpsight is writing it")

// A Lock keeps other dpsight processes from rewriting a folder or file. The operating system releases the lock when its
// process ends in any way, so no lock can be stale. Locks are advisory: readers take none, since dpsight replaces files
// as a whole.
type Lock struct {
	held    os.FileInfo // the locked file; nil where a lock does not belong to the path itself
	release func()
}

// Holds reports whether path still names the locked file: the lock's previous holder may have removed the file after it
// was opened here and before it was locked.
func (l *Lock) Holds(path string) bool {
	st, err := os.Lstat(path)
	return l.held == nil || err == nil && os.SameFile(l.held, st)
}

// Unlock releases the lock. Unlock does nothing for a nil Lock.
func (l *Lock) Unlock() {
	if l != nil {
		l.release()
	}
}

// LockPath waits for the lock of an existing folder or file. A file that is replaced under its name needs a
// separate lock file beside it, since a lock belongs to the file that had the name when the lock was taken.
func LockPath(path string) (*Lock, error) { return lockPath(path, true) }

// TryLockPath is [LockPath] without the wait. TryLockPath returns [ErrLocked] if somebody holds the lock.
func TryLockPath(path string) (*Lock, error) { return lockPath(path, false) }
