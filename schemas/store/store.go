// Package store finds runs on disk and reads them.
//
// A store is a folder of run folders, beside them suites/<id>.json. A run folder can be moved, mailed or deleted by
// itself, so nothing here depends on an index: the folders are the truth, and a damaged one hides no other.
package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// A Run is one run folder and its manifest.
type Run struct {
	ID       string
	Dir      string
	Manifest *schemas.Manifest
	Progress *Progress // of a run that is still being recorded
}

// Ingested says whether the run has its tables.
func (r Run) Ingested() bool {
	_, err := os.Stat(filepath.Join(r.Dir, schemas.IngestReportFile))
	return err == nil
}

// Damaged is a run folder whose manifest cannot be read, or a suite's document that cannot.
type Damaged struct {
	Dir   string // or the document's path
	Err   error
	Suite string // the suite's id; empty for a run
}

func (d Damaged) Error() string {
	if d.Suite != "" {
		return fmt.Sprintf("suite %s: %v", d.Suite, d.Err)
	}
	return fmt.Sprintf("run folder %s: %v", d.Dir, d.Err)
}

func (d Damaged) Unwrap() error { return d.Err }

// A Store is a folder of runs. It holds no files open.
type Store struct{ dir string }

// Open names the store in dir. The folder need not exist yet: then it has no runs.
func Open(dir string) *Store { return &Store{dir} }

// Dir is the store's folder.
func (s *Store) Dir() string { return s.dir }

// Runs lists the store's runs, oldest first, and the folders that look like runs but cannot be read. The error is of
// the store itself.
func (s *Store) Runs() ([]Run, []Damaged, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil
		}
		return nil, nil, &ReadError{fmt.Errorf("reading store: %w", err)}
	}
	var runs []Run
	var damaged []Damaged
	for _, e := range entries {
		dir := filepath.Join(s.dir, e.Name())
		if strings.HasSuffix(e.Name(), schemas.PartialSuffix) || !schemas.IsRun(dir) {
			continue
		}
		r, err := OpenRun(dir)
		if err != nil {
			damaged = append(damaged, Damaged{Dir: dir, Err: err})
			continue
		}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(a.Manifest.Start.Compare(b.Manifest.Start), cmp.Compare(a.ID, b.ID))
	})
	return runs, damaged, nil
}

// OpenRun reads the manifest of a run folder.
func OpenRun(dir string) (Run, error) {
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		return Run{}, err
	}
	if m.RunID == "" {
		return Run{}, fmt.Errorf("%s: it names no run_id", schemas.ManifestFile)
	}
	return Run{ID: m.RunID, Dir: dir, Manifest: m}, nil
}
