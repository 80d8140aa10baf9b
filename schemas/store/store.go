// Package store finds runs on disk and reads them.
//
// A store is a folder of run folders, with suites/<id>.json beside them. A user can move, mail or delete a single run
// folder. So package store reads the folders themselves, and a damaged folder does not hide the other runs. A store of
// many runs also has an index, which only saves time.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// A Run is one run folder and its manifest.
type Run struct {
	ID       string
	Dir      string
	Manifest *schemas.Manifest
	Tags     []string  // tags that users gave the run; see [schemas.Tags]
	Progress *Progress // set if the run is still being recorded

	linked bool // the run's folder is a link
	brief  bool // the manifest has only what the selection of runs needs; see [OpenIndexed]
	// listed is true if the run was looked up in an index. stamp is then the stamp of the run's folder, empty if it is
	// not reliable, and ingested says whether the run had tables.
	listed, ingested bool
	stamp            string
}

// Ingested reports whether the run has its tables.
func (r Run) Ingested() bool {
	if r.listed {
		return r.ingested
	}
	_, err := os.Stat(filepath.Join(r.Dir, schemas.IngestReportFile))
	return err == nil
}

// Damaged is a run folder whose manifest cannot be read, or a suite's document that cannot be read.
type Damaged struct {
	Dir   string // folder of the run, or path of the document
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

// A Store is a folder of runs. A Store keeps no files open.
type Store struct {
	dir     string
	indexed bool
}

// Open returns the store in a folder. The folder need not exist yet; the store then has no runs.
func Open(dir string) *Store { return &Store{dir: dir} }

// OpenIndexed is [Open] for commands over many runs. OpenIndexed lists the runs of a large store from the store's
// index. The listed runs' manifests may hold only the fields that selection needs. Code that reads a run's tables gets
// the whole manifest.
func OpenIndexed(dir string) *Store { return &Store{dir: dir, indexed: true} }

// Dir returns the store's folder.
func (s *Store) Dir() string { return s.dir }

// Runs lists the store's runs, oldest first, and the folders that look like runs but cannot be read. Runs returns an
// error only if the store's folder cannot be read.
func (s *Store) Runs() ([]Run, []Damaged, error) {
	dirs, links, err := s.folders()
	if err != nil {
		return nil, nil, err
	}
	var runs []Run
	var damaged []Damaged
	if s.indexed && len(dirs) >= LeastIndexed {
		runs, damaged = s.indexedRuns(dirs)
	} else {
		runs, damaged = readRuns(dirs)
	}
	for i := range runs {
		runs[i].linked = links[runs[i].Dir]
	}
	byAge(runs)
	return runs, damaged, nil
}

// readRuns reads the manifests of those folders that are run folders.
func readRuns(dirs []string) (runs []Run, damaged []Damaged) {
	for _, dir := range dirs {
		if !schemas.IsRun(dir) {
			continue
		}
		r, err := OpenRun(dir)
		if err != nil {
			damaged = append(damaged, Damaged{Dir: dir, Err: err})
			continue
		}
		runs = append(runs, r)
	}
	return runs, damaged
}

// folders returns the folders of a store that may be runs, and which of them are links.
func (s *Store) folders() (dirs []string, links map[string]bool, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil
		}
		return nil, nil, &ReadError{fmt.Errorf("reading store: %w", err)}
	}
	links = map[string]bool{}
	for _, e := range entries {
		if e.Type().IsRegular() || strings.HasSuffix(e.Name(), schemas.PartialSuffix) {
			continue
		}
		dir := filepath.Join(s.dir, e.Name())
		if dirs = append(dirs, dir); e.Type()&fs.ModeSymlink != 0 {
			links[dir] = true
		}
	}
	return dirs, links, nil
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
	tags, err := schemas.ReadTags(dir)
	if err != nil {
		return Run{}, err
	}
	return Run{ID: m.RunID, Dir: dir, Manifest: m, Tags: tags}, nil
}

// full returns the run with its whole manifest. A run that is being recorded keeps the status that
// [Selection.SetRunning] gave it.
func (r Run) full() (Run, error) {
	if !r.brief {
		return r, nil
	}
	whole, err := OpenRun(r.Dir)
	if err != nil {
		return Run{}, err
	}
	whole.Progress = r.Progress
	if r.Progress != nil {
		whole.Manifest.Status, whole.Manifest.Reason = r.Manifest.Status, r.Manifest.Reason
	}
	return whole, nil
}
