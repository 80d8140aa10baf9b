package ingest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/ingest/figures"
	"github.com/dpsight/dpsight/ingest/packed"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
)

// Outcome is the result of one input.
type Outcome struct {
	Path   string
	RunID  string // id of the run; "" if the input was refused
	Dir    string // folder of the run
	State  string
	Again  bool   // with schemas.IngestNew: the input had been ingested before
	Reason string // why the input was refused
	Hint   string // what the user can do about it, if the error tells
	// Warnings are the warnings of a snapshot's ingest report.
	Warnings []string
}

// ImportAll ingests each path and returns the outcomes. Snapshots in the same folder whose names differ only in the
// rank become one run. If o.Ranks is true, all paths together become one run.
func ImportAll(paths []string, store string, o Options) (schemas.Ingested, error) {
	doc := schemas.Ingested{Schema: schemas.IngestedSchema, Inputs: []schemas.IngestedInput{}}
	groups := byRun(rankFiles(paths), func(f *rankFile) bool { return schemas.CheckRegular(f.path) == nil })
	if o.Ranks {
		groups = [][]rankFile{rankFiles(paths)}
	}
	for _, group := range groups {
		outcomes, err := importGroup(group, store, o)
		if err != nil {
			return doc, err
		}
		for i, out := range outcomes {
			if out.State == schemas.IngestKnown && otherVersion(out.Dir) {
				doc.OtherRules = append(doc.OtherRules, out.RunID)
			}
			if n := len(doc.Inputs); i > 0 && out.RunID != "" && sameInput(&doc.Inputs[n-1], &out) {
				last := &doc.Inputs[n-1]
				last.RunIDs, last.Warnings = append(last.RunIDs, out.RunID), append(last.Warnings, out.Warnings...)
				doc.AddDir(out.Dir)
				continue
			}
			in := schemas.IngestedInput{Path: out.Path, RunIDs: []string{}, State: out.State, Again: out.Again,
				Warnings: out.Warnings}
			if out.RunID != "" {
				in.RunIDs = append(in.RunIDs, out.RunID)
			}
			if out.State != schemas.IngestRefused {
				doc.AddDir(out.Dir)
			}
			if out.State == schemas.IngestRefused {
				in.Reason, in.Hint = &out.Reason, out.Hint
			}
			doc.Inputs = append(doc.Inputs, in)
		}
	}
	return doc, nil
}

// otherVersion reports whether another version of the rules made the tables of a run.
func otherVersion(dir string) bool {
	report, err := schemas.ReadIngestReport(dir)
	return err == nil && report.Rules != RulesVersion
}

// sameInput reports whether an outcome belongs to the same file as an input and has the same result.
func sameInput(in *schemas.IngestedInput, out *Outcome) bool {
	return in.Path == out.Path && in.State == out.State && in.Again == out.Again
}

// Import ingests the input at path into the store. An input is a run folder (ingested in place), a snapshot that torch
// wrote, a file that package figures reads, or a folder of these. Files may be packed in any way that package packed
// knows. A pipe or [Stdin] is read like a file. Import leaves known inputs alone unless o.Again is set. If dpsight
// refuses an input, that is an outcome; an error concerns only the store or the disk.
func Import(path, store string, o Options) ([]Outcome, error) {
	if path == Stdin {
		return importFile(path, store, o)
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []Outcome{{Path: path, State: schemas.IngestRefused, Reason: "there is no such file or folder"}}, nil
	case err != nil:
		return []Outcome{{Path: path, State: schemas.IngestRefused, Reason: err.Error()}}, nil
	case !st.IsDir():
		return importFile(path, store, o)
	case schemas.IsRun(path):
		return []Outcome{importRun(path, o)}, nil
	}
	return importFolder(path, store, o)
}

func (o *Options) begin(path string) {
	if o.Begin != nil {
		o.Begin(path)
	}
}

// importFolder imports everything below a folder: run folders, snapshots (recognised by name) and files with figures.
// importFolder leaves out hidden files, summaries of other files, and files inside runs.
func importFolder(dir, store string, o Options) ([]Outcome, error) {
	var out []Outcome
	var kinds []figures.Kind
	summaries := map[string]figures.Kind{}
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
		case d.IsDir():
			return nil
		}
		// Only a pipe that the user named certainly has a writer, so importFolder reads no pipes.
		if err := schemas.CheckRegular(path); err != nil && looksLikePickle(path) {
			out = append(out, Outcome{Path: path, State: schemas.IngestRefused, Reason: err.Error()})
			return nil
		} else if err != nil {
			return nil
		}
		switch kind := figuresIn(path); {
		case summarized(kind) != nil:
			summaries[path] = kind
			return nil
		case kind != figures.None:
			kinds = append(kinds, kind)
		case !looksLikePickle(path):
			// A store also holds reports, suites and notes. So a file in a folder that is no input is skipped; only a
			// file that the user named is refused.
			return nil
		}
		outs, err := importBeside(path, store, o)
		out = append(out, outs...)
		return err
	})
	for _, path := range slices.Sorted(maps.Keys(summaries)) {
		if err == nil && !isSpare(summaries[path], kinds) {
			var outs []Outcome
			outs, err = importFile(path, store, o)
			out = append(out, outs...)
		}
	}
	if err == nil && len(out) == 0 {
		out = append(out, Outcome{Path: dir, State: schemas.IngestRefused,
			Reason: "the folder holds no run and no file to import"})
	}
	return out, err
}

