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
	"syscall"

	"github.com/dpsight/dpsight/schemas"
)

// filesName is a list of a report's files, a line each, beside them. Without it a report that is made anew in its
// folder would leave there what only the old one had: another run's phases, say, beside results that know nothing of
// it.
const filesName = ".dpsight-report"

// A ForeignError says that a file that a report would write is there, and that no report wrote it.
type ForeignError struct{ Path string }

func (e *ForeignError) Error() string { return e.Path + " is there, and no report wrote it" }

// Hint says where else the report can go.
func (e *ForeignError) Hint() string { return "name another folder, or move it away" }

// unwritable adds advice to the error of a folder that cannot be written.
func unwritable(err error) error {
	var foreign *ForeignError
	if err == nil || errors.As(err, &foreign) {
		return err
	}
	return schemas.WithHint(err, "name a folder that can be written")
}

// withOld gives the names of what a report is about to write into dir, and of what an earlier one wrote there. It
// refuses to write over a file that no report wrote.
func withOld(dir string, files []output) ([]string, error) {
	names, err := listed(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := filepath.ToSlash(f.name)
		if slices.Contains(names, name) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, f.name)); err == nil {
			return nil, &ForeignError{filepath.Join(dir, f.name)}
		}
		names = append(names, name)
	}
	return names, nil
}

// removeStale removes what an earlier report wrote into dir and this one did not, and lists what this one wrote. Files
// that no report wrote stay.
func removeStale(dir string, files []output) error {
	var names []string
	for _, f := range files {
		names = append(names, filepath.ToSlash(f.name))
	}
	old, err := listed(dir)
	if err != nil {
		return err
	}
	for _, name := range old {
		if !filepath.IsLocal(filepath.FromSlash(name)) || slices.Contains(names, name) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing what the last report wrote: %w", err)
		}
	}
	return list(dir, names)
}

// listed are the files that reports wrote into dir.
func listed(dir string) (names []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, filesName))
	// a file in the folder's place is said when it is made
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("reading what the last report wrote: %w", err)
	}
	for name := range strings.Lines(string(text)) {
		names = append(names, strings.TrimSpace(name))
	}
	return names, nil
}

func list(dir string, names []string) error {
	return schemas.WriteFile(filepath.Join(dir, filesName), func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(names, "\n")+"\n")
		return err
	})
}
