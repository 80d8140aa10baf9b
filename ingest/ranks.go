package ingest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/ingest/figures"
	"github.com/dpsight/dpsight/ingest/packed"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
)

// A rankFile is the snapshot of one rank: a separate file, or an entry of an archive.
type rankFile struct {
	path    string // path as it stands in outcomes
	name    string // name that shows the rank: the path, or the name of the archive's entry
	rank    int32
	archive *input // archive that contains the file; nil = none
	entry   packed.Entry
}

// rankFiles returns the files at paths, without their ranks, which are not known yet.
func rankFiles(paths []string) []rankFile {
	out := make([]rankFile, len(paths))
	for i, path := range paths {
		out[i] = rankFile{path: path, name: path}
	}
	return out
}

// copyName returns the name of the copy of a rank's snapshot in the run's spool folder.
func copyName(rank int32) string { return fmt.Sprintf("snapshot.rank%d.pickle", rank) }

// An importedFile is a file that an imported run keeps a copy of.
type importedFile struct {
	rank int32
	file string          // name of the copy
	of   *schemas.Import // provenance of this file
}

// importedFiles returns the files from which a run was imported.
func importedFiles(m *schemas.Import) []importedFile {
	if len(m.Ranks) == 0 {
		return []importedFile{{0, snapshotFile, m}}
	}
	var out []importedFile
	for _, r := range m.Ranks {
		out = append(out, importedFile{r.Rank, copyName(r.Rank),
			&schemas.Import{File: r.File, SHA256: r.SHA256, CopySHA256: r.CopySHA256}})
	}
	return out
}

// rankInName matches the rank in a file's name, as in rank0.pickle, snapshot_rank_3.pickle.gz and rank0_memory.pickle.
var rankInName = regexp.MustCompile(`(?i)(?:^|[^a-z])rank[-_.]?([0-9]{1,6})`)

// rankOfName returns the rank in the name of a snapshot's file, and the rest of the name, which is the same for all
// ranks of a run. ok is false if the name has no rank.
func rankOfName(path string) (rank int32, common string, ok bool) {
	name := snapshotName(filepath.Base(path))
	at := rankInName.FindStringSubmatchIndex(name)
	if at == nil {
		return 0, "", false
	}
	n, err := strconv.ParseInt(name[at[2]:at[3]], 10, 32)
	return int32(n), filepath.Join(filepath.Dir(path), name[:at[2]]+"*"+name[at[3]:]), err == nil
}

// together returns files in the order of the ranks in their names, if all files have different ranks. Otherwise they
// are not the ranks of one run, and together returns nil.
func together(files []rankFile) []rankFile {
	var out []rankFile
	for _, f := range files {
		rank, _, ok := rankOfName(f.name)
		if !ok || slices.ContainsFunc(out, func(f rankFile) bool { return f.rank == rank }) {
			return nil
		}
		f.rank = rank
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b rankFile) int { return cmp.Compare(a.rank, b.rank) })
	return out
}

// inOrder gives files their ranks: by the ranks in their names if all names have one, otherwise by the order in which
// the user named them.
func inOrder(files []rankFile) []rankFile {
	if out := together(files); out != nil {
		return out
	}
	out := slices.Clone(files)
	for i := range out {
		out[i].rank = int32(i)
	}
	return out
}

// byRun groups files by run. Snapshots in the same folder whose names differ only in the rank belong to one run. The
// function is reports whether a file can be the snapshot of a rank.
func byRun(files []rankFile, is func(*rankFile) bool) (out [][]rankFile) {
	groups := map[string]int{}
	for _, f := range files {
		_, common, ok := rankOfName(f.name)
		if !ok || !looksLikePickle(f.name) || !is(&f) {
			out = append(out, []rankFile{f})
			continue
		}
		at, begun := groups[common]
		if !begun {
			at = len(out)
			groups[common], out = at, append(out, nil)
		}
		out[at] = append(out[at], f)
	}
	return out
}

