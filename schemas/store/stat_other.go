//go:build !darwin && !linux

package store

import (
	"os"
	"path/filepath"
)

// A statter reads the sizes and times of files below a folder.
type statter struct{ dir string }

// statIn returns a statter for a folder.
func statIn(dir string) *statter { return &statter{dir} }

func (s *statter) close() {}

// stat returns a file's size and time, or nil if the file does not exist. Inode numbers are not available on this
// platform.
func (s *statter) stat(name string) *fileStat {
	st, err := os.Stat(filepath.Join(s.dir, name))
	if err != nil {
		return nil
	}
	return &fileStat{at: st.ModTime().UnixNano(), size: st.Size(), folder: st.IsDir()}
}
