package store

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// A Keeper makes the summaries that commands over many runs read in place of the runs' tables, and states the version
// of the summaries.
type Keeper struct {
	Version int          // version of the summary; see [schemas.Summary.Kept]
	Want    schemas.Want // the tables that Make reads
	// Make fills in a run's summary from its tables, and reports whether there is anything to keep.
	Make func(*schemas.Tables, *schemas.Summary) bool
	// Pack encodes a summary in the compact form that an index stores.
	Pack func(*schemas.Summary) (map[KeptKind][]byte, error)
	// Doing is called with the progress in making missing summaries: done of them, out of of, exist. Doing may be nil.
	Doing func(done, of int)
}

// Packed is a summary in the compact form that commands over many runs read.
type Packed struct {
	Origin []byte
	Parts  map[KeptKind][]byte
}

// packed returns a summary in packed form, or nil if s is nil or cannot be packed.
func (k *Keeper) packed(s *schemas.Summary) *Packed {
	if s == nil {
		return nil
	}
	parts, err := k.Pack(s)
	if err != nil {
		return nil
	}
	return &Packed{s.Origin, parts}
}

// WriteSummary writes the summary of a run that has just been ingested. WriteSummary returns no error, since a summary
// that could not be written is made at first use.
func WriteSummary(dir string, k Keeper) {
	if r, err := OpenRun(dir); err == nil {
		k.summarize(r)
	}
}

// read returns the summary kept in a run's folder, or nil if the folder has no valid summary.
func (k *Keeper) read(r Run) *schemas.Summary {
	s, err := schemas.ReadSummary(r.Dir, k.Version)
	if err != nil || s.RunID != r.ID || !whole(r.Dir) {
		return nil
	}
	for _, part := range []*json.RawMessage{&s.Origin, &s.Row, &s.Compared} {
		*part = compact(*part) // the document is indented
	}
	return s
}

// compact returns JSON without its indentation, since indentation made up a third of an index.
func compact(b []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return b
	}
	return out.Bytes()
}

// summary returns the kept summary of a run, or makes one from the run's tables. summary returns nil if the caller must
// try to read the run's tables: the run has no tables, or the user must learn something about them.
func (k *Keeper) summary(r Run) *schemas.Summary {
	if s := k.read(r); s != nil {
		return s
	}
	return k.summarize(r)
}

// summarize makes the summary of a run from its tables, and writes it if the folder is writable. summarize returns nil
// if no summary can be made.
func (k *Keeper) summarize(r Run) *schemas.Summary {
	// The digests are made first: if the files change meanwhile, the summary does not match them.
	manifest, report, err := schemas.SummaryDigests(r.Dir)
	if err != nil || !whole(r.Dir) {
		return nil
	}
	full, err := OpenRun(r.Dir)
	if err != nil {
		return nil
	}
	t, err := Load(full, k.Want)
	if err != nil {
		return nil
	}
	s := &schemas.Summary{RunID: r.ID, Kept: k.Version, Manifest: manifest, Report: report}
	if !k.Make(t, s) {
		return nil
	}
	schemas.WriteSummary(r.Dir, s) // if writing fails, the index may have the summary, or it can be made again
	return s
}

// intact reports whether all tables of a run that have a digest still match it.
func intact(r Run) bool {
	report, err := schemas.ReadIngestReport(r.Dir)
	if err != nil {
		return false
	}
	digests := maps.Clone(r.Manifest.Tables)
	if digests == nil {
		digests = map[string]string{}
	}
	maps.Copy(digests, report.Tables)
	return schemas.CheckTables(r.Dir, digests, slices.Collect(maps.Keys(digests))...) == nil
}

// whole reports whether a run folder still has all tables that ingest wrote, since a summary does not say which are
// missing.
func whole(dir string) bool {
	report, err := schemas.ReadIngestReport(dir)
	if err != nil {
		return false
	}
	names := []string{schemas.Steps.File(), schemas.Phases.File(), schemas.Marks.File()}
	for name := range report.Tables {
		names = append(names, name)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}
