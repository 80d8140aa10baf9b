package units

import (
	"path/filepath"
	"strings"
)

// FileName turns a name into a file name: it replaces the characters that some operating system does not allow.
func FileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, name)
	if !filepath.IsLocal(name) {
		return "run"
	}
	return name
}
