package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/schemas"
)

// In the figures of recordings, of single runs, and of a store with both measured and predicted runs, no text
// leaves the picture or overlaps another. The GPU's memory is drawn only if NVML sampled it.
func TestFiguresOfRecordings(t *testing.T) {
	if testing.Short() {
		t.Skip("it draws many pictures on one goroutine: slow under the race detector, which finds nothing there")
	}
	examples := filepath.Join("..", "..", "examples")
	headline, quick, journals := filepath.Join(examples, "headline"),
		ingesttest.Store(t, filepath.Join(examples, "quick")), journalStore(t)
	ghost, err := filepath.Glob(filepath.Join(headline, "*-ghost-*"))
	// the pattern above also matches ghost-bare: a run id goes on after the name
	ghost = slices.DeleteFunc(ghost, func(folder string) bool { return strings.Contains(folder, "-bare-") })
	if err != nil || len(ghost) != 1 {
		t.Fatalf("runs of ghost: %v, %v", ghost, err)
	}
	for _, c := range []struct {
		name  string
		runs  []string
		drawn bool
	}{
		{"headline", []string{headline}, true},
		{"quick", []string{quick}, true},
		{"one", ghost, true},
		{"mixed", []string{quick, journals}, true},
		{"predicted", []string{journals}, false},
		{"imported", []string{importedStore(t)}, false},
	} {
		var out, errs bytes.Buffer
		s := &streams{out: &out, err: &errs}
		sel, err := s.source("").Select(c.runs)
		if err != nil {
			t.Fatal(c.name, err)
		}
		m, err := sel.Model("")
		if err != nil {
			t.Fatal(c.name, err)
		}
		drawn := false
		for _, f := range m.Figures() {
			drawn = drawn || f.Name == "ladder"
			legible(t, c.name, f)
		}
		if drawn != c.drawn {
			t.Errorf("%s: ladder drawn: %t", c.name, drawn)
		}
		var last *explain.Input // the input of the previous run
		_, err = sel.Each(explain.Tables, true,
			func(in schemas.Tables) error {
				d := explain.NewInput(in)
				if last != nil {
					if doc, err := explain.Explain(*last, d); err == nil {
						legible(t, c.name+", "+doc.From+" to "+doc.To, report.ExplainFigure(doc))
					}
				}
				last = &d
				return nil
			})
		if err != nil {
			t.Fatal(c.name, err)
		}
	}
}

func legible(t *testing.T, name string, f figure.Figure) {
	t.Helper()
	bad, err := f.Misplaced()
	if err != nil {
		t.Fatal(name, err)
	}
	for _, b := range bad {
		t.Errorf("%s, %s: %s", name, f.Name, b)
	}
}

// The command writes both pictures where -o says, as PNG and as SVG.
func TestFilesOfFigures(t *testing.T) {
	dir := t.TempDir()
	headline, err := filepath.Abs(filepath.Join("..", "..", "examples", "headline"))
	if err != nil {
		t.Fatal(err)
	}
	must(t, dir, "analyze", "explain", "vanilla", "ghost", "--store", headline, "-o", "explained")
	must(t, dir, "report", "vanilla", "--store", headline, "-o", "reported")
	for _, name := range []string{"explained/explain_waterfall.png", "explained/explain_waterfall.svg",
		"reported/figures/ladder.png", "reported/figures/ladder.svg"} {
		if st, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*"+schemas.PartialSuffix)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A store given as an argument or with --store is reported as a whole. Of a store that only the environment names,
// report shows the newest run.
func TestReportOfAStore(t *testing.T) {
	store := t.TempDir()
	for _, run := range []string{atOnceRun, "20261121T205124Z-ghost-2e2852"} {
		if err := os.CopyFS(filepath.Join(store, run), os.DirFS(filepath.Join("../../examples/mlp", run))); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "", "ingest", store)
	t.Setenv("DPSIGHT_STORE", store)
	for _, test := range []struct {
		args []string
		rows int
	}{{[]string{"--store", store}, 2}, {[]string{store}, 2}, {nil, 1}, {[]string{"--store", store, "vanilla"}, 1}} {
		out := t.TempDir()
		must(t, "", append([]string{"report", "--quiet", "-o", out}, test.args...)...)
		table, err := os.ReadFile(filepath.Join(out, "results.csv"))
		if rows := strings.Count(string(table), "\n") - 1; err != nil || rows != test.rows {
			t.Errorf("report %v has %d rows, not %d: %v", test.args, rows, test.rows, err)
		}
	}
}

// Every command that gets a store as an argument or with --store uses the whole store. From a store that only the
// environment names, a command uses the newest suite or run.
func TestStoresAreNamedAlike(t *testing.T) {
	store := t.TempDir()
	for _, run := range []string{atOnceRun, "20261121T205124Z-ghost-2e2852"} {
		if err := os.CopyFS(filepath.Join(store, run), os.DirFS(filepath.Join("../../examples/mlp", run))); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "", "ingest", store)
	t.Setenv("DPSIGHT_STORE", store)
	for _, command := range [][]string{{"analyze", "breakdown"}, {"analyze", "phases"}, {"analyze", "overhead"},
		{"analyze", "findings"}, {"compare"}, {"check", "--baseline", store}} {
		whole := must(t, "", append(slices.Clone(command), store)...).stdout
		if got := must(t, "", append(slices.Clone(command), "--store", store)...).stdout; got != whole {
			t.Errorf("%v --store says\n%s\nand of an argument\n%s", command, got, whole)
		}
		if newest := dpsight(t, "", command...).stdout; newest == whole {
			t.Errorf("%v of the environment's store is of all runs:\n%s", command, newest)
		}
	}
}
