package selected

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

// The documents that are stored with runs agree with the runs' tables. The stored documents are the list of runs,
// comparisons of every kind of value, and checks.
func TestKeptIsWhatTablesSay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", "headline"))); err != nil {
		t.Fatal(err)
	}
	runs, err := filepath.Glob(filepath.Join(dir, "*", schemas.IngestReportFile))
	if err != nil || len(runs) < 10 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for i := range runs {
		runs[i] = filepath.Dir(runs[i])
		os.Remove(filepath.Join(runs[i], schemas.SummaryFile))
	}
	documents := func() (out []string) {
		t.Helper()
		s := &Source{Store: dir, Named: true, Say: func(string) {}, Note: func(string) {},
			Warn: func(text string) { out = append(out, text) }}
		add := func(doc any, err error) {
			b, _ := json.MarshalIndent(doc, "", " ")
			out = append(out, string(b))
			if err != nil {
				out = append(out, err.Error())
			}
		}
		all, err := s.SelectEach(nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := all.List()
		add(report.RunsTable(list), err)
		for _, value := range []string{"peak", "time", "category:gradients", "phase:forward"} {
			m, err := compare.ParseMetric(value)
			if err != nil {
				t.Fatal(err)
			}
			for _, names := range [][]string{nil, {"vanilla", "ghost"}} {
				doc, err := s.Compare(names, compare.Options{Value: m}, "")
				add(doc, err)
				if err == nil { // the tables include the warnings
					add(report.CompareTables(doc), nil)
				}
			}
		}
		checked, err := s.Check(nil, "v", gate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		add(gate.BaselineOf(checked.Runs, "v"), nil)
		return out
	}
	want := documents()
	WriteSummaries(runs...)
	for _, run := range runs {
		if _, err := os.Stat(filepath.Join(run, schemas.SummaryFile)); err != nil {
			t.Fatal(err)
		}
		// these tables are no longer read
		for _, table := range []string{schemas.Allocations.File(), schemas.Steps.File()} {
			if err := os.WriteFile(filepath.Join(run, table), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, got := range documents() {
		if i >= len(want) || got != want[i] {
			t.Fatalf("document %d is\n%s\nand of the tables\n%s", i, got, want[min(i, len(want)-1)])
		}
	}
}
