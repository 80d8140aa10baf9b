//go:build !linux

package store

// remote returns false, since dpsight does not examine file systems on this platform.
func remote(string) bool { return false }
