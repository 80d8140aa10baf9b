package ingest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
)

// Outcome says what became of one input.
type Outcome struct {
	Path   string
	RunID  string // "" if refused
	Dir    string // run folder
	State  string
	Again  bool   // with schemas.IngestNew: it had been ingested before
	Reason string // why it was refused
	Hint   string // what to do about that, where the error says it
}

// ImportAll ingests each path and says what became of it.
func ImportAll(paths []string, store string, o Options) (schemas.Ingested, error) {
	doc := schemas.Ingested{Schema: schemas.IngestedSchema, Inputs: []schemas.IngestedInput{}}
	for _, path := range paths {
		outcomes, err := Import(path, store, o)
		if err != nil {
			return doc, err
		}
		for _, out := range outcomes {
			in := schemas.IngestedInput{Path: out.Path, RunIDs: []string{}, State: out.State, Again: out.Again}
			if out.RunID != "" {
				in.RunIDs = append(in.RunIDs, out.RunID)
			}
			if out.State != schemas.IngestRefused {
				doc.Dirs = append(doc.Dirs, out.Dir)
			}
			if out.State == schemas.IngestRefused {
				in.Reason, in.Hint = &out.Reason, out.Hint
			}
			doc.Inputs = append(doc.Inputs, in)
		}
	}
	return doc, nil
}

// Import ingests whatever lies at path into the store: a run folder (where it is), a snapshot that torch wrote, or a
// folder of these. What is known is left alone unless o.Again. The error is of the store or the disk; an input that
// dpsight cannot take is an outcome.
func Import(path, store string, o Options) ([]Outcome, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Outcome{{Path: path, State: schemas.IngestRefused, Reason: "there is no such file or folder"}}, nil
	case err != nil:
		return []Outcome{{Path: path, State: schemas.IngestRefused, Reason: err.Error()}}, nil
	case !st.IsDir():
		out, err := importFile(path, store, o)
		return []Outcome{out}, err
	case schemas.IsRun(path):
		return []Outcome{importRun(path, o)}, nil
	}
	return importFolder(path, store, o)
}

// importFolder takes every run folder and every snapshot, by its name, below a folder; hidden ones and what lies inside
// runs are left out.
func importFolder(dir, store string, o Options) ([]Outcome, error) {
	var out []Outcome
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			out = append(out, Outcome{Path: path, State: schemas.IngestRefused, Reason: err.Error()})
			return nil
		}
		switch {
		case path != dir && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() && schemas.IsRun(path):
			out = append(out, importRun(path, o))
			return fs.SkipDir
		case d.IsDir() || !looksLikePickle(path):
			// A store holds reports, suites and notes too; only a file named by itself is worth a refusal.
			return nil
		}
		one, err := importFile(path, store, o)
		out = append(out, one)
		return err
	})
	if err == nil && len(out) == 0 {
		out = append(out, Outcome{Path: dir, State: schemas.IngestRefused, Reason: "the folder holds no run and no snapshot"})
	}
	return out, err
}

func importRun(dir string, o Options) Outcome {
	out := outcome(dir, dir, o)
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		return refused(dir, err)
	}
	out.RunID = m.RunID
	if out.State == schemas.IngestKnown {
		return out
	}
	if o.Prepare != nil {
		if err := o.Prepare(dir); err != nil {
			return refused(dir, err)
		}
	}
	if _, err := Run(dir, o); err != nil {
		return refused(dir, err)
	}
	return out
}

// refused is a run folder that could not be ingested.
func refused(dir string, err error) Outcome {
	out := Outcome{Path: dir, State: schemas.IngestRefused, Reason: err.Error()}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		out.Hint = hinted.Hint()
	}
	return out
}

func importFile(path, store string, o Options) (Outcome, error) {
	out := Outcome{Path: path, State: schemas.IngestRefused}
	done, err := importSnapshot(path, store, o)
	var own *refusal
	switch {
	case err == nil:
		return done, nil
	case errors.As(err, &own):
		out.Reason = own.reason
	case isStoreError(err, store):
		out.Reason = err.Error()
		return out, err
	case errors.Is(err, torchsnap.ErrNotSnapshot), !looksLikePickle(path):
		out.Reason = fmt.Sprintf("not a memory snapshot of torch (%v)", err)
	default:
		out.Reason = err.Error()
	}
	return out, nil
}

// outcome is what becomes of an input whose run lies in dir, or will. A report that cannot be read is made again
// unasked.
func outcome(path, dir string, o Options) Outcome {
	out := Outcome{Path: path, Dir: dir, RunID: filepath.Base(dir), State: schemas.IngestNew}
	switch _, err := schemas.ReadIngestReport(dir); {
	case err == nil && !o.Again:
		out.State = schemas.IngestKnown
	default:
		out.Again = !errors.Is(err, fs.ErrNotExist)
	}
	return out
}

// isStoreError tells trouble with the place written to from trouble with the file.
func isStoreError(err error, store string) bool {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return false
	}
	path := p.Path
	// The trouble may also lie above the store: a file where a folder should be.
	return within(path, store) || within(store, path)
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// looksLikePickle reports whether a file's name says that it is one, compressed or not.
func looksLikePickle(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	for _, suffix := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return strings.HasSuffix(name, ".pickle") || strings.HasSuffix(name, ".pkl")
}
