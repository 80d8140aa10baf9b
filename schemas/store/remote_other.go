//go:build !linux

package store

// remote is not known here.
func remote(string) bool { return false }
