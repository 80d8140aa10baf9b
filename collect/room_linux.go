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
	// leastRoom is what a run needs at least, in bytes: its first marks and frames, and the reserve.
	leastRoom = 8 << 20
	// reserveRoom is kept free for the end of a run. Even if the disk is full by then, the journal can be sealed
	// and the manifest written.
	reserveRoom = 4 << 20
	// manifestRoom is kept longer than reserveRoom, until the last manifest is written, since another program may fill
	// the disk while the journal is sealed.
	manifestRoom = 256 << 10
)

// reserve makes sure that a run has disk space before its script starts. reserve keeps some space for the run's end
// until release is called, and some for its manifest until last is called. Some network file systems cannot reserve
// space; there reserve only checks.
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

// keepRoom makes sure that the disk has least bytes, and keeps some of them in a file until release is called.
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

// asked is the error of a file system with too little space.
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

// roomError says what prevents a run's files.
func roomError(err error) error {
	switch {
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("it has less than %s free, which a run needs at least", units.FormatBytes(leastRoom))
	case errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("its quota leaves less than %s, which a run needs at least", units.FormatBytes(leastRoom))
	case errors.Is(err, unix.EFBIG):
		return fmt.Errorf("files may not grow to %s here (ulimit -f), which a run needs at least",
			units.FormatBytes(leastRoom))
	}
	return err
}
