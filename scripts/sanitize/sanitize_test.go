package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

func TestText(t *testing.T) {
	c := newCleaner()
	for in, want := range map[string]string{
		"at /srv/people/ann/train.py, line 3": "at train.py, line 3",
		"see https://pytorch.org/docs/x.html": "see https://pytorch.org/docs/x.html",
		"layers.0/attn and 3/4":               "layers.0/attn and 3/4",
		"/etc/hosts":                          "hosts",
		"node17: no space":                    "gpu-host: no space",
		"on node17, not node171":              "on gpu-host, not node171",
		"GPU-0A1B2C3D-0000-4000-8000-123456789abc, MIG-0a1b2c3d-0000-4000-8000-123456789abc": "GPU-00000000-0000-0000-0000-000000000000, MIG-00000000-0000-0000-0000-000000000000",
	} {
		if got := c.text(in, "node17"); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	doc, err := c.json([]byte(`{"a": "x\n/srv/b/c <1>", "n": 12345678901234567890, "/srv/k/l": ["µ"]}`), "")
	if want := `{"a": "x\nc <1>", "n": 12345678901234567890, "l": ["µ"]}`; err != nil || string(doc) != want {
		t.Errorf("%s, %v; want %s", doc, err, want)
	}
}

// Nothing of the machine is left in any file of a run, journal and tables included, and the join of devices by UUID still
// works.
func TestStore(t *testing.T) {
	const second, third = "7068616e-746f-6d2d-6770-750000000002", "7068616e-746f-6d2d-6770-750000000003"
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(filepath.Join(dir, spool.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("../../ingest/testdata/journals/devices.dps.zst")
	if err != nil {
		t.Fatal(err)
	}
	sealed := filepath.Join(dir, spool.Dir, spool.SealedName(0))
	if err := os.WriteFile(sealed, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "stderr.log"), []byte("ann@node17: /srv/people/ann/train.py\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &schemas.Manifest{RunID: "run", Source: schemas.Measured, Status: schemas.StatusOK, Start: time.Unix(1, 0).UTC(),
		Host: schemas.Host{Name: "node17"}, Git: &schemas.Git{Revision: "abc"}, Command: []string{"/srv/people/ann/env/bin/python", "train.py"},
		GPUs: []schemas.GPU{{Index: 1, UUID: "GPU-" + second}, {Index: 2, UUID: "GPU-" + third}}}
	if err := schemas.WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second pass changes nothing
		if n, err := sanitize(filepath.Dir(dir), false); n != 1 || err != nil {
			t.Fatalf("%d runs, %v", n, err)
		}
		marks, frames, err := spool.Unpack(sealed)
		if err != nil {
			t.Fatal(err)
		}
		manifest, _ := os.ReadFile(filepath.Join(dir, schemas.ManifestFile))
		log, _ := os.ReadFile(filepath.Join(dir, "stderr.log"))
		for name, text := range map[string]string{"manifest": string(manifest), "log": string(log), "marks": string(marks), "frames": string(frames)} {
			for _, secret := range []string{second, third, "node17", "/srv", "people", "abc"} {
				if strings.Contains(text, secret) {
					t.Errorf("the %s still has %q", name, secret)
				}
			}
		}
		if m, err = schemas.ReadManifest(dir); err != nil {
			t.Fatal(err)
		}
		processes, err := schemas.Processes.Read(dir)
		if err != nil || len(processes) != 2 {
			t.Fatalf("%d rows, %v", len(processes), err)
		}
		if a, b := m.GPUs[0].UUID, m.GPUs[1].UUID; a == b || processes[0].UUID != b || processes[1].UUID != a {
			t.Errorf("GPUs %+v, processes %+v", m.GPUs, processes)
		}
	}
}

// A raw store has nothing that ingest derives, and ingest derives it.
func TestRaw(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(filepath.Join(dir, spool.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("../../ingest/testdata/journals/devices.dps.zst")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, spool.Dir, spool.SealedName(0)), b, 0o600); err != nil {
		t.Fatal(err)
	}
	m := &schemas.Manifest{RunID: "run", Source: schemas.Measured, Status: schemas.StatusOK, Start: time.Unix(1, 0).UTC()}
	if err := schemas.WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	files := func() (out []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	if _, err := sanitize(filepath.Dir(dir), true); err != nil {
		t.Fatal(err)
	}
	if got := files(); !slices.Equal(got, []string{schemas.ManifestFile, spool.Dir}) {
		t.Errorf("a raw run holds %q", got)
	}
	if _, err := ingest.Run(dir, ingest.Options{Version: "test"}); err != nil {
		t.Fatal(err)
	}
	if got, want := files(), append(ingest.DerivedFiles(), schemas.ManifestFile, spool.Dir); len(got) != len(want) {
		t.Errorf("ingest derived %q, not %q", got, want)
	}
}

func TestNothingToSanitize(t *testing.T) {
	if _, err := sanitize(t.TempDir(), false); err == nil || !strings.Contains(err.Error(), "no run in") {
		t.Errorf("got %v", err)
	}
}
