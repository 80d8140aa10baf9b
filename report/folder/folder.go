// Package folder writes folders of results. Each file is written whole or not at all. Without [Options].Force, the
// package does not overwrite files that dpsight did not write. Outdated results are removed.
package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/dpsight/dpsight/schemas"
)

// A File is one file of a folder.
type File struct {
	Name  string // with the folders below
	Write func(io.Writer) error
}

// Options say how a folder is written.
type Options struct {
	// Force writes over files that dpsight did not write.
	Force bool
	// Written is called after each file, with the numbers of files done and in all. May be nil.
	Written func(done, of int)
}

// Write makes files in dir, which it creates, and returns the written paths in the order of files. Write removes
// earlier results that are not among files. If an existing file is not dpsight's, Write without Force writes nothing
// and returns *ForeignError.
func Write(dir string, files []File, o Options) (written []string, err error) {
	defer func() { err = Unwritable(err) }()
	_, missing := os.Lstat(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the report's folder: %w", err)
	}
	lock, err := schemas.LockPath(dir) // two processes at once would take each other's files for somebody else's
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	defer func() {
		if err != nil && missing != nil { // no half of a report is left where there was none
			os.RemoveAll(dir)
		}
	}()
	names, err := withOld(dir, files, o.Force)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f.Name)), 0o755); err != nil {
			return nil, fmt.Errorf("making the report's folder: %w", err)
		}
	}
	// The list is written first, so that an interrupted report can be made again.
	if err := list(dir, names); err != nil {
		return nil, err
	}
	if written, err = WriteAll(dir, files, o.Written); err != nil {
		return written, err
	}
	return written, removeStale(dir, files)
}

// WriteAll writes files concurrently, so that none waits for another's way to the disk, and puts them in place after
// all are written: if the disk fills, the old files stay. WriteAll makes as many files at a time as there are
// processors. Most of a report's time is drawing, and a drawing takes tens of megabytes.
func WriteAll(dir string, files []File, made func(done, of int)) ([]string, error) {
	errs := make([]error, len(files))
	all := schemas.Replacement{Dir: dir}
	defer all.Discard()
	making := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	var done atomic.Int64
	for i, f := range files {
		wg.Go(func() {
			errs[i] = all.File(f.Name, func(w io.Writer) error {
				making <- struct{}{}
				defer func() { <-making }()
				return f.Write(w)
			})
			if n := int(done.Add(1)); made != nil {
				made(n, len(files))
			}
		})
	}
	wg.Wait()
	var written []string
	for i, f := range files {
		path := filepath.Join(dir, f.Name)
		if errs[i] != nil {
			return nil, fmt.Errorf("writing %s: %w", path, errs[i])
		}
		written = append(written, path)
	}
	if err := all.Commit(files[0].Name); err != nil {
		return nil, fmt.Errorf("putting the files in place: %w", err)
	}
	return written, nil
}

// A ForeignError says that a file that a report would write is there, and that no report wrote it.
type ForeignError struct{ Path string }

func (e *ForeignError) Error() string { return e.Path + " is there, and no report wrote it" }

// Hint says what helps.
func (e *ForeignError) Hint() string {
	return "name another folder, move it away, or write over it with --force"
}

// Unwritable adds advice to the error of a folder that cannot be written.
func Unwritable(err error) error {
	var foreign *ForeignError
	if err == nil || errors.As(err, &foreign) {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) {
		return schemas.WithHint(err, "free some space, or name a folder of another disk")
	}
	return schemas.WithHint(err, "name a folder that can be written")
}

// withOld returns the names of what a report is about to write into dir, and of what an earlier one wrote there.
// Without force, withOld refuses to overwrite a file that no report wrote.
func withOld(dir string, files []File, force bool) ([]string, error) {
	names, err := listed(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := filepath.ToSlash(f.Name)
		if slices.Contains(names, name) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, f.Name)); err == nil && !force {
			return nil, &ForeignError{filepath.Join(dir, f.Name)}
		}
		names = append(names, name)
	}
	return names, nil
}

// removeStale removes what an earlier report wrote into dir and this one did not, and lists what this one wrote. Files
// that no report wrote stay.
func removeStale(dir string, files []File) error {
	var names []string
	for _, f := range files {
		names = append(names, filepath.ToSlash(f.Name))
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
	// a file in the folder's place is reported when the folder is made
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
