package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// removed is the suffix of a folder that is being removed. No command looks into a folder with this suffix.
const removed = ".removed" + schemas.PartialSuffix

// Remove deletes a run from its store. Remove first renames the folder, so that no command finds the run any more, and
// then deletes it. If another process is writing the run, Remove returns [schemas.ErrLocked].
func Remove(r Run) error {
	lock, err := schemas.TryLockPath(r.Dir)
	if err != nil {
		return fmt.Errorf("removing run %s: %w", r.ID, err)
	}
	defer lock.Unlock()
	gone := r.Dir + removed
	if err := os.Rename(r.Dir, gone); err != nil {
		return fmt.Errorf("removing run %s: %w", r.ID, err)
	}
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("run %s is removed, but not all of its files: %w", r.ID, err)
	}
	return nil
}

// SweepRemoved deletes the remains of runs whose removal was interrupted.
func (s *Store) SweepRemoved() error {
	left, err := filepath.Glob(filepath.Join(s.dir, "*"+removed))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// A Reference is a suite's document, or the manifest of another run, that names a run.
type Reference struct {
	RunID string `json:"run_id"`
	Kind  string `json:"kind"` // "suite" or "prediction"
	Name  string `json:"name"` // name of the suite, or id of the other run
}

// References returns the suites that name any of the given runs, and the predictions whose range of peaks comes from
// them. References leaves out predictions that are themselves among the given runs.
func (s *Store) References(runs []Run) (out []Reference, err error) {
	among := map[string]bool{}
	for _, r := range runs {
		among[r.ID] = true
	}
	suites, _, err := s.Suites()
	if err != nil {
		return nil, err
	}
	for _, suite := range suites {
		for _, id := range suite.RunIDs() {
			if among[id] {
				out = append(out, Reference{id, "suite", suite.ID})
			}
		}
	}
	all, _, err := s.Runs()
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if p := r.Manifest.Phantom; p != nil && !among[r.ID] {
			for _, c := range p.Collections {
				if among[c.RunID] {
					out = append(out, Reference{c.RunID, "prediction", r.ID})
				}
			}
		}
	}
	return out, nil
}

// Kinds are the kinds of files that a run folder has, in the order in which they are listed.
var Kinds = []string{"journals", "tables", "documents", "snapshots", "logs", "others"}

// Usage returns how many bytes the files of a run take on disk, by kind of file.
func (r Run) Usage() (bytes map[string]int64, err error) {
	bytes = map[string]int64{}
	err = filepath.WalkDir(r.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // another process has just replaced the file
			return nil
		}
		if err == nil {
			bytes[fileKind(r, path)] += st.Size()
		}
		return err
	})
	return bytes, err
}

func fileKind(r Run, path string) string {
	name, _ := filepath.Rel(r.Dir, path)
	documents := []string{schemas.ManifestFile, schemas.IngestReportFile, schemas.SummaryFile, schemas.TagsFile}
	switch {
	case r.Manifest.Import != nil && strings.Contains(name, ".pickle"):
		return "snapshots"
	case filepath.Dir(name) == spool.Dir:
		return "journals"
	case strings.HasSuffix(name, ".parquet"):
		return "tables"
	case slices.Contains(documents, name):
		return "documents"
	case strings.HasSuffix(name, ".log"):
		return "logs"
	}
	return "others"
}
