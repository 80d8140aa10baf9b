package collect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

const (
	// leastRoom is the disk space in bytes that a run needs at least: for its first marks and frames, and for the
	// reserve.
	leastRoom = 8 << 20
	// reserveRoom is kept free for the end of a run. Even if the disk is full then, the journal can be sealed and the
	// manifest written.
	reserveRoom = 4 << 20
	// manifestRoom is kept free for longer, until the final manifest is written, since another program may fill the
	// disk while the journal is sealed.
	manifestRoom = 256 << 10
)

// reserve checks, before a script starts, that its run has disk space. reserve keeps some space free for the run's end
// until release is called, and some for the manifest until last is called. Some network file systems cannot reserve
// space, and on them reserve only checks.
func reserve(dir string) (release, last func(), err error) {
	if last, err = keepRoom(filepath.Join(dir, "reserve-manifest"), manifestRoom, manifestRoom); err != nil {
		return nil, nil, err
	}
	if release, err = keepRoom(filepath.Join(dir, "reserve"), leastRoom-manifestRoom, reserveRoom); err != nil {
		last()
		return nil, nil, err
	}
	return release, last, nil
}

// keepRoom checks that the disk has least bytes free, and keeps kept of them in a file until release is called.
func keepRoom(path string, least, kept int64) (release func(), err error) {
	f, err := os.OpenFile(path+schemas.PartialSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	release = func() {
		os.Remove(f.Name())
		f.Close()
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, least)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = asked(filepath.Dir(path))
	} else if err == nil {
		err = f.Truncate(kept)
	}
	if err != nil {
		release()
		return nil, roomError(err)
	}
	return release, nil
}

// asked returns an error that a file system has too little space.
func asked(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return err
	}
	if st.Bavail < leastRoom/uint64(st.Bsize) {
		return unix.ENOSPC
	}
	return nil
}

// roomError says why a run's files cannot be written.
func roomError(err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("less than %s is free, and a run needs at least that", units.FormatBytes(leastRoom))
	case errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("the quota leaves less than %s, and a run needs at least that", units.FormatBytes(leastRoom))
	case errors.Is(err, unix.EFBIG):
		return fmt.Errorf("ulimit -f does not let a file grow to %s, and a run needs at least that",
			units.FormatBytes(leastRoom))
	}
	return err
}
