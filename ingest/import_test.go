package ingest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/dpsight/dpsight/schemas"
)

const snapshots = "torchsnap/testdata"

// Peaks of the real runs that the snapshots are of: torch.cuda.max_memory_allocated and reserved, in bytes.
var snapshotPeaks = map[string][2]int64{"vanilla": {558963712, 578 << 20}, "dpsgd": {591393792, 638 << 20},
	"fgc": {658543104, 686 << 20}}

func TestImportSnapshots(t *testing.T) {
	store := t.TempDir()
	for name, want := range snapshotPeaks {
		outs, err := Import(filepath.Join(snapshots, name+".pickle.zst"), store, Options{Version: "test"})
		if err != nil || len(outs) != 1 || outs[0].State != schemas.IngestNew {
			t.Fatalf("%+v, %v", outs, err)
		}
		dir := outs[0].Dir
		r, err := schemas.ReadIngestReport(dir)
		if err != nil {
			t.Fatal(err)
		}
		d := r.Devices[0]
		if d.Verdict != schemas.Exact || d.PeakAllocatedBytes != want[0] || d.PeakReservedBytes != want[1] ||
			d.DifferingBlocks != 0 {
			t.Errorf("%s: %+v, want peaks %v", name, d, want)
		}
		m, err := schemas.ReadManifest(dir)
		if err != nil || m.Source != schemas.Imported || m.Import == nil || m.Import.File != name+".pickle.zst" ||
			m.RunID != outs[0].RunID ||
			!strings.HasSuffix(m.RunID, "-"+name+"-"+m.Import.SHA256[:6]) || m.Start.IsZero() {
			t.Errorf("%s: manifest %+v, %v", name, m, err)
		}
		if got := total(breakdown(rows(t, schemas.Allocations, dir), rows(t, schemas.Owners, dir), d.PeakSeq)); got !=
			want[0] {
			t.Errorf("%s: categories sum to %d", name, got)
		}
		for _, o := range rows(t, schemas.Owners, dir) {
			if o.Category != schemas.Untraced && (o.Category != schemas.Other || o.Evidence != schemas.ByPhase) {
				t.Errorf("%s: %+v", name, o)
			}
		}
		if !hasWarning(r, "what its blocks are for is not known, and they are other, or untraced") {
			t.Errorf("%s: %q", name, r.Warnings)
		}
	}
}

// The same file is the same run, wherever it comes from; again derives its tables anew, also from the run's own copy.
func TestImportTwice(t *testing.T) {
	store := t.TempDir()
	path := filepath.Join(snapshots, "vanilla.pickle.zst")
	first, err := Import(path, store, Options{})
	if err != nil {
		t.Fatal(err)
	}
	second, _ := Import(path, store, Options{})
	if second[0].State != schemas.IngestKnown || second[0].RunID != first[0].RunID {
		t.Errorf("%+v", second)
	}
	for _, p := range []string{path, first[0].Dir} {
		report := filepath.Join(first[0].Dir, schemas.IngestReportFile)
		if err := os.WriteFile(report, []byte(`{"schema":"dpsight.ingested/1"}`), 0o644); err != nil {
			t.Fatal(err)
		}
		again, err := Import(p, store, Options{Again: true})
		if err != nil || again[0].State != schemas.IngestNew || !again[0].Again || again[0].RunID != first[0].RunID {
			t.Errorf("%+v, %v", again, err)
		}
		if r, err := schemas.ReadIngestReport(first[0].Dir); err != nil || len(r.Devices) != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	}
	entries, _ := os.ReadDir(store)
	if len(entries) != 1 {
		t.Errorf("%d entries in the store", len(entries))
	}
}

