package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// PartialSuffix marks a file or folder that is still being written. Commands that list or read runs ignore such files
// and folders.
const PartialSuffix = ".partial"

// folderPermission lets only the user who owns a run's folder access it.
const folderPermission = 0o700

// filePermission returns the permission of a new file: the users who may use its folder may also read and write the
// file.
func filePermission(path string) os.FileMode {
	if info, err := os.Stat(filepath.Dir(path)); err == nil {
		return info.Mode().Perm() & 0o644
	}
	return 0o600
}

// WriteFile writes path through write. WriteFile writes a new file beside path, calls fsync and then renames the new
// file. So the file at path is either absent, unchanged or complete, even if several processes write it at once. On
// error no partial file stays.
func WriteFile(path string, write func(io.Writer) error) error {
	partial, err := writePartial(path, write)
	if err != nil {
		return err
	}
	if err := os.Rename(partial, path); err != nil {
		os.Remove(partial)
		return err
	}
	syncDir(filepath.Dir(path))
	return nil
}

// writePartial writes a new file beside path and returns its name. writePartial does not use os.CreateTemp, since only
// the owner can read a file that os.CreateTemp made, even if the umask allows more.
func writePartial(path string, write func(io.Writer) error) (string, error) {
	var f *os.File
	partial, err := unique(path, func(name string) (err error) {
		f, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, filePermission(path))
		return err
	})
	if err != nil {
		return "", err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		os.Remove(partial)
		return "", err
	}
	return partial, nil
}

