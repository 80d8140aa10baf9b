package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/store"
)

// sampledRun makes a store with one run of a suite, with all files that a collector writes. sampledRun returns the
// paths of the store, the run and the suite.
func sampledRun(t *testing.T) (storeDir, dir, suite string) {
	t.Helper()
	storeDir = t.TempDir()
	dir = filepath.Join(storeDir, journalID(1))
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(journalStore(t), journalID(1)))); err != nil {
		t.Fatal(err)
	}
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	var samples []schemas.Sample
	var host []schemas.HostSample
	for i := range int64(200) {
		at := m.Start.Add(time.Duration(i) * 10 * time.Millisecond).UnixNano()
		samples = append(samples, schemas.Sample{RunID: m.RunID, TimeNS: at, UsedBytes: (500 + i) << 20,
			FreeBytes: (9000 - i) << 20, MemoryAPI: 2, PowerMW: new(100_000 + i)})
		host = append(host, schemas.HostSample{RunID: m.RunID, TimeNS: at, RSSBytes: i << 20, Processes: 1})
	}
	m.Source, m.Profile = schemas.Measured, nil
	m.Suite = &schemas.SuiteRef{ID: "20260102T030400Z-s-000000", Name: "s", Key: "k"}
	if err := schemas.Samples.Write(dir, samples); err != nil {
		t.Fatal(err)
	}
	if err := schemas.HostSamples.Write(dir, host); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, schemas.StderrFile), []byte("a line\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if m.Tables, err = schemas.TableDigests(dir, schemas.SampledTables()...); err != nil {
		t.Fatal(err)
	}
	if err := schemas.WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	must(t, "", "ingest", "--again", dir)
	s := store.Open(storeDir)
	if err := s.WriteSuite(&store.Suite{ID: m.Suite.ID, Name: "s", Created: m.Start, Experiments: []store.Experiment{
		{Key: "k", Name: m.Name, Params: m.Params, RunIDs: []string{m.RunID}}}}); err != nil {
		t.Fatal(err)
	}
	return storeDir, dir, s.SuiteFile(m.Suite.ID)
}

// If a bit is flipped in a file that dpsight wrote, or its end is lost, commands return an error or a warning, or
// print the same as before. No check passes with changed figures. If a run's journal is damaged, its tables stay as
// they are. If its tables are damaged, ingest makes them again from the journal.
func TestDamageIsNeverQuiet(t *testing.T) {
	flips, cuts := 36, 14
	if testkit.WithRest() {
		flips, cuts = 500, 100
	}
	storeDir, dir, suite := sampledRun(t)
	baseline := filepath.Join(t.TempDir(), "baseline.json")
	must(t, "", "check", dir, "--write-baseline", baseline)
	printed := [][]string{
		{"runs", "--store", storeDir, "--format", "json"}, {"analyze", "breakdown", dir, "--format", "json"},
		{"analyze", "time", dir, "--format", "json"}, {"analyze", "ladder", dir, "--format", "json"},
		{"check", "--store", storeDir, "--baseline", baseline, "--threshold", "peak=1.05", "--threshold", "device=1.05"},
	}
	if testkit.WithRest() { // also commands that read the other tables
		printed = append(printed, []string{"analyze", "breakdown", dir, "--by", "stack", "--format", "json"},
			[]string{"analyze", "breakdown", dir, "--by", "line", "--format", "json"},
			[]string{"analyze", "host", dir, "--format", "json"}, []string{"export", dir, "--format", "result-json"})
	}
	want, warned := make([]string, len(printed)), make([]string, len(printed))
	for i, args := range printed {
		r := must(t, "", args...)
		want[i], warned[i] = r.stdout, r.stderr
	}
	sealed := filepath.Join(dir, spool.Dir, spool.SealedName(0))
	manifest, report := filepath.Join(dir, schemas.ManifestFile), filepath.Join(dir, schemas.IngestReportFile)
	kinds := [][]string{{sealed}, {manifest}, {report}, nil, {filepath.Join(dir, schemas.Samples.File())},
		{filepath.Join(dir, schemas.HostSamples.File())}, {filepath.Join(dir, schemas.StderrFile)}, {baseline}, {suite}}
	var all []string
	err := filepath.WalkDir(storeDir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, baseline)
	for _, path := range all {
		switch of := slices.IndexFunc(kinds, func(k []string) bool { return slices.Contains(k, path) }); {
		case of >= 0:
		case filepath.Base(path) == schemas.SummaryFile: // without it the tables are read
			kinds = append(kinds, []string{path})
		case filepath.Ext(path) != ".parquet":
			t.Errorf("%s is damaged by nothing here", path)
		default: // by ingest, which makes it again
			kinds[3] = append(kinds[3], path)
		}
	}
	derived := append(slices.Clone(kinds[3]), report)
	whole := map[string][]byte{}
	for _, file := range all {
		if whole[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	rnd := rand.New(rand.NewPCG(23, 3))
	drawn := make([]int, len(kinds))
	noticed, without := map[string]int{}, map[string]int{}
	for i := range flips + cuts {
		kind := i % len(kinds)
		file := kinds[kind][drawn[kind]%len(kinds[kind])] // the files of a kind take turns
		drawn[kind]++
		name := filepath.Base(file)
		b := bytes.Clone(whole[file])
		what := fmt.Sprintf("damage %d, to %s", i, name)
		if i >= flips {
			b = b[:rnd.IntN(len(b))]
		} else {
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		said := file == sealed && dpsight(t, "", "ingest", "--again", dir).code != exitDone
		for k, args := range printed {
			r := dpsight(t, "", args...)
			told := strings.Contains(r.stderr, name) || strings.Contains(r.stderr, "suite ")
			switch same := r.stdout == want[k]; {
			case r.code != exitDone && r.stderr != "":
				said = true
			case same:
				said = said || r.stderr != warned[k]
			case args[0] != "check" && told:
				said = true
			default:
				t.Errorf("%s: %v says\n%s%s\nnot\n%s", what, args, r.stdout, r.stderr, want[k])
			}
		}
		if said {
			noticed[name]++
		} else {
			without[name]++
		}
		if said && slices.Contains(derived, file) {
			must(t, "", "ingest", "--again", dir)
			for k, args := range printed {
				if r := must(t, "", args...); r.stdout != want[k] {
					t.Errorf("%s: made again, %v says\n%s", what, args, r.stdout)
				}
			}
		}
		for path, b := range whole {
			now, err := os.ReadFile(path)
			if file == sealed && path != sealed && !bytes.Equal(now, b) && said {
				t.Errorf("%s: %s is another (%v)", what, filepath.Base(path), err)
			}
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d flips and %d cuts: noticed %v, without effect %v", flips, cuts, noticed, without)
	expected := []string{sealed, manifest, report, filepath.Join(dir, schemas.Samples.File()), baseline, suite}
	if testkit.WithRest() {
		expected = append(expected, slices.DeleteFunc(slices.Clone(kinds[3]), func(file string) bool {
			// No command reads the checkpoints, and none reads the allocator's lists of a recording with one window.
			return filepath.Base(file) == schemas.Checkpoints.File() || filepath.Base(file) == schemas.Segments.File()
		})...)
	}
	for _, file := range expected {
		if noticed[filepath.Base(file)] == 0 || without[filepath.Base(file)] > 0 && file != sealed {
			t.Errorf("%s: damage noticed %d times of %d", filepath.Base(file), noticed[filepath.Base(file)],
				noticed[filepath.Base(file)]+without[filepath.Base(file)])
		}
	}
}
