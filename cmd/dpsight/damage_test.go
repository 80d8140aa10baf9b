package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// A flipped bit or a lost tail in a journal, a table or a document is refused, or changes nothing of what is printed;
// tables of which the journal is damaged stay as they are, and what is damaged of the tables is made again.
func TestDamageIsNeverQuiet(t *testing.T) {
	flips, cuts := 60, 12
	if testkit.WithRest() {
		flips, cuts = 500, 100
	}
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(journalStore(t), journalID(1)))); err != nil {
		t.Fatal(err)
	}
	baseline := filepath.Join(t.TempDir(), "baseline.json")
	must(t, "", "check", dir, "--write-baseline", baseline)
	printed := [][]string{
		{"runs", dir, "--format", "json"}, {"analyze", "breakdown", dir, "--format", "json"},
		{"analyze", "time", dir, "--format", "json"}, {"check", dir, "--baseline", baseline},
	}
	want := make([]string, len(printed))
	for i, args := range printed {
		want[i] = must(t, "", args...).stdout
	}
	journal := filepath.Join(dir, spool.Dir, spool.SealedName(0))
	manifest, report := filepath.Join(dir, schemas.ManifestFile), filepath.Join(dir, schemas.IngestReportFile)
	files := []string{journal, manifest, journal, report} // by turns with a table
	tables, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
	if err != nil || len(tables) < 5 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	whole := map[string][]byte{}
	for _, file := range slices.Concat(files, tables) {
		if whole[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	rnd := rand.New(rand.NewPCG(23, 3))
	refused, repaired, without := 0, 0, 0
	for i := range flips + cuts {
		file := files[i/2%len(files)]
		if i%2 == 1 {
			file = tables[rnd.IntN(len(tables))]
		}
		b := bytes.Clone(whole[file])
		if i >= flips {
			b = b[:rnd.IntN(len(b))]
		} else {
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		said := file == journal && dpsight(t, "", "ingest", "--again", dir).code != exitDone
		for k, args := range printed {
			switch r := dpsight(t, "", args...); {
			case r.code != exitDone && r.stderr != "":
				said = true
			case r.stdout != want[k]:
				t.Errorf("damage %d, to %s: %v says\n%s\nnot\n%s", i, filepath.Base(file), args, r.stdout, want[k])
			}
		}
		if said {
			refused++
		} else {
			without++
		}
		if file != journal && said && file != manifest {
			must(t, "", "ingest", "--again", dir)
			for k, args := range printed {
				if r := must(t, "", args...); r.stdout != want[k] {
					t.Errorf("damage %d, to %s: made again, %v says\n%s", i, filepath.Base(file), args, r.stdout)
				}
			}
			repaired++
		}
		for name, b := range whole {
			if now, err := os.ReadFile(name); file == journal && name != journal && !bytes.Equal(now, b) && said {
				t.Errorf("damage %d, to the journal: %s is another (%v)", i, filepath.Base(name), err)
			}
			if err := os.WriteFile(name, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d flips and %d cuts: %d refused, of which %d were made again from the journal; %d without effect",
		flips, cuts, refused, repaired, without)
	if refused == 0 {
		t.Error("nothing was refused")
	}
}
