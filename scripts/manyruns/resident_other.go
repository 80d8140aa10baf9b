//go:build !linux

package main

import "os"

// resident is not known here.
func resident(*os.ProcessState) string { return "memory not known" }
