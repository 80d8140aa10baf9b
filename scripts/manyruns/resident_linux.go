package main

import (
	"fmt"
	"os"
	"syscall"
)

// resident returns a process's highest resident memory as text.
func resident(s *os.ProcessState) string {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return fmt.Sprintf("%d MB", u.Maxrss*1024/1e6)
	}
	return "memory not known"
}