// entriesByRun groups the entries to read from a file by run. If all is true, all entries are ranks of one run.
func (in *input) entriesByRun(entries []packed.Entry, all bool) [][]rankFile {
	files := make([]rankFile, len(entries))
	for i, e := range entries {
		name := path.Join(e.Folder, e.Name)
		files[i] = rankFile{path: in.path, name: name, archive: in, entry: e}
		if len(in.entries) > 1 {
			files[i].path += ":" + name
		}
	}
	if all {
		return [][]rankFile{inOrder(files)}
	}
	var out [][]rankFile
	for _, group := range byRun(files, func(f *rankFile) bool { return figuresKind(f.entry) == figures.None }) {
		if ranks := together(group); ranks != nil {
			out = append(out, ranks)
			continue
		}
		for _, f := range group {
			out = append(out, []rankFile{f})
		}
	}
	return out
}

// importBeside imports a file of a folder. If the file is a rank's snapshot, the first rank's file stands for the whole
// run: importBeside imports all its ranks with that file, and ignores the files of the other ranks.
func importBeside(path, store string, o Options) ([]Outcome, error) {
	files := rankFiles([]string{path})
	if _, common, ok := rankOfName(path); ok && looksLikePickle(path) {
		entries, _ := os.ReadDir(filepath.Dir(path))
		files = files[:0]
		for _, e := range entries {
			other := filepath.Join(filepath.Dir(path), e.Name())
			_, its, ok := rankOfName(other)
			if ok && its == common && looksLikePickle(other) && schemas.CheckRegular(other) == nil {
				files = append(files, rankFile{path: other, name: other})
			}
		}
		switch {
		case together(files) == nil:
			files = rankFiles([]string{path})
		case files[0].path != path:
			return nil, nil
		}
	}
	return importGroup(files, store, o)
}

// importGroup imports one group of files that [byRun] returned.
func importGroup(files []rankFile, store string, o Options) ([]Outcome, error) {
	of := together(files)
	if o.Ranks {
		of = inOrder(files)
	}
	if len(of) > 1 {
		return importRanks(of, store, o)
	}
	var outs []Outcome
	for _, f := range files {
		some, err := Import(f.path, store, o)
		if outs = append(outs, some...); err != nil {
			return outs, err
		}
	}
	return outs, nil
}

// importRanks makes one run from the snapshots of its ranks, with one outcome for each file. importRanks imports all
// the files or none.
func importRanks(of []rankFile, store string, o Options) ([]Outcome, error) {
	undo, err := makeStore(store)
	if err != nil {
		return nil, err
	}
	defer undo()
	folder, err := startImport(store)
	if err != nil {
		return nil, err
	}
	defer folder.Discard()
	m, snapshots, at, err := takeRanks(of, folder.Dir, store, o)
	if err != nil {
		return refusedRanks(of, at, err, store)
	}
	out, err := settle(folder, runOfImport(store, m.Import.SHA256), of[0].path, m, snapshots, store, o)
	if err != nil {
		var bad *rankError
		if errors.As(err, &bad) {
			at = bad.at
		}
		return refusedRanks(of, at, err, store)
	}
	outs := make([]Outcome, len(of))
	for i := range of {
		outs[i] = out
		if outs[i].Path = of[i].path; i > 0 {
			outs[i].Warnings = nil
		}
	}
	return outs, nil
}

// A rankError is an error about the snapshot of one rank, given by its index among the run's snapshots.
type rankError struct {
	at  int
	err error
}

func (e *rankError) Error() string { return e.err.Error() }
func (e *rankError) Unwrap() error { return e.err }

