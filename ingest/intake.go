package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/dpsight/dpsight/ingest/packed"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// incoming is the temporary name of a snapshot's run folder. The final name has the run's id, which depends on the
// whole snapshot.
const incoming = ".incoming"

// importSnapshot makes a run from one snapshot. file is the input that contains it; older versions identified an
// imported run by the file's digest.
func importSnapshot(e packed.Entry, file *input, store string, o Options) (out Outcome, err error) {
	folder, err := startImport(store)
	if err != nil {
		return out, err
	}
	defer folder.Discard()
	s, digests, err := take(e, file, copyPath(folder.Dir, snapshotFile))
	if err != nil {
		return out, err
	}
	known, err := findImport(store, digests.content, file)
	if err != nil {
		return out, err
	}
	m := snapshotManifest(file.entryName(e), digests.content, s, o)
	m.Import.CopySHA256 = digests.copy
	return settle(folder, known, file.path, m, []rankSnapshot{{file: snapshotFile, read: s}}, store, o)
}

// startImport starts the folder of a run whose id is not known yet.
func startImport(store string) (*schemas.PartialFolder, error) {
	folder, err := schemas.StartFolder(filepath.Join(store, incoming))
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(folder.Dir, spool.Dir), 0o700); err != nil {
		folder.Discard()
		return nil, err
	}
	return folder, nil
}

// settle makes the run for snapshots whose copies lie in folder. known is the run's folder if the store already has the
// run, else empty.
func settle(folder *schemas.PartialFolder, known, path string, m *schemas.Manifest, of []rankSnapshot, store string,
	o Options) (out Outcome, err error) {
	if known != "" {
		return importAgain(known, path, folder.Dir, m.Import, of, o)
	}
	if err := schemas.WriteManifest(folder.Dir, m); err != nil {
		return out, err
	}
	r, err := snapshotTables(folder.Dir, m, of, o)
	if err != nil {
		return out, err
	}
	dir := filepath.Join(store, m.RunID)
	out = Outcome{Path: path, Dir: dir, RunID: m.RunID, State: schemas.IngestNew, Warnings: r.Warnings}
	err = folder.Commit(dir)
	if errors.Is(err, fs.ErrExist) {
		if runOfImport(store, m.Import.SHA256) == "" {
			return out, fmt.Errorf("the folder %s is there, and its run.json is damaged: move the folder away", m.RunID)
		}
		out.State, err = schemas.IngestKnown, nil // another process has ingested the input meanwhile
	}
	return out, err
}

// importAgain ingests again snapshots that the store already has, if o asks for this, if the tables need it, or if the
// user's rules differ. The new copies, in the folder from, replace the copies in the run, which may be damaged.
func importAgain(dir, path, from string, copied *schemas.Import, of []rankSnapshot, o Options) (Outcome, error) {
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		return Outcome{}, err
	}
	o.Again = o.Again || otherRules(m, o)
	out := outcome(path, dir, o)
	if out.State == schemas.IngestKnown {
		return out, nil
	}
	lock, err := schemas.LockPath(dir)
	if err != nil {
		return out, err
	}
	defer lock.Unlock()
	if out.State, out.Again = stateOf(dir, o); out.State == schemas.IngestKnown {
		return out, nil
	}
	if m, err = schemas.ReadManifest(dir); err != nil {
		return out, err
	}
	if o.StackRules != nil {
		m.Import.StackRules = o.StackRules
	}
	if err := os.MkdirAll(filepath.Join(dir, spool.Dir), 0o700); err != nil {
		return out, err
	}
	for _, s := range of {
		older, fresh := copyPath(dir, s.file), filepath.Join(dir, spool.Dir, s.file+copySuffix)
		if err := os.Rename(copyPath(from, s.file), fresh); err != nil {
			return out, err
		}
		if older != fresh {
			os.Remove(older)
		}
	}
	o.remake(&out)
	m.Import.CopySHA256, m.Import.Ranks = copied.CopySHA256, copied.Ranks
	if err := schemas.WriteManifest(dir, m); err != nil {
		return out, err
	}
	r, err := snapshotTables(dir, m, of, o)
	if err == nil {
		out.Warnings = r.Warnings
	}
	return out, err
}

// otherRules reports whether a snapshot's run was made with other rules on stacks than the requested ones.
func otherRules(m *schemas.Manifest, o Options) bool {
	return m.Import != nil && o.StackRules != nil && !slices.Equal(o.StackRules, m.Import.StackRules)
}

// findImport finds the run of a snapshot by the digest of its content, or returns "". Older versions used the
// digest of the file, which differs if the file was compressed.
func findImport(store, content string, file *input) (string, error) {
	if dir := runOfImport(store, content); dir != "" {
		return dir, nil
	}
	// Older versions did not read archives. A file that is not packed has only one digest, which was already looked up.
	if len(file.entries) > 1 || !file.entries[0].Packed {
		return "", nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, file.size)); err != nil {
		return "", err
	}
	return runOfImport(store, hex.EncodeToString(sum.Sum(nil))), nil
}

func runOfImport(store, sum string) string {
	for _, dir := range runsOfImport(store, sum) {
		return dir
	}
	return ""
}

// runsOfImport returns the folders of all runs that were imported from a file with a digest.
func runsOfImport(store, sum string) (dirs []string) {
	paths, _ := filepath.Glob(filepath.Join(quoteGlob(store), "*-"+sum[:idDigits]))
	for _, dir := range paths {
		m, err := schemas.ReadManifest(dir)
		if err == nil && m.Import != nil && m.Import.SHA256 == sum {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// quoteGlob escapes a path so that it matches only itself in a glob pattern.
func quoteGlob(path string) string {
	var out []byte
	for i := range len(path) {
		if slices.Contains([]byte(`*?[`), path[i]) {
			out = append(out, '[', path[i], ']')
			continue
		}
		out = append(out, path[i])
	}
	return string(out)
}

// digests are the digests of a snapshot's unpacked content and of the copy that the run keeps.
type digests struct{ content, copy string }

// take reads a snapshot and writes a copy of it, in a single pass over the file.
func take(e packed.Entry, file *input, kept string) (*torchsnap.Snapshot, digests, error) {
	r, err := e.Open()
	if err != nil {
		return nil, digests{}, err
	}
	defer r.Close()
	t := newTap(r, kept)
	var o torchsnap.Options
	if !e.Packed {
		o.Size = file.size
	}
	s, err := torchsnap.Read(t, o)
	if err == nil {
		_, err = io.Copy(io.Discard, t) // the bytes after the snapshot belong to its identity
	}
	sums, keeping := t.end()
	if err == nil {
		err = keeping
	}
	if err == nil {
		err = attributable(s)
	}
	return s, sums, err
}
