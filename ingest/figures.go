package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/ingest/figures"
	"github.com/dpsight/dpsight/ingest/packed"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// figuresFile names the copy of a file with figures in the spool folder of each of its runs.
const figuresFile = "figures"

// figuresKind returns the kind of figures that an entry of a file has, or [figures.None].
func figuresKind(e packed.Entry) figures.Kind {
	r, err := e.Open()
	if err != nil {
		return figures.None
	}
	defer r.Close()
	head := make([]byte, figures.Head)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return figures.None
	}
	return figures.KindOf(head[:n])
}

// figuresIn returns the kind of figures that a file in a folder has, or [figures.None].
func figuresIn(path string) figures.Kind {
	switch strings.ToLower(filepath.Ext(packed.Plain(filepath.Base(path)))) {
	case ".json", ".log", ".csv":
	default:
		return figures.None
	}
	in, err := openInput(path, "")
	if err != nil {
		return figures.None
	}
	defer in.Close()
	if len(in.entries) != 1 {
		return figures.None
	}
	return figuresKind(in.entries[0])
}

// summarized returns the kinds of files that a file of the given kind summarises, and that have more figures; nil if it
// summarises none.
func summarized(kind figures.Kind) []figures.Kind {
	switch kind {
	case schemas.ImportTrainerSummary:
		return []figures.Kind{schemas.ImportTrainerLog}
	case schemas.ImportSweepTable:
		return []figures.Kind{schemas.ImportSweep, schemas.ImportStages}
	}
	return nil
}

// isSpare reports whether a file of figures is not needed because it summarises a file of one of the given kinds.
func isSpare(kind figures.Kind, kinds []figures.Kind) bool {
	return slices.ContainsFunc(summarized(kind), func(of figures.Kind) bool { return slices.Contains(kinds, of) })
}

// importFigures imports a file with figures: it makes one run in the store for each run in the file.
func importFigures(e packed.Entry, kind figures.Kind, file *input, store string, o Options) ([]Outcome, error) {
	holder, err := schemas.StartFolder(filepath.Join(store, incoming))
	if err != nil {
		return nil, err
	}
	defer holder.Discard()
	kept := filepath.Join(holder.Dir, figuresFile+copySuffix)
	runs, digests, err := takeFigures(e, kind, kept)
	if err != nil {
		return nil, err
	}
	known := map[int]string{}
	for _, dir := range runsOfImport(store, digests.content) {
		if m, err := schemas.ReadManifest(dir); err == nil {
			known[m.Import.Part] = dir
		}
	}
	var outs []Outcome
	names := namesApart(runs)
	for i := range runs {
		m := figuresManifest(&runs[i], names[i], kind, file.entryName(e), digests, o)
		m.Import.Part = i
		out, err := importPart(m, &runs[i], kept, known[i], file.path, store, o)
		if err != nil {
			return outs, err
		}
		if len(runs) > 1 {
			for k, w := range out.Warnings {
				out.Warnings[k] = runs[i].Name + ": " + w
			}
		}
		outs = append(outs, out)
	}
	return outs, nil
}

// takeFigures reads figures and keeps a copy of their file.
func takeFigures(e packed.Entry, kind figures.Kind, kept string) ([]figures.Run, digests, error) {
	r, err := e.Open()
	if err != nil {
		return nil, digests{}, err
	}
	defer r.Close()
	t := newTap(r, kept)
	runs, err := figures.Read(kind, t, e.Name)
	if err == nil {
		_, err = io.Copy(io.Discard, t)
	}
	sums, keeping := t.end()
	if t.failed != nil { // the tap's error says more than the reader's own
		err = t.failed
	}
	if err != nil && keeping == nil {
		err = &refusal{err.Error()}
	}
	return runs, sums, cmp.Or(keeping, err)
}

