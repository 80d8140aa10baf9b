// Package folder writes folders of results. Each file is written whole or not at all. Without [Options].Force, package
// folder does not overwrite files that dpsight did not write. Package folder removes results of earlier calls that are
// out of date.
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
	Name  string // name of the file, with the folders that contain it
	Write func(io.Writer) error
}

// Options say how a folder is written.
type Options struct {
	// Force overwrites files that dpsight did not write.
	Force bool
	// Written is called after each file, with the number of files written so far and of all files. It may
	// be nil.
	Written func(done, of int)
}

// Write writes files into the folder dir, which it creates, and returns the written paths in the order of files. Write
// removes earlier results that are not among files. If it would overwrite a file that is not dpsight's, Write without
// Force writes nothing and returns *ForeignError.
func Write(dir string, files []File, o Options) (written []string, err error) {
	defer func() { err = Unwritable(err) }()
	_, missing := os.Lstat(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the report's folder: %w", err)
	}
	lock, err := schemas.LockPath(dir) // without a lock, two processes would take each other's files for a stranger's
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	defer func() {
		if err != nil && missing != nil { // if the folder did not exist before, no half of a report is left
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
	// The list is written first, so that an interrupted report can be written again.
	if err := list(dir, names); err != nil {
		return nil, err
	}
	if written, err = WriteAll(dir, files, o.Written); err != nil {
		return written, err
	}
	return written, removeStale(dir, files)
}

// WriteAll writes files concurrently, so that no file waits until another has reached the disk. WriteAll puts the files
// in place after all are written: if the disk fills, the old files stay. WriteAll writes as many files at a time as
// there are processors. Most of a report's time is drawing, and a drawing takes tens of megabytes.
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

// A ForeignError reports an existing file that a report would overwrite although no report wrote it.
type ForeignError struct{ Path string }

func (e *ForeignError) Error() string { return e.Path + " is there, and no report wrote it" }

// Hint says what the user can do.
func (e *ForeignError) Hint() string {
	return "name another folder, move it away, or write over it with --force"
}

// Unwritable adds advice to an error about a folder that cannot be written.
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

// withOld returns the names of the files that a report is about to write into dir, and of those that an earlier report
// wrote there. Without force, it returns an error if a file to be overwritten is not from a report.
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

// removeStale removes the files that an earlier report wrote into dir and this one did not, and lists the files that
// this one wrote. Files that no report wrote stay.
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

// listed returns the names of the files that reports wrote into dir.
func listed(dir string) (names []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, schemas.ReportFiles))
	// A file in place of the folder is reported when the folder is created.
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
