package schemas

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckFolder finds a file that stands where a folder, or one above it, is to be written. Callers ask before hours of
// work whose result could not be kept. It makes nothing, since nothing may come to be written.
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