// unique calls create to make a file or folder beside path, under a free name. unique leaves an existing file or link
// alone, since it may belong to another process.
func unique(path string, create func(name string) error) (string, error) {
	for {
		name := fmt.Sprintf("%s.%08x%s", path, rand.Uint32(), PartialSuffix)
		if err := create(name); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
}

// WriteFolder makes the folder path through write. WriteFolder fills a new folder beside path and renames it once, so
// the folder path is either absent or complete. If another process has made path meanwhile, WriteFolder leaves that
// folder alone and returns [fs.ErrExist]. WriteFolder also removes the unfinished folders for path that killed
// processes left.
func WriteFolder(path string, write func(dir string) error) error {
	f, err := StartFolder(path)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := write(f.Dir); err != nil {
		if _, there := os.Lstat(path); there == nil {
			return &fs.PathError{Op: "rename", Path: path, Err: fs.ErrExist}
		}
		return err
	}
	return f.Commit(path)
}

// A PartialFolder is a folder that is still being filled. A PartialFolder's final name may not be decided yet.
type PartialFolder struct {
	Dir string

	lock *Lock
}

// StartFolder makes a folder beside path, to be renamed by [PartialFolder.Commit]. StartFolder also removes
// unfinished folders that killed processes left beside path.
func StartFolder(path string) (*PartialFolder, error) {
	removeAbandoned(path)
	dir, lock, err := ownFolder(path)
	if err != nil {
		return nil, err
	}
	return &PartialFolder{dir, lock}, nil
}

// Commit gives the folder its name. Commit returns [fs.ErrExist] if path exists, and leaves the existing folder
// alone.
func (f *PartialFolder) Commit(path string) error {
	syncDir(f.Dir)
	if err := os.Rename(f.Dir, path); err != nil {
		if _, there := os.Lstat(path); there == nil {
			return &fs.PathError{Op: "rename", Path: path, Err: fs.ErrExist}
		}
		return err
	}
	syncDir(filepath.Dir(path))
	return nil
}

// Discard removes the folder unless it was committed.
func (f *PartialFolder) Discard() {
	os.RemoveAll(f.Dir)
	f.lock.Unlock()
}

// ownFolder makes a folder beside path and locks it, to show that it is not abandoned. If another process removed the
// new folder as abandoned before it was locked, ownFolder makes another.
func ownFolder(path string) (string, *Lock, error) {
	for {
		name, err := unique(path, func(name string) error { return os.Mkdir(name, folderPermission) })
		if err != nil {
			return "", nil, err
		}
		lock, err := LockPath(name)
		if err == nil && lock.Holds(name) {
			return name, lock, nil
		}
		lock.Unlock()
		if err != nil && !missing(err) {
			return "", nil, err
		}
	}
}

// removeAbandoned removes unfinished folders beside path whose processes have ended.
func removeAbandoned(path string) {
	for _, name := range Partials(path) {
		lock, err := TryLockPath(name)
		if err != nil {
			continue
		}
		os.RemoveAll(name)
		lock.Unlock()
	}
}

// Partials lists the unfinished files beside a file or folder: files that are being written, and files that killed
// processes left. Earlier versions of dpsight used a single name for such files.
func Partials(path string) []string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), filepath.Base(path)+".")
		if ours && (rest == PartialSuffix[1:] || strings.HasSuffix(rest, PartialSuffix)) {
			out = append(out, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return out
}

// A Replacement replaces a set of files of one folder together. A Replacement writes and syncs all new files beside the
// old files before it touches the first old file.
type Replacement struct {
	Dir string

	mu       sync.Mutex
	files    []string
	partials map[string]string // the partial files, by the names of the files that they replace
	digests  map[string]string
}

// File writes the new version of the file with a name. Several goroutines may write different files at once.
func (r *Replacement) File(name string, write func(io.Writer) error) error {
	h := sha256.New()
	partial, err := writePartial(filepath.Join(r.Dir, name),
		func(w io.Writer) error { return write(io.MultiWriter(w, h)) })
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.digests == nil {
		r.partials, r.digests = map[string]string{}, map[string]string{}
	}
	r.files, r.partials[name] = append(r.files, name), partial
	r.digests[name] = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return nil
}

// Digests returns the digests of the files written so far, by name: see [CheckTables].
func (r *Replacement) Digests() map[string]string { return maps.Clone(r.digests) }

// Commit puts the new files in place. last is the file whose presence means that all files are there and belong
// together. Commit removes the old last file first and puts the new one in place after all others. After a crash in
// between, the folder lacks the last file, so readers do not trust the rest. Only one replacement of a folder may be
// committed at a time: see [LockPath].
func (r *Replacement) Commit(last string) error {
	defer r.Discard()
	for _, name := range r.files { // this check comes before any file is touched
		if st, err := os.Lstat(filepath.Join(r.Dir, name)); err == nil && st.IsDir() {
			return &fs.PathError{Op: "replace", Path: filepath.Join(r.Dir, name), Err: errors.New("is a directory")}
		}
	}
	if err := os.Remove(filepath.Join(r.Dir, last)); err != nil && !missing(err) {
		return err
	}
	syncDir(r.Dir)
	names := slices.DeleteFunc(slices.Clone(r.files), func(name string) bool { return name == last })
	for _, name := range names {
		if err := r.rename(name); err != nil {
			return err
		}
	}
	syncDir(r.Dir)
	if err := r.rename(last); err != nil {
		return err
	}
	syncDir(r.Dir)
	return nil
}

func (r *Replacement) rename(name string) error {
	return os.Rename(r.partials[name], filepath.Join(r.Dir, name))
}

// Discard removes the new files that were written but not put in place.
func (r *Replacement) Discard() {
	for _, name := range r.files {
		os.Remove(r.partials[name])
	}
	r.files = nil
}

// syncDir makes a rename durable on platforms that can sync a folder. On other platforms it has no effect.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}

// WriteDocument writes v as indented JSON that ends with its digest.
func WriteDocument(path string, v any) error {
	return WriteFile(path, func(w io.Writer) error { return encodeSigned(w, v) })
}

func encodeDocument(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// ReadDocument decodes a JSON document after checking its digest and its schema. A document of the current version
// must have a digest. A document of a version in older is also read, and needs no digest. Unknown keys are allowed,
// since adding a key makes no new version.
func ReadDocument(path, schema string, v any, older ...string) error {
	b, err := ReadRegular(path)
	if err != nil {
		return err
	}
	return decodeDocument(path, b, schema, v, older...)
}

func decodeDocument(path string, b []byte, schema string, v any, older ...string) error {
	name := filepath.Base(path)
	has, err := checkDocument(name, b)
	if err != nil {
		return err
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return fmt.Errorf("%s: not a JSON document: %w", name, err)
	}
	switch {
	case head.Schema != schema && !slices.Contains(older, head.Schema):
		return &SchemaError{File: name, Got: head.Schema, Want: schema}
	case head.Schema == schema && !has:
		return &DamagedError{name, "it has no digest, and every " + schema + " document has one", adviceOn(name)}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// IsRun reports whether dir is a folder with a manifest, readable or not.
func IsRun(dir string) bool {
	st, err := os.Stat(filepath.Join(dir, ManifestFile))
	return err == nil && !st.IsDir()
}

// ReadManifest reads run.json of a run folder.
func ReadManifest(dir string) (*Manifest, error) {
	m := new(Manifest)
	if err := ReadDocument(filepath.Join(dir, ManifestFile), ManifestSchema, m, undigestedManifest); err != nil {
		return nil, err
	}
	return m, nil
}

// WriteManifest writes run.json into a run folder.
func WriteManifest(dir string, m *Manifest) error {
	m.Schema = ManifestSchema
	return WriteDocument(filepath.Join(dir, ManifestFile), m)
}

// ReadIngestReport reads ingest.json of a run folder. A run that was never ingested gives fs.ErrNotExist.
func ReadIngestReport(dir string) (*IngestReport, error) {
	r := new(IngestReport)
	if err := ReadDocument(filepath.Join(dir, IngestReportFile), IngestReportSchema, r,
		undigestedReport); err != nil {
		return nil, err
	}
	return r, nil
}

// Encode writes the report as a document to w. A report that was read from a file keeps its version, since its tables
// have no digests if an older version wrote them.
func (r *IngestReport) Encode(w io.Writer) error {
	if r.Schema == "" {
		r.Schema = IngestReportSchema
	}
	return encodeSigned(w, r)
}

// A SchemaError says that a file holds another table, or another version of its table, than the reader expects.
type SchemaError struct {
	File, Got, Want string
	Column          string // the wrong column, if the version matches but the columns do not
	Problem         string
}

func (e *SchemaError) Error() string {
	switch {
	case e.Column != "":
		return fmt.Sprintf("%s: column %s %s", e.File, e.Column, e.Problem)
	case e.Got == "":
		return fmt.Sprintf("%s: not a dpsight file (no schema; want %s)", e.File, e.Want)
	}
	return fmt.Sprintf("%s: schema %s is not one that this dpsight reads (%s)", e.File, e.Got, e.Want)
}

// Newer reports whether the file has a later version than the reader knows.
func (e *SchemaError) Newer() bool {
	got, gotVersion, _ := strings.Cut(e.Got, "/")
	want, wantVersion, _ := strings.Cut(e.Want, "/")
	a, err := strconv.Atoi(gotVersion)
	b, _ := strconv.Atoi(wantVersion)
	return err == nil && got == want && a > b
}

// missing reports whether err says that a file does not exist.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
