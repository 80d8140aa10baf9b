package grouping

import (
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// folds are the paths of modules whose numbered children all have the same class. The layers of a transformer fold into
// layers.*; the different modules of a Sequential do not fold.
type folds map[string]bool

// FoldsOf finds the folds in the modules of all runs that are compared, so that a path folds in all the runs or in
// none.
func FoldsOf(runs ...[]schemas.Module) folds {
	f := folds{}
	for _, list := range runs {
		classes, size, seen := map[string]string{}, map[string]int{}, map[string]bool{}
		for i := range list {
			m := &list[i]
			parent, last := "", m.Path
			if dot := strings.LastIndexByte(m.Path, '.'); dot >= 0 {
				parent, last = m.Path[:dot], m.Path[dot+1:]
			}
			if seen[m.Path] || !isNumber(last) {
				continue
			}
			seen[m.Path] = true
			if c, ok := classes[parent]; ok && c != m.Class {
				f[parent] = false
			}
			classes[parent] = m.Class
			size[parent]++
		}
		for parent, n := range size {
			if _, decided := f[parent]; !decided && n > 1 {
				f[parent] = true
			}
		}
	}
	return f
}

// Fold returns a path with a star in the place of each number that folds.
func (f folds) Fold(path string) string {
	parts := strings.Split(path, ".")
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = p
		if isNumber(p) && f[strings.Join(parts[:i], ".")] {
			out[i] = "*"
		}
	}
	return strings.Join(out, ".")
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
