//go:build !unix

package ingest

// alive cannot be told here; runs are recorded on Unix, and are brought elsewhere when they have ended.
func alive(int) bool { return false }
