package schemas

import (
	"errors"
	"io/fs"
	"os"
)

// ErrNotRegular says that a path is not a regular file but, for example, a pipe or a device. dpsight does not open
// these: reading a pipe without a writer would never return, and opening a device may have effects.
var ErrNotRegular = errors.New("it is no regular file")

// OpenRegular opens a regular file to read it. OpenRegular refuses pipes, devices and sockets.
func OpenRegular(path string) (*os.File, error) {
	if err := CheckRegular(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// ReadRegular reads a regular file, and refuses pipes, devices and sockets.
func ReadRegular(path string) ([]byte, error) {
	if err := CheckRegular(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// CheckRegular returns an error if a path is neither a regular file nor a folder, or if its type cannot be read.
func CheckRegular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if m := info.Mode(); !m.IsRegular() && !m.IsDir() { // for a folder, opening it fails with an error of its own
		return &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	return nil
}
