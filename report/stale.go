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

// A ForeignError says that a file that a report would write is there, and that no report wrote it.
type ForeignError struct{ Path string }

func (e *ForeignError) Error() string { return e.Path + " is there, and no report wrote it" }

// Hint says what helps.
func (e *ForeignError) Hint() string {
	return "name another folder, move it away, or write over it with dpsight report --force"
}

// unwritable adds advice to the error of a folder that cannot be written.
func unwritable(err error) error {
	var foreign *ForeignError
	if err == nil || errors.As(err, &foreign) {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) {
		return schemas.WithHint(err, "free some space, or name a folder of another disk")
	}
	return schemas.WithHint(err, "name a folder that can be written")
}

// withOld gives the names of what a report is about to write into dir, and of what an earlier one wrote there. It
// refuses to write over a file that no report wrote, unless it is forced to.
func withOld(dir string, files []output, force bool) ([]string, error) {
	names, err := listed(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := filepath.ToSlash(f.name)
		if slices.Contains(names, name) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, f.name)); err == nil && !force {
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
	text, err := os.ReadFile(filepath.Join(dir, schemas.ReportFiles))
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
	return schemas.WriteFile(filepath.Join(dir, schemas.ReportFiles), func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(names, "\n")+"\n")
		return err
	})
}
