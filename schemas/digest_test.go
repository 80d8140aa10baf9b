package schemas

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A document of the current version must have a valid digest. A document of the previous version has no digest, and can
// still be read.
func TestDocumentsHaveDigests(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		write func() error
		read  func() (any, error)
	}{
		ManifestFile: {func() error { return WriteManifest(dir, &Manifest{RunID: "r"}) },
			func() (any, error) { return ReadManifest(dir) }},
		IngestReportFile: {func() error {
			r := &Replacement{Dir: dir}
			if err := r.File(IngestReportFile, new(IngestReport).Encode); err != nil {
				return err
			}
			return r.Commit(IngestReportFile)
		}, func() (any, error) { return ReadIngestReport(dir) }},
		"baseline.json": {func() error { return WriteBaseline(filepath.Join(dir, "baseline.json"), &Baseline{}) },
			func() (any, error) { return ReadBaseline(filepath.Join(dir, "baseline.json")) }},
	} {
		if err := c.write(); err != nil {
			t.Fatal(name, err)
		}
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		plain := Unsigned(whole)
		for what, b := range map[string][]byte{
			"without a digest":   plain,
			"a digest cut short": bytes.Replace(whole, []byte(digestEnd), []byte("\"\n}"), 1),
			"another key":        bytes.Replace(whole, []byte(`"digest"`), []byte(`"digess"`), 1),
			"another digest":     bytes.Replace(whole, []byte("sha256:"), []byte("sha256:0"), 1),
			"another text":       bytes.Replace(whole, []byte("{"), []byte("{ "), 1),
		} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			var damaged *DamagedError
			if _, err := c.read(); !errors.As(err, &damaged) || damaged.File != name || damaged.Hint() == "" {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		schema, version, _ := strings.Cut(string(plain), "/2")
		if err := os.WriteFile(path, []byte(schema+"/1"+version), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.read(); err != nil {
			t.Errorf("%s, of the version before: %v", name, err)
		}
	}
	m, err := ReadManifest(dir)
	if err != nil || !Undigested(m, nil) {
		t.Errorf("a manifest of the version before has digests, %v", err)
	}
}

// CheckTables returns an error if a table does not match its digest or is missing.
func TestTablesHaveDigests(t *testing.T) {
	dir := t.TempDir()
	if err := Samples.Write(dir, []Sample{{UsedBytes: 1}}); err != nil {
		t.Fatal(err)
	}
	digests, err := TableDigests(dir, SampledTables()...)
	if err != nil || len(digests) != 1 {
		t.Fatal(digests, err)
	}
	if err := CheckTables(dir, digests, SampledTables()...); err != nil {
		t.Error(err)
	}
	path := filepath.Join(dir, Samples.File())
	if err := os.WriteFile(path, []byte("PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	var damaged *DamagedError
	if err := CheckTables(dir, digests, Samples.File()); !errors.As(err, &damaged) || damaged.Hint() == "" {
		t.Error(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := CheckTables(dir, digests, Samples.File()); !errors.As(err, &damaged) ||
		!strings.Contains(err.Error(), "gone") {
		t.Error(err)
	}
}
