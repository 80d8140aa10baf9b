package report_test

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

func compared(t *testing.T, o compare.Options, value string, runs ...madeUp) compare.Document {
	t.Helper()
	var err error
	if o.Value, err = compare.ParseMetric(value); err != nil {
		t.Fatal(err)
	}
	doc, err := compare.Compare(summaries(runs...), o)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// grid returns runs of each method with each of the given batch sizes.
func grid(batches ...int) []madeUp {
	var runs []madeUp
	for _, b := range batches {
		for _, m := range headline() {
			m.id, m.params["batch_size"] = fmt.Sprintf("%s-%d", m.id, b), float64(b)
			m.blocks[0].mib += float64(b)
			runs = append(runs, m)
		}
	}
	return runs
}

func TestPivotTables(t *testing.T) {
	runs := grid(8, 16)
	runs[5].status, runs[5].reason = schemas.StatusOOM, "CUDA out of memory"
	again := runs[2] // another run of ghost with batch 8, whose peak is 2 MiB higher
	again.id, again.blocks = "again", append([]block{{2, one(schemas.Buffers), false}}, again.blocks...)
	doc := compared(t, compare.Options{}, "peak", append(runs, again)...)
	text := printed(t, "table", report.CompareTables(doc))
	lines := strings.Split(text, "\n")
	if lines[0] != "peak allocated (MiB), beside method=vanilla" || !strings.HasPrefix(lines[1], "method ") ||
		!strings.Contains(lines[1], "batch_size = 8 ") {
		t.Errorf("%s", text)
	}
	for _, want := range []string{" n=2)", " oom ", "note: a cell is the median of up to 2 runs, of two in the " +
		"middle the lower one: bytes that a run had; where", "note: runs that did not end well count in no cell: 1\n"} {
		if !strings.Contains(strings.ReplaceAll(text, " –", ""), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	records, err := csv.NewReader(strings.NewReader(printed(t, "csv", report.CompareTables(doc)))).ReadAll()
	if err != nil || len(records) != 4 || strings.Join(records[0], " ") != "method 8_value 8_delta 8_ratio 8_low "+
		"8_high 8_n 16_value 16_delta 16_ratio 16_low 16_high 16_n" {
		t.Fatalf("%q, %v", records, err)
	}
	if ghost := records[3]; ghost[0] != "ghost" || ghost[6] != "2" || ghost[7] != "" || ghost[12] != "0" ||
		ghost[4] >= ghost[5] {
		t.Errorf("%q", ghost)
	}
	// A wide pivot is one CSV file. In Markdown it is split into several tables, and no column is lost.
	tables := report.CompareTables(compared(t, compare.Options{}, "time", grid(1, 2, 4, 8, 16, 32, 64)...))
	if records, err = csv.NewReader(strings.NewReader(printed(t, "csv", tables))).ReadAll(); err != nil ||
		len(records) != 4 || len(records[0]) != 1+7*6 {
		t.Errorf("a wide pivot is one CSV file: %d records, %v", len(records), err)
	}
	wide := printed(t, "markdown", tables)
	for _, b := range []int{1, 2, 4, 8, 16, 32, 64} {
		if n := strings.Count(wide, fmt.Sprintf("| batch\\_size = %d ", b)); n != 1 {
			t.Errorf("batch %d: %d columns in\n%s", b, n, wide)
		}
	}
}

// A note on badges counts runs and not cells. If a cell has a measured and a predicted run, only one run is predicted,
// so the note does not say that all are.
func TestBadgesOfAComparison(t *testing.T) {
	runs := grid(8)
	again := runs[2]
	again.id, again.source = "again", schemas.Predicted
	script := methodRun("script", "vanilla")
	script.name, script.params, script.source = "train", nil, schemas.Imported
	notes := func(runs ...madeUp) string {
		return printed(t, "table", report.CompareTables(compared(t, compare.Options{Rows: []string{"batch_size"},
			Cols: []string{}}, "peak", runs...)))
	}
	text := notes(append(runs, again, script)...)
	for _, want := range []string{"note: 1 of 5 runs is predicted (phantom h200, indicative): 8 (1 of 4)\n",
		"note: 1 of 5 runs is imported: train\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "all runs are") {
		t.Errorf("not all are:\n%s", text)
	}
	for i := range runs {
		runs[i].source = schemas.Predicted
	}
	runs[1].bare = true
	runs[1].name = "bare"
	if text := notes(runs...); !strings.Contains(text, "note: all runs are predicted (phantom h200, indicative)\n") ||
		!strings.Contains(text, "note: 1 of 3 runs is bare: 8 (1 of 3)\n") {
		t.Errorf("all are predicted, and one is bare:\n%s", text)
	}
	runs[1].bare = false
	if text := notes(runs...); !strings.Contains(text, "note: all runs are predicted (phantom h200, indicative)\n") ||
		strings.Contains(text, " of 3 runs are") {
		t.Errorf("all are predicted:\n%s", text)
	}
}

func TestTwoRunsAsTable(t *testing.T) {
	runs := headline()
	text := printed(t, "table", report.CompareTables(compared(t, compare.Options{}, "peak", runs[0], runs[2])))
	for _, want := range []string{"ghost beside vanilla\n", "\nclip_temporaries at the peak (MiB)", " +6,144.00 ",
		"\nstep time (ms)", "note: left out categories and phases that do not differ\n",
		"the run keeps .grad between steps"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	// A decrease has as many digits as an increase. In the test's table, the differences of tokens a second are in the
	// hundreds.
	_, tokens, _ := strings.Cut(text, "\ntokens a second ")
	if f := strings.Fields(tokens); len(f) < 3 || len(f[2]) != len("−397.55") || !strings.HasPrefix(f[2], "−") {
		t.Errorf("the difference of tokens: %q", f[:min(len(f), 4)])
	}
	if strings.Contains(text, "\nparameters at the peak") {
		t.Errorf("what does not differ is listed:\n%s", text)
	}
	for i := range runs {
		runs[i].source = schemas.Predicted
	}
	text = printed(t, "table", report.CompareTables(compared(t, compare.Options{}, "peak", runs...)))
	if strings.Count(text, "all runs are predicted (phantom h200, indicative)") != 1 ||
		strings.Count(text, "predicted") != 2 {
		t.Errorf("that all are predicted is said more than once, or not at all:\n%s", text)
	}
}
