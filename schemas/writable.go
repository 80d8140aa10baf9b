package schemas

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckFolder returns an error if a file has the path of a folder to be written, or of a folder above it. Callers check
// this before hours of work whose result could not be kept. CheckFolder creates nothing, since it is not certain that
// anything will be written.
func CheckFolder(dir string) error {
	for {
		st, err := os.Stat(dir)
		switch up := filepath.Dir(dir); {
		case err == nil && !st.IsDir():
			return &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("not a directory")}
		case err == nil || up == dir:
			return nil
		default:
			dir = up
		}
	}
}
