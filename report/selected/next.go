package selected

import (
	"path/filepath"
	"regexp"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// plainWord is a word that no shell takes apart.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// AfterIngest is the command that shows what was ingested, empty where nothing was. A command that names no run takes
// the newest by its own time, which may be another one.
func (s *Source) AfterIngest(doc schemas.Ingested) string {
	if len(doc.Dirs) == 0 {
		return ""
	}
	dir, command := filepath.Dir(filepath.Clean(doc.Dirs[0])), "dpsight runs"
	if run, err := store.OpenRun(doc.Dirs[0]); err == nil && len(doc.Dirs) == 1 && !run.Manifest.Bare {
		name := run.Manifest.Name
		if sel, err := store.Open(dir).Resolve([]string{name}); err != nil || len(sel.Newest) > 0 ||
			!plainWord.MatchString(name) {
			name = run.ID
		}
		command = "dpsight breakdown " + name
		if run.Manifest.FiguresOnly() {
			command = "dpsight analyze phases " + name
		}
	}
	switch {
	case !s.Named && dir == filepath.Clean(s.Store):
		return command
	case plainWord.MatchString(dir):
		return command + " --store " + dir
	}
	return command + " --store '" + dir + "'"
}
