//go:build !unix

package process

// SurviveFileLimit does nothing, since this platform has no limit on a file's size.
func SurviveFileLimit() {}
