package units

import (
	"path/filepath"
	"strings"
)

// FileName is a name as that of a file: what cannot stand in one everywhere is replaced.
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
