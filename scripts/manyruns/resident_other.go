//go:build !linux

package main

import "os"

// resident returns a fixed text, since this system does not tell a process's highest resident memory.
func resident(*os.ProcessState) string { return "memory not known" }
