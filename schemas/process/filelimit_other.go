//go:build !unix

package process

// SurviveFileLimit has nothing to do: there is no such limit here.
func SurviveFileLimit() {}
