//go:build !darwin && !linux

package store

import (
	"os"
	"path/filepath"
)

// A statter looks at the files below a folder.
type statter struct{ dir string }

// statIn is a statter of a folder.
func statIn(dir string) *statter { return &statter{dir} }

func (s *statter) close() {}

// stat returns what is known of a file; nil if the file does not exist. The file's number is not available here, so
// sizes and times must suffice.
func (s *statter) stat(name string) *fileStat {
	st, err := os.Stat(filepath.Join(s.dir, name))
	if err != nil {
		return nil
	}
	return &fileStat{at: st.ModTime().UnixNano(), size: st.Size(), folder: st.IsDir()}
}
