package ingest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/dpsight/dpsight/ingest/stackrules"
	"github.com/dpsight/dpsight/schemas"
)

const snapshots = "torchsnap/testdata"

// snapshotPeaks holds, in bytes, torch.cuda.max_memory_allocated and max_memory_reserved of the real runs that wrote
// the snapshots.
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
			if o.Evidence != schemas.ByStack && (o.Category != schemas.Other || o.Evidence != schemas.ByPhase) {
				t.Errorf("%s: %+v", name, o)
			}
		}
		if !hasWarning(r, "device 0: stacks explain 9") && !hasWarning(r, "device 0: stacks explain 100.0 %") {
			t.Errorf("%s: %q", name, r.Warnings)
		}
	}
}

// Importing the same file twice gives the same run, in any folder. With the option Again, Import derives the run's
// tables again. Import can also derive the tables from the copy of the file that the run keeps.
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

const smallSnapshot = snapshots + "/eras/torch-2.11.pickle"

// Import identifies a snapshot by its content. If the same snapshot is renamed, compressed in another way or moved to
// another folder, Import gives the same run.
func TestImportIsKnownByItsContent(t *testing.T) {
	plain, err := os.ReadFile(smallSnapshot)
	if err != nil {
		t.Fatal(err)
	}
	var zipped, compressed, archived bytes.Buffer
	g := gzip.NewWriter(&zipped)
	g.Write(plain)
	g.Close()
	x, err := xz.NewWriter(&compressed)
	if err != nil {
		t.Fatal(err)
	}
	x.Write(plain)
	x.Close()
	z := zip.NewWriter(&archived)
	for _, name := range []string{"notes.txt", "inside.pickle"} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(plain)
	}
	z.Close()
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "a [b]")
	first := ""
	for _, file := range []struct {
		name string
		p    []byte
	}{
		{"a b/ü!.pickle", plain},
		{"x.pickle.gz", zipped.Bytes()},
		{"y.xz", compressed.Bytes()},
		{"z.zip", archived.Bytes()},
	} {
		path := filepath.Join(dir, file.name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, file.p, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, again := range []bool{false, true} {
			outs, err := Import(path, store, Options{Again: again})
			if err != nil || len(outs) != 1 {
				t.Fatalf("%s: %+v, %v", file.name, outs, err)
			}
			o := outs[0]
			want := schemas.IngestKnown
			if first == "" || again {
				want = schemas.IngestNew
			}
			if first == "" {
				first = o.RunID
			}
			if o.State != want || o.RunID != first || o.Again != again || strings.ContainsAny(o.RunID, " !ü/") {
				t.Errorf("%s, again %t: %+v, want run %s", file.name, again, o, first)
			}
		}
	}
	if outs, err := Import(filepath.Join(store, first), store, Options{Again: true}); err != nil ||
		outs[0].State != schemas.IngestNew || !outs[0].Again {
		t.Errorf("from its own copy: %+v, %v", outs, err)
	}
	if entries, _ := os.ReadDir(store); len(entries) != 1 {
		t.Errorf("the store has %v", entries)
	}
}