func TestImportCompressed(t *testing.T) {
	f, err := os.Open(filepath.Join(snapshots, "vanilla.pickle.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var plain, zipped bytes.Buffer
	if _, err := plain.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	w := gzip.NewWriter(&zipped)
	w.Write(plain.Bytes())
	w.Close()
	dir, store := t.TempDir(), t.TempDir()
	for name, b := range map[string][]byte{"a b/ü!.pickle": plain.Bytes(), "x.pickle.gz": zipped.Bytes()} {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	outs, err := Import(dir, store, Options{})
	if err != nil || len(outs) != 2 {
		t.Fatalf("%+v, %v", outs, err)
	}
	for _, o := range outs {
		if o.State != schemas.IngestNew || strings.ContainsAny(o.RunID, " !ü/") {
			t.Errorf("%+v", o)
		}
		if again, err := Import(o.Dir, store, Options{Again: true}); err != nil || again[0].State != schemas.IngestNew ||
			!again[0].Again {
			t.Errorf("from its own copy: %+v, %v", again, err)
		}
	}
}

// What dpsight cannot take is refused in a sentence, and leaves nothing in the store.
func TestImportRefuses(t *testing.T) {
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	eras, _ := filepath.Glob(filepath.Join(snapshots, "eras", "*.pickle"))
	if len(eras) == 0 {
		t.Fatal("no snapshots of other eras")
	}
	cases := map[string]string{
		write("evil.pickle", []byte("\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.")): "GLOBAL",
		write("cut.pickle", []byte("\x80\x04\x95")):                                       "",
		write("notes.txt", []byte("hello")):                                               "not a memory snapshot",
		write("list.pickle", []byte("\x80\x02K\x01.")):                                    "not a memory snapshot",
		write("empty.pickle", nil):                                                        "",
		filepath.Join(dir, "absent"):                                                      "no such file",
		write("run/run.json", []byte("{}")):                                               "",
		write("void/.hidden", nil):                                                        "",
	}
	for path, part := range cases {
		if strings.HasSuffix(path, "run.json") || strings.HasSuffix(path, ".hidden") {
			path = filepath.Dir(path)
		}
		outs, err := Import(path, store, Options{})
		if err != nil || len(outs) != 1 || outs[0].State != schemas.IngestRefused || outs[0].Reason == "" ||
			!strings.Contains(outs[0].Reason, part) {
			t.Errorf("%s: %+v, %v", path, outs, err)
		}
	}
	old := 0
	for _, path := range eras {
		outs, err := Import(path, filepath.Join(t.TempDir(), "s"), Options{})
		if err != nil || len(outs) != 1 {
			t.Errorf("%s: %+v, %v", path, outs, err)
		}
		if outs[0].State == schemas.IngestRefused && strings.Contains(outs[0].Reason, "2.10") {
			old++
		}
	}
	if old == 0 {
		t.Error("no snapshot of an older torch was refused by name")
	}
	if entries, _ := os.ReadDir(store); len(entries) != 0 {
		t.Errorf("%d entries in the store", len(entries))
	}
}

func TestImportRuns(t *testing.T) {
	dir := folder(t, "vanilla")
	for i, want := range []string{schemas.IngestNew, schemas.IngestKnown} {
		outs, err := Import(filepath.Dir(dir), t.TempDir(), Options{})
		if err != nil || len(outs) != 1 || outs[0].State != want || outs[0].RunID != "vanilla" || outs[0].Dir != dir {
			t.Errorf("time %d: %+v, %v", i+1, outs, err)
		}
	}
	outs, err := Import(dir, t.TempDir(), Options{Again: true})
	if err != nil || outs[0].State != schemas.IngestNew || !outs[0].Again {
		t.Errorf("%+v, %v", outs, err)
	}
}

func TestStoreThatCannotBeWritten(t *testing.T) {
	store := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(store, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(filepath.Join(snapshots, "vanilla.pickle.zst"), store, Options{}); err == nil {
		t.Error("no error")
	}
}

func TestIsStoreError(t *testing.T) {
	sep := string(filepath.Separator)
	for _, c := range []struct {
		path, store string
		want        bool
	}{
		{"/data/runs", "/data/runs", true},
		{"/data/runs/x/run.json.partial", "/data/runs/", true},
		{"/data", "/data/runs", true}, // a file where a folder should be
		{"/data/runs-2/x.pickle", "/data/runs", false},
		{"/data/run", "/data/runs", false},
		{"/other", "/data/runs", false},
		{"runs/x", "runs", true},
		{"runs.pickle", "runs", false},
		{"../x.pickle", "runs", false},
		{"/x", "/", true},
	} {
		path, store := strings.ReplaceAll(c.path, "/", sep), strings.ReplaceAll(c.store, "/", sep)
		err := fmt.Errorf("reading: %w", &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission})
		if got := isStoreError(err, store); got != c.want {
			t.Errorf("%s, store %s: %t", path, store, got)
		}
	}
	if isStoreError(fs.ErrPermission, "/") {
		t.Error("an error without a path is the store's")
	}
}

// The report says which rules it goes by: a changed table without a new version is a mistake.
func TestRulesHash(t *testing.T) {
	b, err := os.ReadFile("testdata/rules.json")
	if err == nil && !*update {
		var want struct {
			Version int
			Hash    string
		}
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		if want.Version == RulesVersion && want.Hash != RulesHash() {
			t.Errorf("the rules' tables changed (%s, not %s): raise RulesVersion, then -update", RulesHash(), want.Hash)
		}
		if want.Version != RulesVersion {
			t.Errorf("testdata/rules.json is of version %d: -update", want.Version)
		}
		return
	}
	if !*update {
		t.Fatal(err)
	}
	out, _ := json.Marshal(map[string]any{"Version": RulesVersion, "Hash": RulesHash()})
	if err := os.WriteFile("testdata/rules.json", append(out, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A trace's out-of-memory events are failures of the run. It says neither torch's limit nor how the run ended.
func TestImportedFailures(t *testing.T) {
	const file = "replay/testdata/torch-2.11-pools.pickle.zst"
	outs, err := Import(file, t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := schemas.ReadIngestReport(outs[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	var events []schemas.Event
	for _, e := range rows(t, schemas.Events, outs[0].Dir) {
		if schemas.Action(e.Action) == schemas.ActionOOM {
			events = append(events, e)
		}
	}
	if len(events) == 0 || len(r.OOMs) != len(events) {
		t.Fatalf("%d failures of %d out-of-memory events", len(r.OOMs), len(events))
	}
	for i, o := range r.OOMs {
		want := schemas.OOM{Seq: events[i].Seq, RequestedBytes: events[i].Size, DeviceFreeBytes: int64(events[i].Addr),
			Step: -1, EndUnknown: true}
		if o != want || o.DeviceFreeBytes <= 0 {
			t.Errorf("%+v, want %+v", o, want)
		}
	}
}
