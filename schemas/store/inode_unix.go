//go:build darwin || linux

package store

import (
	"io/fs"
	"syscall"
)

// inode is the number of a file: one that was put in another's place has another.
func inode(st fs.FileInfo) uint64 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
