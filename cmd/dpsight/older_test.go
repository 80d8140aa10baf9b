package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// olderPeak is the peak that an older dpsight printed for the run in testdata/older. That dpsight made the run and
// its baseline: documents, tables and the journal have no digests.
const olderPeak = "65.01"

// For a run and a baseline that an older dpsight wrote, dpsight prints the same peak as that version did. dpsight also
// says that the older version stored no digests.
func TestStoresOfOlderCode(t *testing.T) {
	const undigested, baselineToo = "an older dpsight recorded no digests", "an older dpsight wrote the baseline"
	older := filepath.Join(t.TempDir(), "older")
	if err := os.CopyFS(older, os.DirFS(filepath.Join("testdata", "older"))); err != nil {
		t.Fatal(err)
	}
	runs, baseline := filepath.Join(older, "runs"), filepath.Join(older, "baseline.json")
	ids, err := filepath.Glob(filepath.Join(runs, "*"))
	if err != nil || len(ids) != 1 {
		t.Fatalf("%q, %v", ids, err)
	}
	says := func(args []string, want ...string) {
		t.Helper()
		r := dpsight(t, "", args...)
		for _, w := range append(want, olderPeak) {
			if r.code != exitDone || !strings.Contains(r.stdout+r.stderr, w) {
				t.Errorf("%q: exit code %d, and not %q\n%s%s", args, r.code, w, r.stdout, r.stderr)
			}
		}
	}
	says([]string{"runs", "--store", runs})
	says([]string{"analyze", "breakdown", runs}, undigested)
	says([]string{"check", runs, "--baseline", baseline}, undigested, baselineToo)
	says([]string{"check", runs, "--baseline", ids[0]}, undigested)
	says([]string{"report", runs, "-o", filepath.Join(t.TempDir(), "out")}, undigested)

	must(t, "", "ingest", "--again", runs)
	says([]string{"analyze", "breakdown", runs}, "conservation: exact")
	says([]string{"check", runs, "--baseline", baseline}, baselineToo)
}

// dpsight reads every baseline and every store of recordings in examples.
func TestExamplesAreRead(t *testing.T) {
	examples := filepath.Join("..", "..", "examples")
	baselines, stores := 0, map[string]int{}
	err := filepath.WalkDir(examples, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == schemas.ManifestFile:
			stores[filepath.Dir(filepath.Dir(path))]++
		case filepath.Ext(path) == ".json" && schemas.IsBaseline(path):
			baselines++
			if b, err := schemas.ReadBaseline(path); err != nil || len(b.Experiments) == 0 {
				t.Errorf("%s: %v", path, err)
			}
		}
		return nil
	})
	if err != nil || baselines < 20 || len(stores) < 15 {
		t.Fatalf("%d baselines, %d stores, %v", baselines, len(stores), err)
	}
	for store, n := range stores {
		r := dpsight(t, "", "runs", "--store", store, "--format", "csv")
		if lines := strings.Count(r.stdout, "\n") - 1; r.code != exitDone || lines < n {
			t.Errorf("%s: exit code %d, %d lines of %d runs\n%s", store, r.code, lines, n, r.stderr)
		}
	}
}
