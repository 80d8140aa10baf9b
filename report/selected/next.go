package selected

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// plainWord matches a word that needs no quotes in any shell.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// word quotes a path, if necessary, so that a shell reads it as one word.
func word(path string) string {
	if plainWord.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// AfterIngest returns the command that shows a run which was just ingested, or "" if none was. The command names the
// run, since a command without a name would show the run with the latest start, which may be another run.
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
			if filepath.Base(of) == of { // the bare name could mean a run with that name
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

// showing returns the command that shows the most about one run of a store.
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
