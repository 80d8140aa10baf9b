package main

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

func TestText(t *testing.T) {
	c := newCleaner()
	for in, want := range map[string]string{
		"at /srv/people/ann/train.py, line 3":      "at train.py, line 3",
		"see https://pytorch.org/docs/x.html":      "see https://pytorch.org/docs/x.html",
		"layers.0/attn and 3/4":                    "layers.0/attn and 3/4",
		"/etc/hosts":                               "hosts",
		"node17: no space":                         "gpu-host: no space",
		"on node17, not node171":                   "on gpu-host, not node171",
		"GPU-0A1B2C3D-0000-4000-8000-123456789abc": "GPU-00000000-0000-0000-0000-000000000000",
		"MIG-0a1b2c3d-0000-4000-8000-123456789abc": "MIG-00000000-0000-0000-0000-000000000000",
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

// frame replaces a file's path by its path in its environment, by its path in the folder that collect writes, or by its
// name. Two files with the same name get different replacements, numbered in the order in which the files occur.
func TestFrames(t *testing.T) {
	c := newCleaner()
	for range 2 {
		for _, file := range [][2]string{
			{"/srv/ann/env/lib/python3.11/site-packages/torch/nn/modules/module.py",
				"/site-packages/torch/nn/modules/module.py"},
			{"/usr/lib/python3/dist-packages/six.py", "/dist-packages/six.py"},
			{"/srv/ann/.local/share/cpython-3.11.7/lib/python3.11/threading.py", "/lib/python3.11/threading.py"},
			{"/var/tmp/dpsight-2201/python/dpsight/patch.py", "/dpsight-0/python/dpsight/patch.py"},
			{"/tmp/dpsight-2201/phantom_init.py", "/dpsight-0/phantom_init.py"},
			{"/tmp/dpsight-2201/experiments/dpsight_experiments/train.py",
				"/dpsight-0/experiments/dpsight_experiments/train.py"},
			{"/srv/dpsight-2/ann/train.py", "train.py"}, {"/srv/ann/my model/train.py", "2/train.py"},
			{"../ann/loop.py", "loop.py"}, {"loop.py", "loop.py"},
			{"<frozen runpy>", "<frozen runpy>"}, {"_call_impl", "_call_impl"}, {"/srv/ann/python3.11/x.py", "x.py"},
		} {
			if got := c.frame(file[0], ""); got != file[1] {
				t.Errorf("%s became %s, want %s", file[0], got, file[1])
			}
			if got := newCleaner().frame(file[1], ""); got != file[1] { // a second pass changes nothing
				t.Errorf("%s became %s", file[1], got)
			}
		}
	}
}

// If a run was recorded with stacks, its tables stay the same, except for the folders of files. A breakdown by stack
// shows the remaining parts of the paths.
func TestStacks(t *testing.T) {
	python := testkit.Python(t)
	folder := filepath.Join(t.TempDir(), "people", "ann smith")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../collect/livetest/testdata/stacks.py")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(folder, "stacks.py")
	if err := os.WriteFile(script, source, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := collect.Run(t.Context(), collect.Experiment{Store: t.TempDir(), Name: "stacks", Command: []string{python,
		script, "3", "25165824"}, Device: "phantom",
		Stacks: true, StackSteps: new(2), Stdout: io.Discard, Stderr: io.Discard})
	if err != nil || r.Manifest.Status != schemas.StatusOK {
		t.Fatalf("%+v, %v", r, err)
	}
	type tables struct {
		allocations []schemas.Allocation
		owners      []schemas.Owner
		events      []schemas.Event
		stacks      []schemas.StackFrame
		verdict     schemas.DeviceVerdict
	}
	read := func() (out tables) {
		report, err := schemas.ReadIngestReport(r.Dir)
		if err != nil || len(report.Devices) != 1 {
			t.Fatal(report, err)
		}
		out.verdict = report.Devices[0]
		errs := make([]error, 4)
		out.allocations, errs[0] = schemas.Allocations.Read(r.Dir)
		out.owners, errs[1] = schemas.Owners.Read(r.Dir)
		out.events, errs[2] = schemas.Events.Read(r.Dir)
		out.stacks, errs[3] = schemas.Stacks.Read(r.Dir)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if _, err := ingest.Run(r.Dir, ingest.Options{Version: "test"}); err != nil {
		t.Fatal(err)
	}
	want := read()
	for range 2 { // a second pass changes nothing
		if _, err := sanitize(filepath.Dir(r.Dir), false); err != nil {
			t.Fatal(err)
		}
		got := read()
		files := map[string]bool{}
		for i := range min(len(got.stacks), len(want.stacks)) {
			file := &got.stacks[i].File
			if path.Base(*file) != path.Base(want.stacks[i].File) {
				t.Fatalf("%s became %s", want.stacks[i].File, *file)
			}
			files[*file] = true
			*file = want.stacks[i].File
		}
		if len(want.stacks) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("the tables differ: %+v, not %+v", got.verdict, want.verdict)
		}
		for _, file := range []string{"stacks.py", "/site-packages/torch/nn/modules/module.py"} {
			if !files[file] {
				t.Errorf("no frame is of %s: %q", file, slices.Sorted(maps.Keys(files)))
			}
		}
		journals, err := spool.SealedJournals(filepath.Join(r.Dir, spool.Dir))
		if err != nil || len(journals) != 1 {
			t.Fatal(journals, err)
		}
		_, frames, err := spool.Unpack(journals[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{folder, filepath.Dir(folder), "ann smith", filepath.Dir(filepath.Dir(python)),
			os.TempDir() + "/"} {
			if bytes.Contains(frames, []byte(secret)) {
				t.Errorf("the journal still has %q", secret)
			}
		}
	}
}

// The lines of the script lose the folders of their files. The lines keep their numbers and functions.
func TestLines(t *testing.T) {
	journal := filepath.Join(t.TempDir(), spool.SealedName(0))
	frames := spool.AppendFrame(spool.AppendHeader(nil), spool.FrameLines, []byte(`{"lines":[`+
		`[1,"/srv/ann smith/my model/train.py",7,"main"],[2,"src/net.py",40,"Net.forward"]],"by":"tracing"}`))
	var packed bytes.Buffer
	if err := spool.Pack(&packed, nil, frames); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journal, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second pass changes nothing
		if err := newCleaner().journal(journal, "node17"); err != nil {
			t.Fatal(err)
		}
		marks, frames, err := spool.Unpack(journal)
		if err != nil {
			t.Fatal(err)
		}
		j, err := spool.Parse(marks, frames)
		if err != nil {
			t.Fatal(err)
		}
		want := []spool.LineInfo{{ID: 1, File: "train.py", Line: 7, Function: "main"},
			{ID: 2, File: "src/net.py", Line: 40, Function: "Net.forward"}}
		if j.Lines == nil || !reflect.DeepEqual(j.Lines.Lines, want) {
			t.Errorf("lines %+v", j.Lines)
		}
	}
}

// After sanitizing, no file of a run contains a name of the machine. The journal and the tables contain no such name
// either. Devices and samples can still be joined by UUID.
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
	built := schemas.Built{Revision: new("8a282ba31e1f4d60"), Modified: new(false), Agent: "sha256:0123456789abcdef",
		Phantom: "sha256:fedcba9876543210"}
	if err := os.WriteFile(filepath.Join(dir, "stderr.log"), []byte("ann@node17: /srv/people/ann/train.py\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	m := &schemas.Manifest{RunID: "run", Source: schemas.Measured, Status: schemas.StatusOK,
		Start: time.Unix(1, 0).UTC(),
		Host:  schemas.Host{Name: "node17"}, Git: &schemas.Git{Revision: "a1b2c3d4"},
		Command:   []string{"/srv/people/ann/env/bin/python", "train.py"},
		GPUs:      []schemas.GPU{{Index: 1, UUID: "GPU-" + second}, {Index: 2, UUID: "GPU-" + third}},
		Collector: schemas.Collector{Built: &built}}
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
		for name, text := range map[string]string{"manifest": string(manifest), "log": string(log),
			"marks": string(marks), "frames": string(frames)} {
			for _, secret := range []string{second, third, "node17", "/srv", "people", "a1b2c3d4"} {
				if strings.Contains(text, secret) {
					t.Errorf("the %s still has %q", name, secret)
				}
			}
		}
		if m, err = schemas.ReadManifest(dir); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(m.Collector.Built, &built) {
			t.Errorf("the code that recorded is %+v", m.Collector.Built)
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

// With -raw, a store has nothing that ingest derives. ingest can derive it again.
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
	m := &schemas.Manifest{RunID: "run", Source: schemas.Measured, Status: schemas.StatusOK,
		Start: time.Unix(1, 0).UTC()}
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
