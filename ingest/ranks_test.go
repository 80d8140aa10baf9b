package ingest

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// ranksOf writes two snapshots under the given names, and returns their paths. ranksOf compresses a snapshot if the
// name ends like a compressed file's.
func ranksOf(t *testing.T, dir string, names ...string) (paths []string) {
	t.Helper()
	os.MkdirAll(dir, 0o755)
	for i, from := range []string{"torch-2.11", "protocol_5"} {
		p, err := os.ReadFile(filepath.Join(snapshots, "eras", from+".pickle"))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, names[i])
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, ".gz") {
			g := gzip.NewWriter(f)
			g.Write(p)
			err = g.Close()
		} else {
			_, err = f.Write(p)
		}
		if err != nil || f.Close() != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func ingestAll(t *testing.T, store string, o Options, paths ...string) schemas.Ingested {
	t.Helper()
	doc, err := ImportAll(paths, store, o)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// The snapshots of several ranks become one run. The run's rows equal the rows that each file gives alone, except for
// the rank.
func TestImportRanks(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	paths := ranksOf(t, dir, "memory_rank_0.pickle", "memory_rank_3.pickle.gz")
	doc := ingestAll(t, store, Options{}, paths[1], paths[0])
	if len(doc.Inputs) != 2 || len(doc.Dirs) != 1 || doc.Inputs[0].Path != paths[0] || doc.Inputs[1].Path != paths[1] ||
		!slices.Equal(doc.Inputs[0].RunIDs, doc.Inputs[1].RunIDs) || doc.Inputs[1].State != schemas.IngestNew {
		t.Fatalf("%+v", doc)
	}
	run := doc.Dirs[0]
	m, err := schemas.ReadManifest(run)
	if err != nil || m.Name != "memory" || len(m.Import.Ranks) != 2 || m.Import.Ranks[1].Rank != 3 ||
		m.Import.Ranks[1].File != "memory_rank_3.pickle.gz" {
		t.Errorf("%+v, %v", m, err)
	}
	r, err := schemas.ReadIngestReport(run)
	if err != nil {
		t.Fatal(err)
	}
	alone := t.TempDir()
	var devices []schemas.DeviceVerdict
	var allocations []schemas.Allocation
	var owners []schemas.Owner
	var frames []schemas.StackFrame
	for i, rank := range []int32{0, 3} {
		one := ingestAll(t, alone, Options{}, paths[i]).Dirs[0]
		report, err := schemas.ReadIngestReport(one)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range report.Devices {
			d.Rank = rank
			devices = append(devices, d)
		}
		for _, a := range rows(t, schemas.Allocations, one) {
			a.RunID, a.Rank = m.RunID, rank
			allocations = append(allocations, a)
		}
		for _, o := range rows(t, schemas.Owners, one) {
			o.RunID, o.Rank = m.RunID, rank
			owners = append(owners, o)
		}
		for _, f := range rows(t, schemas.Stacks, one) {
			f.RunID, f.Rank = m.RunID, rank
			frames = append(frames, f)
		}
	}
	check := func(when string) {
		t.Helper()
		if !reflect.DeepEqual(r.Devices, devices) {
			t.Errorf("%s: %+v, want %+v", when, r.Devices, devices)
		}
		if len(allocations) == 0 || !slices.Equal(rows(t, schemas.Allocations, run), allocations) ||
			!slices.Equal(rows(t, schemas.Owners, run), owners) || !slices.Equal(rows(t, schemas.Stacks, run), frames) {
			t.Errorf("%s: the rows are not those of each file alone", when)
		}
	}
	check("at first")
	if !hasWarning(r, "rank 3, device 0: ") {
		t.Errorf("%q", r.Warnings)
	}
	for _, from := range [][]string{{run}, paths} {
		os.Remove(filepath.Join(run, schemas.Allocations.File()))
		again := ingestAll(t, store, Options{Again: true}, from...)
		if in := again.Inputs[0]; in.State != schemas.IngestNew || !in.Again || again.Dirs[0] != run {
			t.Errorf("again from %q: %+v", from, again)
		}
		if r, err = schemas.ReadIngestReport(run); err != nil {
			t.Fatal(err)
		}
		check("again from " + from[0])
	}
	if err := os.Remove(copyPath(run, copyName(3))); err != nil {
		t.Fatal(err)
	}
	if in := ingestAll(t, store, Options{Again: true}, run).Inputs[0]; in.State != schemas.IngestRefused ||
		!strings.Contains(*in.Reason, "imported from memory_rank_3.pickle.gz and keeps no copy") {
		t.Errorf("without a copy: %+v", in)
	}
}

// Import identifies a run of several ranks by the contents of its files and their ranks. The files' names do not
// matter.
func TestImportRanksIsKnownByContent(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	paths := ranksOf(t, dir, "rank0.pickle", "rank1.pickle")
	first := ingestAll(t, store, Options{}, dir)
	if len(first.Inputs) != 2 || len(first.Dirs) != 1 || !strings.Contains(first.Dirs[0], "-2-ranks-") {
		t.Fatalf("a folder: %+v", first)
	}
	other := ranksOf(t, filepath.Join(dir, "x"), "a.pickle.gz", "b.pickle")
	for _, c := range []struct {
		what  string
		paths []string
		o     Options
		runs  int
		known bool
	}{
		{"named", paths, Options{}, 1, true},
		{"in order", other, Options{Ranks: true}, 1, true},
		{"in another order", []string{other[1], other[0]}, Options{Ranks: true}, 1, false},
		{"by their names, in any order", []string{paths[1], paths[0]}, Options{Ranks: true}, 1, true},
		{"without --ranks", other, Options{}, 2, false},
		{"of two folders", []string{paths[0], ranksOf(t, filepath.Join(dir, "y"), "rank0.pickle", "rank1.pickle")[1]},
			Options{}, 2, true},
	} {
		doc := ingestAll(t, store, c.o, c.paths...)
		if len(doc.Inputs) != 2 || len(doc.Dirs) != c.runs {
			t.Errorf("%s: %+v", c.what, doc)
			continue
		}
		if state := doc.Inputs[0].State; (state == schemas.IngestKnown) != c.known ||
			c.known && c.runs == 1 && doc.Dirs[0] != first.Dirs[0] {
			t.Errorf("%s: %s, %s", c.what, state, doc.Dirs[0])
		}
	}
}

// If Import cannot read one file of a run of several ranks, it refuses the whole run, and no files stay in the store.
func TestImportRanksTakesAllOrNone(t *testing.T) {
	for _, bad := range []int{0, 1} {
		dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
		paths := ranksOf(t, dir, "rank0.pickle", "rank1.pickle")
		if err := os.WriteFile(paths[bad], []byte("\x80\x02}."), 0o644); err != nil {
			t.Fatal(err)
		}
		doc := ingestAll(t, store, Options{}, paths...)
		if len(doc.Refused()) != 2 || !strings.Contains(*doc.Inputs[bad].Reason, "not a memory snapshot") ||
			*doc.Inputs[1-bad].Reason != filepath.Base(paths[bad])+" of the same run was refused" {
			t.Errorf("%s, %s", *doc.Inputs[0].Reason, *doc.Inputs[1].Reason)
		}
		if _, err := os.Stat(store); !os.IsNotExist(err) {
			t.Errorf("the store is there: %v", err)
		}
	}
}

// A snapshot is the snapshot of a rank only if the file's name gives a rank.
func TestRankOfName(t *testing.T) {
	for name, want := range map[string]int32{"rank0.pickle": 0, "snapshot_rank_3.pickle.gz": 3, "RANK-12.pkl.zst": 12,
		"rank7_memory_snapshot.pickle": 7, "frank2.pickle": -1, "ranking.pickle": -1, "snapshot_3.pickle": -1,
		"step5.rank1.pickle": 1} {
		rank, _, ok := rankOfName(filepath.Join("a", name))
		if !ok {
			rank = -1
		}
		if rank != want {
			t.Errorf("%s: %d, want %d", name, rank, want)
		}
	}
}

// archiveOf packs files under the given names, in a zip archive or in a compressed tar archive.
func archiveOf(t *testing.T, path string, names []string, files []string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var add func(name string, p []byte) error
	var end func() error
	if strings.HasSuffix(path, ".zip") {
		z := zip.NewWriter(f)
		end = z.Close
		add = func(name string, p []byte) error {
			w, err := z.Create(name)
			if err == nil {
				_, err = w.Write(p)
			}
			return err
		}
	} else {
		g := gzip.NewWriter(f)
		w := tar.NewWriter(g)
		end = func() error { return errors.Join(w.Close(), g.Close()) }
		add = func(name string, p []byte) error {
			err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(p))})
			if err == nil {
				_, err = w.Write(p)
			}
			return err
		}
	}
	for i, name := range names {
		p, err := os.ReadFile(files[i])
		if err == nil {
			err = add(name, p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
}

// Snapshots of several ranks in one archive form the same run as separate files. Snapshots that differ in more than
// the rank are separate runs, and so are ranks in different folders.
func TestImportRanksOfArchive(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	files := ranksOf(t, dir, "rank0.pickle", "rank1.pickle.gz")
	ids := ingestAll(t, store, Options{}, files...).Inputs[0].RunIDs
	for _, test := range []struct {
		archive string
		names   []string
		ranks   bool
		runs    int // -1 stands for the run that the separate files gave
	}{
		{"a.zip", []string{"out/rank0.pickle", "out/rank1.pickle.gz"}, false, -1},
		{"rank7.tar.gz", []string{"rank0.pickle", "rank1.pickle.gz"}, false, -1},
		{"a.tar.gz", []string{"first.pickle", "second.pickle"}, true, -1},
		{"b.zip", []string{"first.pickle", "second.pickle"}, false, 2},
		{"c.zip", []string{"a/rank0.pickle", "b/rank1.pickle.gz"}, false, 2},
	} {
		path := filepath.Join(dir, test.archive)
		archiveOf(t, path, test.names, files)
		doc := ingestAll(t, store, Options{Ranks: test.ranks}, path)
		if len(doc.Inputs) != 2 || !strings.HasPrefix(doc.Inputs[0].Path, path+":") {
			t.Errorf("%s: %+v", test.archive, doc)
		}
		same := len(doc.Dirs) == 1 && doc.Inputs[0].State == schemas.IngestKnown &&
			slices.Equal(doc.Inputs[0].RunIDs, ids) && slices.Equal(doc.Inputs[1].RunIDs, ids)
		if (test.runs < 0) != same || !same && len(doc.Dirs) != test.runs {
			t.Errorf("%s: %+v, not the run %v", test.archive, doc, ids)
		}
	}

	// Import takes all entries of an archive or none, as with separate files. A tool's file of figures is no rank.
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("\x80\x04no snapshot"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		second string
		name   string
		ranks  bool
	}{{junk, "rank1.pickle", false}, {"figures/testdata/vanilla_result.json", "result.json", true}} {
		path, empty := filepath.Join(dir, "bad.zip"), filepath.Join(t.TempDir(), "store")
		archiveOf(t, path, []string{"rank0.pickle", test.name}, []string{files[0], test.second})
		doc := ingestAll(t, empty, Options{Ranks: test.ranks}, path)
		if len(doc.Dirs) != 0 || len(doc.Inputs) != 2 || doc.Inputs[0].State != schemas.IngestRefused ||
			doc.Inputs[1].State != schemas.IngestRefused {
			t.Errorf("%+v", doc)
		}
		if _, err := os.Stat(empty); !os.IsNotExist(err) {
			t.Errorf("the store is there: %v", err)
		}
	}
}
