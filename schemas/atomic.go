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
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// PartialSuffix marks a file that is still being written. A reader never opens one.
const PartialSuffix = ".partial"

// WriteFile writes path through write: into path.partial first, then fsync, then rename, so that path is either absent,
// its old self or complete. On error no partial file stays.
func WriteFile(path string, write func(io.Writer) error) error {
	if err := writePartial(path, write); err != nil {
		return err
	}
	if err := os.Rename(path+PartialSuffix, path); err != nil {
		os.Remove(path + PartialSuffix)
		return err
	}
	syncDir(filepath.Dir(path))
	return nil
}

func writePartial(path string, write func(io.Writer) error) (err error) {
	tmp := path + PartialSuffix
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(tmp)
		}
	}()
	if err = write(f); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// A Replacement is a set of files of one folder that are replaced together: all are written and synced beside the old
// ones before the first of these is touched.
type Replacement struct {
	Dir     string
	files   []string
	digests map[string]string
}

// File writes one of the files, by its name.
func (r *Replacement) File(name string, write func(io.Writer) error) error {
	h := sha256.New()
	err := writePartial(filepath.Join(r.Dir, name), func(w io.Writer) error { return write(io.MultiWriter(w, h)) })
	if err != nil {
		return err
	}
	if r.digests == nil {
		r.digests = map[string]string{}
	}
	r.files, r.digests[name] = append(r.files, name), "sha256:"+hex.EncodeToString(h.Sum(nil))
	return nil
}

// Digests are those of the files that are written so far, by their names: see [CheckTables].
func (r *Replacement) Digests() map[string]string { return maps.Clone(r.digests) }

// Commit removes the old file last, which vouches for the others, and puts the new files in place; last comes after all
// others. A crash in between leaves a folder without it, never one where it vouches for what is not its own.
func (r *Replacement) Commit(last string) error {
	defer r.Discard()
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
	path := filepath.Join(r.Dir, name)
	return os.Rename(path+PartialSuffix, path)
}

// Discard removes what was written and not put in place.
func (r *Replacement) Discard() {
	for _, name := range r.files {
		os.Remove(filepath.Join(r.Dir, name+PartialSuffix))
	}
	r.files = nil
}

// syncDir makes a rename durable where the platform can; elsewhere the rename itself has to do.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}

// WriteDocument writes v as indented JSON.
func WriteDocument(path string, v any) error {
	return WriteFile(path, func(w io.Writer) error { return encodeDocument(w, v) })
}

func encodeDocument(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// readDocument decodes a JSON document after checking its schema. Unknown keys are allowed: adding a key is no new
// version.
func readDocument(path, schema string, v any, older ...string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := checkDocument(filepath.Base(path), b); err != nil {
		return err
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return fmt.Errorf("%s: not a JSON document: %w", filepath.Base(path), err)
	}
	if head.Schema != schema && !slices.Contains(older, head.Schema) {
		return &SchemaError{File: filepath.Base(path), Got: head.Schema, Want: schema}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
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
	if err := readDocument(filepath.Join(dir, ManifestFile), ManifestSchema, m); err != nil {
		return nil, err
	}
	return m, nil
}

// WriteManifest writes run.json into a run folder.
func WriteManifest(dir string, m *Manifest) error {
	m.Schema = ManifestSchema
	return WriteFile(filepath.Join(dir, ManifestFile), func(w io.Writer) error { return encodeSigned(w, m) })
}

// ReadIngestReport reads ingest.json of a run folder; a run that was never ingested gives fs.ErrNotExist.
func ReadIngestReport(dir string) (*IngestReport, error) {
	r := new(IngestReport)
	if err := readDocument(filepath.Join(dir, IngestReportFile), IngestReportSchema, r,
		olderIngestReports...); err != nil {
		return nil, err
	}
	return r, nil
}

// Encode writes the report as a document to w.
func (r *IngestReport) Encode(w io.Writer) error {
	r.Schema = IngestReportSchema
	return encodeSigned(w, r)
}

// A SchemaError says that a file is of another table or version than the reader knows.
type SchemaError struct {
	File, Got, Want string
	Column          string // the offending column, if the version matches but the columns do not
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

// Newer reports whether the file is of a later version than the reader's.
func (e *SchemaError) Newer() bool {
	got, gotVersion, _ := strings.Cut(e.Got, "/")
	want, wantVersion, _ := strings.Cut(e.Want, "/")
	a, err := strconv.Atoi(gotVersion)
	b, _ := strconv.Atoi(wantVersion)
	return err == nil && got == want && a > b
}

// missing reports whether err says that a file does not exist.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
