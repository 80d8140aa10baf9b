package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// filesName is a list of a report's files, a line each, beside them. Without it a report that is made anew in its folder would leave there what
// only the old one had: another run's phases, say, beside results that know nothing of it.
const filesName = ".dpsight-report"

// removeStale removes what an earlier report wrote into dir and this one did not, and lists what this one wrote. Files that no report wrote stay.
func removeStale(dir string, files []output) error {
	var names []string
	for _, f := range files {
		names = append(names, filepath.ToSlash(f.name))
	}
	old, err := os.ReadFile(filepath.Join(dir, filesName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading what the last report wrote: %w", err)
	}
	for name := range strings.Lines(string(old)) {
		name = strings.TrimSpace(name)
		if !filepath.IsLocal(filepath.FromSlash(name)) || slices.Contains(names, name) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing what the last report wrote: %w", err)
		}
	}
	return schemas.WriteFile(filepath.Join(dir, filesName), func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(names, "\n")+"\n")
		return err
	})
}
