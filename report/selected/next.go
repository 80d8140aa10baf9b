package selected

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// plainWord is a word that no shell takes apart.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// word is a path as a shell takes it for one word.
func word(path string) string {
	if plainWord.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// AfterIngest returns the command that shows what was ingested, "" if nothing was ingested. The command names a run,
// since a command without one takes the newest run by its own time, which may be another.
func (s *Source) AfterIngest(doc schemas.Ingested) string {
	var stores []string
	for _, dir := range doc.Dirs {
		if of := filepath.Dir(filepath.Clean(dir)); !slices.Contains(stores, of) {
			stores = append(stores, of)
		}
	}
	command := "dpsight runs"
	switch {
	case len(stores) == 0:
		return ""
	case len(stores) > 1:
		for _, of := range stores {
			if filepath.Base(of) == of { // the bare name could mean a run of that name
				of = "./" + of
			}
			command += " " + word(of)
		}
		return command
	case len(doc.Dirs) == 1:
		command = showing(stores[0], doc.Dirs[0])
	}
	if !s.Named && stores[0] == filepath.Clean(s.Store) {
		return command
	}
	return command + " --store " + word(stores[0])
}

// showing returns the command that shows most about one run of a store.
func showing(of, dir string) string {
	const list = "dpsight runs"
	run, err := store.OpenRun(dir)
	if err != nil || run.Manifest.Bare {
		return list
	}
	command := "dpsight breakdown "
	if run.Manifest.FiguresOnly() {
		if phases, err := schemas.Phases.ReadOptional(dir); err != nil || len(phases) == 0 {
			return list
		}
		command = "dpsight phases "
	}
	name := run.Manifest.Name
	if sel, err := store.Open(of).Resolve([]string{name}); err != nil || len(sel.Newest) > 0 ||
		!plainWord.MatchString(name) {
		name = run.ID
	}
	return command + name
}