func importRun(dir string, o Options) Outcome {
	o.begin(dir)
	out := outcome(dir, dir, o)
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		return refused(dir, err)
	}
	out.RunID = m.RunID
	o.Again = o.Again || otherRules(m, o)
	if out.State, out.Again = stateOf(dir, o); out.State == schemas.IngestKnown {
		return out
	}
	lock, err := schemas.LockPath(dir)
	if err != nil {
		return refused(dir, err)
	}
	defer lock.Unlock()
	// Another process may have ingested the run while this process waited.
	if out.State, out.Again = stateOf(dir, o); out.State == schemas.IngestKnown {
		return out
	}
	if o.Prepare != nil {
		if err := o.Prepare(dir); err != nil {
			return refused(dir, err)
		}
	}
	o.remake(&out)
	if _, err := derive(dir, o); err != nil {
		return refused(dir, err)
	}
	return out
}

// remake calls o.Remake if the run had tables before. remake must be called just before the tables are made again.
func (o *Options) remake(out *Outcome) {
	if out.Again && o.Remake != nil {
		o.Remake(out.Dir)
	}
}

// refused returns the outcome for a run folder that could not be ingested.
func refused(dir string, err error) Outcome {
	out := Outcome{Path: dir, State: schemas.IngestRefused, Reason: err.Error()}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		out.Hint = hinted.Hint()
	}
	return out
}

// importFile imports the snapshots in a file.
func importFile(path, store string, o Options) ([]Outcome, error) {
	o.begin(path)
	undo, err := makeStore(store)
	if err != nil {
		return nil, err
	}
	defer undo()
	in, err := openInput(path, store)
	if err != nil {
		out, err := refusedFile(path, nil, err, store)
		return []Outcome{out}, err
	}
	defer in.Close()
	entries := in.readable()
	if len(entries) == 0 {
		out, err := refusedFile(path, in, fmt.Errorf("none of the %d files in it is named like one", len(in.entries)), store)
		return []Outcome{out}, err
	}
	var outs []Outcome
	for _, group := range in.entriesByRun(entries, o.Ranks) {
		importOne := importRanks
		if len(group) == 1 {
			importOne = importAlone
		}
		some, err := importOne(group, store, o)
		if outs = append(outs, some...); err != nil {
			return outs, err
		}
	}
	return outs, nil
}

// makeStore makes the store's folder. undo removes the folder if makeStore made it and it is still empty.
func makeStore(store string) (undo func(), err error) {
	_, missing := os.Stat(store)
	if err := os.MkdirAll(store, 0o755); err != nil {
		return nil, err
	}
	return func() {
		if missing != nil {
			os.Remove(store) // Remove fails, as it should, if the store holds a run
		}
	}, nil
}

// importAlone imports a group that has only one entry, which does not belong to a run of several ranks.
func importAlone(of []rankFile, store string, o Options) ([]Outcome, error) {
	in := of[0].archive
	outs, err := importEntry(of[0].entry, in, store, o)
	if err != nil {
		var out Outcome
		out, err = refusedFile(in.path, in, err, store)
		outs = append(outs, out)
	}
	for i := range outs {
		outs[i].Path = of[0].path
	}
	return outs, err
}

// importEntry imports one entry of a file: figures, or otherwise a snapshot.
func importEntry(e packed.Entry, in *input, store string, o Options) ([]Outcome, error) {
	if kind := figuresKind(e); kind != figures.None {
		return importFigures(e, kind, in, store, o)
	}
	out, err := importSnapshot(e, in, store, o)
	if err != nil {
		return nil, err
	}
	return []Outcome{out}, nil
}

// refusedFile returns the outcome of a file that could not be imported. The returned error concerns the store.
func refusedFile(path string, in *input, err error, store string) (Outcome, error) {
	out := Outcome{Path: path, State: schemas.IngestRefused}
	var own *refusal
	switch {
	case errors.As(err, &own):
		out.Reason = own.reason
		return out, nil
	case isStoreError(err, store):
		out.Reason = err.Error()
		return out, err
	}
	if in != nil {
		if what, advice := in.foreignKind(); what != "" {
			out.Reason, out.Hint = "not a memory snapshot of torch, but "+what, advice
			return out, nil
		}
	}
	out.Reason = err.Error()
	if errors.Is(err, torchsnap.ErrNotSnapshot) || !looksLikePickle(path) {
		out.Reason = fmt.Sprintf("not a memory snapshot of torch (%v)", err)
	}
	return out, nil
}

// outcome returns the outcome for an input whose run lies, or will lie, in dir.
func outcome(path, dir string, o Options) Outcome {
	out := Outcome{Path: path, Dir: dir, RunID: filepath.Base(dir)}
	out.State, out.Again = stateOf(dir, o)
	return out
}

// stateOf returns whether a run needs ingesting, and whether it was ingested before. A run with an unreadable report is
// ingested again, even if o.Again is not set.
func stateOf(dir string, o Options) (state string, again bool) {
	_, err := schemas.ReadIngestReport(dir)
	if err == nil && !o.Again {
		return schemas.IngestKnown, false
	}
	return schemas.IngestNew, !errors.Is(err, fs.ErrNotExist)
}

// isStoreError reports whether an error concerns the store, and not the input file.
func isStoreError(err error, store string) bool {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return false
	}
	path := p.Path
	// The error may also concern a path above the store: a file in the place of a folder.
	return within(path, store) || within(store, path)
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// looksLikePickle reports whether a file's name is that of a pickle, compressed or not.
func looksLikePickle(path string) bool {
	name := strings.ToLower(packed.Plain(filepath.Base(path)))
	return strings.HasSuffix(name, ".pickle") || strings.HasSuffix(name, ".pkl")
}
