//go:build !linux

package main

import "os"

// resident cannot tell a process's highest resident memory on this system.
func resident(*os.ProcessState) string { return "memory not known" }