// takeRanks copies the snapshots of all ranks and returns the manifest of their run. takeRanks decodes only the first
// snapshot while it copies it. The other snapshots are decoded later, one after another, when the run's id is known,
// since all rows contain the id. at is the index of the file that caused err.
func takeRanks(of []rankFile, dir, store string, o Options) (m *schemas.Manifest, snapshots []rankSnapshot, at int,
	err error) {
	var first *torchsnap.Snapshot
	var ranks []schemas.ImportedRank
	sum := sha256.New()
	for i, f := range of {
		o.begin(f.path)
		name := copyName(f.rank)
		file, e, err := f.open(store)
		if err != nil {
			return nil, nil, i, err
		}
		var d digests
		if i == 0 {
			first, d, err = take(e, file, copyPath(dir, name))
		} else {
			d, err = keep(e, copyPath(dir, name))
		}
		ranks = append(ranks, schemas.ImportedRank{Rank: f.rank, File: file.entryName(e), SHA256: d.content,
			CopySHA256: d.copy})
		if file != f.archive {
			file.Close()
		}
		if err != nil {
			return nil, nil, i, err
		}
		fmt.Fprintf(sum, "%d %s\n", f.rank, d.content)
		snapshots = append(snapshots, rankSnapshot{rank: f.rank, file: name})
	}
	snapshots[0].read = first
	m = snapshotManifest(commonName(ranks), hex.EncodeToString(sum.Sum(nil)), first, o)
	m.Import.File, m.Import.Ranks = ranks[0].File, ranks
	return m, snapshots, 0, nil
}

// open opens a rank's file, which must contain exactly one snapshot. If the file is an entry of an archive, the archive
// is already open.
func (f *rankFile) open(store string) (*input, packed.Entry, error) {
	if f.archive != nil {
		return f.archive, f.entry, onlySnapshot(f.entry)
	}
	if st, err := os.Stat(f.path); err == nil && st.IsDir() {
		return nil, packed.Entry{}, refuse("it is a folder, and --ranks takes a file a rank")
	}
	file, err := openInput(f.path, store)
	if err != nil {
		return nil, packed.Entry{}, err
	}
	entries := file.readable()
	if len(entries) != 1 {
		err = refuse("it holds %d snapshots: of several files, each is to hold one rank's", len(entries))
	} else if err = onlySnapshot(entries[0]); err == nil {
		return file, entries[0], nil
	}
	file.Close()
	return nil, packed.Entry{}, err
}

// onlySnapshot returns an error for an entry that has figures instead of a snapshot.
func onlySnapshot(e packed.Entry) error {
	if figuresKind(e) != figures.None {
		return refuse("it has figures and is no memory snapshot; only snapshots of ranks become one run")
	}
	return nil
}

// keep copies a file's entry as [take] does, but does not decode it.
func keep(e packed.Entry, kept string) (digests, error) {
	r, err := e.Open()
	if err != nil {
		return digests{}, err
	}
	defer r.Close()
	t := newTap(r, kept)
	_, err = io.Copy(io.Discard, t)
	sums, keeping := t.end()
	return sums, cmp.Or(err, keeping)
}

// commonName returns the common part of the names of a run's files, as the name of the run.
func commonName(ranks []schemas.ImportedRank) string {
	name := snapshotName(ranks[0].File)
	if at := rankInName.FindStringSubmatchIndex(name); at != nil {
		word := strings.LastIndex(strings.ToLower(name[:at[2]]), "rank")
		name = strings.Trim(name[:word]+name[at[3]:], "-_. ")
	}
	if name == "" || sanitize(name) == "snapshot" {
		return fmt.Sprintf("%d-ranks", len(ranks))
	}
	return name
}

// refusedRanks returns the outcomes of all files of a run after the file with index at was refused with err.
func refusedRanks(of []rankFile, at int, err error, store string) ([]Outcome, error) {
	bad, err := refusedFile(of[at].path, nil, err, store)
	outs := make([]Outcome, len(of))
	for i, f := range of {
		outs[i] = Outcome{Path: f.path, State: schemas.IngestRefused,
			Reason: fmt.Sprintf("%s of the same run was refused", filepath.Base(of[at].path))}
	}
	outs[at] = bad
	return outs, err
}