// Older versions of dpsight identified a snapshot by the digest of its file. In these versions, a snapshot that was
// compressed in another way had another digest.
func TestImportKnowsOlderImports(t *testing.T) {
	store := t.TempDir()
	file := filepath.Join(snapshots, "vanilla.pickle.zst")
	outs, err := Import(file, store, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := schemas.ReadManifest(outs[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Import.SHA256, err = hashOf(file); err != nil {
		t.Fatal(err)
	}
	m.RunID = strings.TrimSuffix(m.RunID, m.RunID[len(m.RunID)-idDigits:]) + m.Import.SHA256[:idDigits]
	if err := schemas.WriteManifest(outs[0].Dir, m); err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(store, m.RunID)
	if err := os.Rename(outs[0].Dir, older); err != nil {
		t.Fatal(err)
	}
	outs, err = Import(file, store, Options{})
	if err != nil || len(outs) != 1 || outs[0].State != schemas.IngestKnown || outs[0].Dir != older {
		t.Errorf("%+v, %v", outs, err)
	}
}

// Each snapshot in an archive becomes a run.
func TestImportArchive(t *testing.T) {
	path, store := filepath.Join(t.TempDir(), "ranks.tar.gz"), t.TempDir()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	g := gzip.NewWriter(f)
	w := tar.NewWriter(g)
	for _, name := range []string{"torch-2.11.pickle", "torch-2.15.pickle", "truth.json"} {
		p, err := os.ReadFile(filepath.Join(snapshots, "eras", name))
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: "d/" + name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(p))})
		}
		if err == nil {
			_, err = w.Write(p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if w.Close() != nil || g.Close() != nil || f.Close() != nil {
		t.Fatal("closing the archive")
	}
	outs, err := Import(path, store, Options{})
	if err != nil || len(outs) != 2 {
		t.Fatalf("%+v, %v", outs, err)
	}
	for i, name := range []string{"torch-2.11.pickle", "torch-2.15.pickle"} {
		m, err := schemas.ReadManifest(outs[i].Dir)
		if err != nil || m.Import.File != name || outs[i].Path != path+":d/"+name || outs[i].State != schemas.IngestNew {
			t.Errorf("%+v, %v", outs[i], err)
		}
	}
}

// For the fixtures of each era of torch, the highest sum of requested bytes equals the result of an independent replay.
func TestImportEras(t *testing.T) {
	exact, unverifiable, lossy := schemas.Exact, schemas.Unverifiable, schemas.Lossy
	for name, want := range map[string]struct {
		device    int32
		requested int64
		verdict   string
	}{
		"bare_list":    {0, 2_094_568, unverifiable}, // the snapshot has no history
		"no_time":      {0, 4_000, exact},
		"user_defined": {0, 5, lossy}, // one event did not fit into torch's ring buffer
		"settings":     {2, 102, unverifiable},
		"metadata":     {0, 66, unverifiable},
		"cpp_frames":   {0, 4, unverifiable},
		"cpp_writer":   {0, 244_350, lossy},
		"protocol_0":   {0, 4_000, exact},
		"protocol_5":   {0, 4_000, exact},
		"torch-2.11":   {0, 26_489_232, exact},
		"torch-2.15":   {0, 26_489_232, exact},
	} {
		paths, _ := filepath.Glob(filepath.Join(snapshots, "eras", name+".pickle*"))
		outs, err := Import(paths[0], t.TempDir(), Options{})
		if err != nil || outs[0].State != schemas.IngestNew {
			t.Errorf("%s: %+v, %v", name, outs, err)
			continue
		}
		r, err := schemas.ReadIngestReport(outs[0].Dir)
		if err != nil {
			t.Fatal(err)
		}
		if name == "user_defined" {
			marked := func(p schemas.Phase) bool { return p.Phase == "here" && p.PeakSeq > 0 }
			if !slices.ContainsFunc(rows(t, schemas.Phases, outs[0].Dir), marked) ||
				!hasWarning(r, "device 0: its phases are 1 stretch after a user_defined event") {
				t.Errorf("%s: its text is no phase: %q", name, r.Warnings)
			}
		}
		for _, d := range r.Devices {
			if d.Device == want.device && d.Verdict != want.verdict {
				t.Errorf("%s: %s, want %s (%s)", name, d.Verdict, want.verdict, d.Reason)
			}
		}
		if got := highestRequest(rows(t, schemas.Allocations, outs[0].Dir), want.device); got != want.requested {
			t.Errorf("%s: %d B requested at the highest, want %d", name, got, want.requested)
		}
	}
}

// highestRequest returns the highest sum of requested bytes of a device's allocations.
func highestRequest(allocations []schemas.Allocation, device int32) int64 {
	changes := map[int64]int64{}
	for i := range allocations {
		a := &allocations[i]
		if a.Device != device || a.FreeRequestedSeq < 0 {
			continue
		}
		changes[a.AllocSeq] += a.RequestedBytes
		if a.FreeRequestedSeq > 0 {
			changes[a.FreeRequestedSeq] -= a.RequestedBytes
		}
	}
	now, highest := int64(0), int64(0)
	for _, seq := range slices.Sorted(maps.Keys(changes)) {
		now += changes[seq]
		highest = max(highest, now)
	}
	return highest
}

// If a history does not reach back to the beginning of the process, a warning says whether the oldest events were lost
// or not recorded.
func TestImportSaysWhereHistoryBegins(t *testing.T) {
	event := func(action string, addr int) string {
		return fmt.Sprintf("}(U\x06actionU%c%sU\x04addrI%d\nU\x04sizeI512\nU\x06streamI0\nu", len(action), action, addr)
	}
	block := func(state, more string) string {
		return fmt.Sprintf("}(U\x05stateU%c%sU\x04sizeI512\nU\x0erequested_sizeI512\n%su", len(state), state, more)
	}
	frames := "U\x06frames](}(U\x08filenameU\x04a.pyU\x04lineI3\nU\x04nameU\x01fue"
	for _, c := range []struct{ older, want string }{
		{block("active_allocated", ""), "recording began after the first allocations"},
		{block("active_allocated", frames), "the oldest events are missing (1 live block has no allocation event)"},
		{block("inactive", ""), ""},
	} {
		snapshot := "\x80\x02}(U\x08segments](}(U\x06deviceI0\nU\x07addressI65536\nU\x0atotal_sizeI1024\nU\x0csegment_typeU" +
			"\x05smallU\x06blocks](" + block("active_allocated", "") + c.older + "eueU\x0ddevice_traces](](" +
			event("alloc", 65536) + "eeu."
		if c.want == "" { // the recording began with the process
			segment := "}(U\x06actionU\x0dsegment_allocU\x04addrI65536\nU\x04sizeI1024\nU\x06streamI0\nu"
			snapshot = strings.Replace(snapshot, "device_traces](](", "device_traces](]("+segment, 1)
		}
		path := filepath.Join(t.TempDir(), "s.pickle")
		if err := os.WriteFile(path, []byte(snapshot), 0o600); err != nil {
			t.Fatal(err)
		}
		outs, err := Import(path, t.TempDir(), Options{})
		if err != nil || outs[0].State != schemas.IngestNew {
			t.Fatalf("%+v, %v", outs, err)
		}
		r, err := schemas.ReadIngestReport(outs[0].Dir)
		if err != nil {
			t.Fatal(err)
		}
		if c.want != "" && !hasWarning(r, c.want) || c.want == "" && hasWarning(r, "not in the file") {
			t.Errorf("%q, want …%s…", r.Warnings, c.want)
		}
	}
}

// For a snapshot without a history, the tables have the blocks that were allocated when torch wrote the snapshot, with
// their stacks. The tables of such a run say nothing about a peak.
func TestImportWithoutHistory(t *testing.T) {
	outs, err := Import(filepath.Join(snapshots, "eras", "bare_list.pickle"), t.TempDir(), Options{})
	if err != nil || outs[0].State != schemas.IngestNew {
		t.Fatalf("%+v, %v", outs, err)
	}
	r, err := schemas.ReadIngestReport(outs[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := r.Devices[0]; d.Events != 0 || !strings.Contains(d.Reason, "not the peak") {
		t.Errorf("%+v", d)
	}
	stacks := 0
	for _, a := range rows(t, schemas.Allocations, outs[0].Dir) {
		if a.AllocSeq != 0 || a.FreeRequestedSeq > 0 {
			t.Errorf("%+v", a)
		}
		if a.Stack > 0 {
			stacks++
		}
	}
	if stacks != 1 {
		t.Errorf("%d blocks have a stack", stacks)
	}
}

// If the file is of a kind that Import does not accept, the error names that kind.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	var checkpoint bytes.Buffer
	z := zip.NewWriter(&checkpoint)
	for _, name := range []string{"model/data.pkl", "model/version", "model/data/0"} {
		if _, err := z.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	z.Close()
	for name, want := range map[string]struct{ begins, what string }{
		"model.pt":       {checkpoint.String(), "torch.save"},
		"events.parquet": {"PAR1....", "Parquet"},
		"old.pt": {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.",
			"torch.save"},
		"nsys.sqlite":         {"SQLite format 3\x00", "SQLite"},
		"report.nsys-rep":     {"\x01", "Nsight Systems"},
		"kernel.ncu-rep":      {"\x01", "Nsight Compute"},
		"events.out.tfevents": {"\x01", "TensorBoard"},
		"settings.json":       {`{"lr": 0.1}`, "JSON"},
		"page.html":           {"<!DOCTYPE html>", "web page"},
		"results.csv":         {"a,b\n", "table of text"},
		"train.py":            {"import torch\n", "a text file"},
		"empty.pickle":        {"", "an empty file"},
		"x.npy":               {"\x93NUMPY", "NumPy"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(want.begins), 0o600); err != nil {
			t.Fatal(err)
		}
		outs, err := Import(path, t.TempDir(), Options{})
		if err != nil || len(outs) != 1 || outs[0].State != schemas.IngestRefused ||
			!strings.HasPrefix(outs[0].Reason, "not a memory snapshot of torch, but ") ||
			!strings.Contains(outs[0].Reason, want.what) {
			t.Errorf("%s: %+v, %v", name, outs, err)
		}
	}
}

// The runs of one file have different ids, even if the file's name is long. Import recognises the runs when the same
// file is imported again.
func TestRunsOfOneFile(t *testing.T) {
	results, err := os.ReadFile("figures/testdata/memory_profile_results.json")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), strings.Repeat("long-", 20)+".json")
	if err := os.WriteFile(path, results, 0o600); err != nil {
		t.Fatal(err)
	}
	store, ids := t.TempDir(), map[string]bool{}
	for _, want := range []string{schemas.IngestNew, schemas.IngestKnown} {
		outs, err := Import(path, store, Options{})
		if err != nil || len(outs) < 2 {
			t.Fatalf("%+v, %v", outs, err)
		}
		for _, out := range outs {
			if ids[out.RunID] = true; out.State != want {
				t.Errorf("%s is %s, not %s", out.RunID, out.State, want)
			}
		}
		if len(ids) != len(outs) {
			t.Errorf("%d runs have %d ids", len(outs), len(ids))
		}
	}
}

// dpsight derives the tables of an imported run again from the run's copy of the file, but only if the copy matches its
// digest.
func TestCopiesHaveDigests(t *testing.T) {
	store, elsewhere := t.TempDir(), t.TempDir()
	file := filepath.Join(snapshots, "vanilla.pickle.zst")
	other := filepath.Join(snapshots, "dpsgd.pickle.zst")
	plain := filepath.Join(elsewhere, "vanilla.pickle")
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b, err := z.DecodeAll(packed, nil)
	if err == nil {
		err = os.WriteFile(plain, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, plain} {
		store := filepath.Join(store, filepath.Base(path))
		outs, err := Import(path, store, Options{})
		if err != nil || outs[0].State != schemas.IngestNew {
			t.Fatal(outs, err)
		}
		dir := outs[0].Dir
		kept := copyPath(dir, snapshotFile)
		whole, err := os.ReadFile(kept)
		if err != nil {
			t.Fatal(err)
		}
		another, err := os.ReadFile(other)
		if err != nil {
			t.Fatal(err)
		}
		for _, older := range []bool{false, true} {
			if older {
				m, err := schemas.ReadManifest(dir)
				if err != nil {
					t.Fatal(err)
				}
				m.Import.CopySHA256 = ""
				if err := schemas.WriteManifest(dir, m); err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(kept); err != nil {
					t.Fatal(err)
				}
				kept, whole = strings.TrimSuffix(kept, copySuffix)+olderSuffix, packed
			}
			for state, b := range map[string][]byte{schemas.IngestNew: whole, schemas.IngestRefused: another} {
				if err := os.WriteFile(kept, b, 0o600); err != nil {
					t.Fatal(err)
				}
				outs, err := Import(dir, store, Options{Again: true})
				if err != nil || outs[0].State != state || state == schemas.IngestRefused && outs[0].Hint == "" {
					t.Errorf("%s, older %v: %+v, %v", path, older, outs, err)
				}
			}
			if err := os.WriteFile(kept, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// Importing the file again replaces the copy by a copy in the current form.
		if outs, err = Import(path, store, Options{Again: true}); err != nil || outs[0].State != schemas.IngestNew {
			t.Error(outs, err)
		}
		if fresh := copyPath(dir, snapshotFile); !strings.HasSuffix(fresh, copySuffix) {
			t.Errorf("the copy is still %s", fresh)
		}
		if _, err := os.Stat(kept); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the older copy is still there: %v", err)
		}
	}
}

// If dpsight cannot read a file, the outcome gives a reason of one sentence, and Import leaves no file in the store.
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
	nothing := []byte("\x80\x02}(U\x08segments]U\x0ddevice_traces]u.")
	cases := map[string]string{
		write("evil.pickle", []byte("\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R.")): "GLOBAL",
		write("cut.pickle", []byte("\x80\x04\x95")):                                       "",
		write("notes.txt", []byte("hello")):                                               "not a memory snapshot",
		write("list.pickle", []byte("\x80\x02K\x01.")):                                    "not a memory snapshot",
		write("empty.pickle", nil):                                                        "",
		write("nothing.pickle", nothing):                                                  "no events and no blocks",
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
		{"/data", "/data/runs", true}, // if /data is a file, the store has no folder to lie in
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

// If a table of the rules or a rule on stacks changes, RulesVersion must change too, since the report of an ingest
// states the version. TestBreakdownSums in examples/tests checks the rules that are code and not tables.
func TestRulesHash(t *testing.T) {
	type rules struct {
		Hash    string // the hash of the rules that are tables
		Stacks  string // the hash of the rules on stacks
		Version int
	}
	sum := sha256.Sum256(fmt.Append(nil, stackrules.Default.Strong, stackrules.Default.Weak))
	now := rules{RulesHash(), hex.EncodeToString(sum[:8]), RulesVersion}
	b, err := os.ReadFile("testdata/rules.json")
	if err == nil {
		var kept rules
		if err := json.Unmarshal(b, &kept); err != nil {
			t.Fatal(err)
		}
		if kept.Version == now.Version && kept != now {
			t.Fatalf("the rules changed, and their version did not (%+v, not %+v): raise RulesVersion in "+
				"ingest/join/vocabulary.go, say in docs/categories.md what changed, then -update", now, kept)
		}
		if kept != now && !*update {
			t.Errorf("testdata/rules.json is of version %d: -update", kept.Version)
		}
	} else if !*update {
		t.Fatal(err)
	}
	if !*update {
		return
	}
	out, err := json.Marshal(now)
	if err == nil {
		err = os.WriteFile("testdata/rules.json", append(out, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The table in docs/categories.md lists what each version of the rules changed. The current version is the last row.
func TestRulesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/categories.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "<!-- rules -->")
	table, _, ok := strings.Cut(table, "<!-- end -->")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if last := lines[len(lines)-1]; !ok || !strings.HasPrefix(last, fmt.Sprintf("| %d |", RulesVersion)) {
		t.Errorf("the last row of the versions in docs/categories.md is %q, and the rules are %d", last, RulesVersion)
	}
}

// The out-of-memory events in a snapshot's trace become failed requests of the imported run. The trace shows neither
// torch's memory limit nor how the run ended.
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