// importPart imports one of the runs in a file, or makes its tables again. dir is the run's folder if the store already
// has the run, else empty.
func importPart(m *schemas.Manifest, run *figures.Run, kept, dir, path, store string, o Options) (Outcome, error) {
	if dir != "" {
		out := outcome(path, dir, o)
		if out.State == schemas.IngestKnown {
			return out, nil
		}
		lock, err := schemas.LockPath(dir)
		if err != nil {
			return out, err
		}
		defer lock.Unlock()
		if m, err = schemas.ReadManifest(dir); err != nil {
			return out, err
		}
		r, err := figuresTables(dir, m, run, o)
		if err == nil {
			out.Warnings = r.Warnings
		}
		return out, err
	}
	folder, err := schemas.StartFolder(filepath.Join(store, incoming))
	if err != nil {
		return Outcome{}, err
	}
	defer folder.Discard()
	if err := os.Mkdir(filepath.Join(folder.Dir, spool.Dir), 0o700); err != nil {
		return Outcome{}, err
	}
	if err := copyFile(kept, copyPath(folder.Dir, figuresFile)); err != nil {
		return Outcome{}, err
	}
	if err := schemas.WriteManifest(folder.Dir, m); err != nil {
		return Outcome{}, err
	}
	r, err := figuresTables(folder.Dir, m, run, o)
	if err != nil {
		return Outcome{}, err
	}
	dir = filepath.Join(store, m.RunID)
	out := Outcome{Path: path, Dir: dir, RunID: m.RunID, State: schemas.IngestNew, Warnings: r.Warnings}
	if err = folder.Commit(dir); errors.Is(err, fs.ErrExist) {
		there, readErr := schemas.ReadManifest(dir)
		if readErr != nil || there.Import == nil || there.Import.SHA256 != m.Import.SHA256 ||
			there.Import.Part != m.Import.Part {
			return out, fmt.Errorf("the folder %s is there, and holds something else: move it away", m.RunID)
		}
		out.State, err = schemas.IngestKnown, nil // another process has ingested the file meanwhile
	}
	return out, err
}

func copyFile(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return schemas.WriteFile(to, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// namesApart returns a different name for each run in a file, in the form that run ids use.
func namesApart(runs []figures.Run) []string {
	var names []string
	for i := range runs {
		plain := sanitize(runs[i].Name)
		name := plain
		for n := 2; slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s-%d", plain, n)
		}
		names = append(names, name)
	}
	return names
}

// figuresManifest returns the manifest of a run that is imported from a file with figures.
func figuresManifest(run *figures.Run, name string, kind figures.Kind, file string, d digests,
	o Options) *schemas.Manifest {
	m := &schemas.Manifest{Name: name, Source: schemas.Imported, Status: run.Status, Reason: run.Reason,
		Command: []string{}, Params: run.Params, GPUs: []schemas.GPU{}, Warnings: []string{},
		Collector: schemas.Collector{Version: o.Version, Uninjected: []string{}},
		Import:    &schemas.Import{Kind: string(kind), File: file, SHA256: d.content, CopySHA256: d.copy}}
	stamp := noTime
	if run.StartNS > 0 {
		m.Start = time.Unix(0, run.StartNS).UTC()
		stamp = m.Start.Format(idTime)
	}
	if run.EndNS > 0 {
		m.End = new(time.Unix(0, run.EndNS).UTC())
	}
	if run.GPU != "" {
		m.GPUs = append(m.GPUs, schemas.GPU{Name: run.GPU})
	}
	m.RunID = fmt.Sprintf("%s-%s-%s", stamp, m.Name, d.content[:idDigits])
	return m
}

// ingestFigures makes the tables of an imported run again, from the copy of the file that the run keeps.
func ingestFigures(dir string, m *schemas.Manifest, o Options) (*schemas.IngestReport, error) {
	path := copyPath(dir, figuresFile)
	if err := checkCopy(path, m.Import); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, refuse("the run was imported from %s and keeps no copy: ingest that file again",
				m.Import.File)
		}
		return nil, err
	}
	f, err := schemas.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	entries, err := packed.List(f, st.Size(), figuresFile)
	if err != nil {
		return nil, err
	}
	r, err := entries[0].Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	runs, err := figures.Read(figures.Kind(m.Import.Kind), r, packed.Plain(m.Import.File))
	if err != nil {
		return nil, err
	}
	if m.Import.Part >= len(runs) {
		return nil, refuse("the run was imported from %s, whose copy has no run %d", m.Import.File, m.Import.Part+1)
	}
	return figuresTables(dir, m, &runs[m.Import.Part], o)
}

// noBlocks is the reason why a run imported from figures cannot be checked.
const noBlocks = "the file has figures at moments, and no blocks to check them against"

// figuresTables writes the tables of a run that is imported from figures: steps and phases, but neither events nor
// blocks.
func figuresTables(dir string, m *schemas.Manifest, run *figures.Run, o Options) (*schemas.IngestReport, error) {
	r := newReport(m, o)
	r.Warnings = append(r.Warnings, run.Notes...)
	err := write(dir, r, true, func(t *tables) error {
		for i := range run.Devices {
			d := &run.Devices[i]
			r.Devices = append(r.Devices, schemas.DeviceVerdict{Rank: d.Rank, Device: d.Device,
				Verdict: schemas.Unverifiable, Reason: cmp.Or(d.Why, noBlocks),
				TorchPeakAllocatedBytes: d.Peak, TorchPeakReservedBytes: d.PeakReserved})
			r.Steps.Derived = max(r.Steps.Derived, int64(len(d.Steps)))
			t.addFigures(m.RunID, d)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &r.IngestReport, nil
}

// addFigures adds the steps and phases of a device to the tables. addFigures numbers phases in the order of the file,
// in place of the marks that recorded phases have.
func (t *tables) addFigures(runID string, d *figures.Device) {
	for i := range d.Steps {
		s := &d.Steps[i]
		t.steps = append(t.steps, schemas.Step{RunID: runID, Rank: d.Rank, Device: d.Device, Step: s.Number,
			Samples: s.Samples, Tokens: s.Tokens, StartNS: s.StartNS, EndNS: s.EndNS, WallNS: s.EndNS - s.StartNS,
			GPUNS: schemas.OrZero(s.GPUNS), AllocatedBegin: s.Begin.Allocated, AllocatedEnd: s.End.Allocated,
			ReservedBegin: s.Begin.Reserved, ReservedEnd: s.End.Reserved, PeakBytes: s.Peak})
	}
	for i := range d.Phases {
		p := &d.Phases[i]
		t.phases = append(t.phases, schemas.Phase{RunID: runID, Rank: d.Rank, Device: d.Device, Step: p.Step,
			Phase: p.Name, BeginK: int64(i), EndK: int64(i) + 1, StartNS: p.StartNS, EndNS: p.EndNS,
			GPUNS: p.GPUNS, AllocatedBegin: p.Begin.Allocated, AllocatedEnd: p.End.Allocated, PeakBytes: p.Peak})
	}
}

// Baseline makes a baseline from another tool's file. Baseline imports the file into a temporary store and returns the
// store's path. For any other file, Baseline returns the name unchanged. If a file of a known kind cannot be read,
// Baseline returns an error. done removes the temporary store.
func Baseline(name, version string) (as string, done func(), err error) {
	done = func() {}
	if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() || schemas.IsBaseline(name) {
		return name, done, nil
	}
	store, err := os.MkdirTemp("", "dpsight-baseline-")
	if err != nil {
		return "", done, schemas.WithHint(fmt.Errorf("making a folder for temporary files: %w", err),
			"TMPDIR names where these lie")
	}
	done = func() { os.RemoveAll(store) }
	outs, err := importFile(name, store, Options{Version: version})
	if err != nil {
		done()
		return "", func() {}, err
	}
	if slices.ContainsFunc(outs, func(o Outcome) bool { return o.State != schemas.IngestRefused }) {
		return store, done, nil
	}
	if len(outs) > 0 && canImport(name) {
		done()
		return "", func() {}, schemas.WithHint(fmt.Errorf("the baseline %s: %s", name, outs[0].Reason),
			"bring the whole file back; or dpsight check --write-baseline FILE writes a baseline of runs")
	}
	return name, done, nil // reading the file as a baseline will report the error
}

// canImport reports whether a file is of a kind that dpsight imports, even if it cannot be read. canImport decides by
// the file's name or its first bytes. canImport also returns true for a compressed file, since dpsight does not
// compress baselines.
func canImport(path string) bool {
	in, err := openInput(path, "")
	if err != nil {
		return true
	}
	defer in.Close()
	return slices.ContainsFunc(in.entries, func(e packed.Entry) bool {
		return looksLikePickle(e.Name) || figuresKind(e) != figures.None
	})
}
