package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

// dissected returns a run whose k-th module holds bytes[k] of gradients. A step takes 4 ms for each module.
func dissected(name string, bytes ...int64) explain.Input {
	in := schemas.Tables{Manifest: &schemas.Manifest{RunID: name, Name: name, Status: schemas.StatusOK,
		Source: schemas.Measured}, Report: &schemas.IngestReport{}}
	var seq, sum int64
	for k, n := range bytes {
		in.Modules = append(in.Modules, schemas.Module{ID: int64(k + 1), Path: fmt.Sprintf("part%c", 'a'+k),
			Class: "Linear"})
		if n == 0 {
			continue
		}
		seq++
		sum += n
		in.Allocations = append(in.Allocations, schemas.Allocation{AllocID: seq, RequestedBytes: n - 1, BlockBytes: n,
			AllocSeq: seq,
			Phase:    []string{schemas.PhaseForward, schemas.PhaseBackward}[k%2]})
		in.Owners = append(in.Owners, schemas.Owner{AllocID: seq, Category: schemas.Gradients, BeginSeq: seq,
			Evidence: schemas.Tagged, Module: int64(k + 1)})
	}
	in.Report.Devices = []schemas.DeviceVerdict{{Events: seq, Verdict: schemas.Exact, PeakSeq: seq,
		PeakAllocatedBytes: sum, InstrumentedPeakSeq: &seq}}
	ns := int64(len(bytes)) * 4e6
	in.Steps = []schemas.Step{{WallNS: ns, GPUNS: ns}}
	in.Phases = []schemas.Phase{{Phase: schemas.PhaseForward, EndNS: ns, GPUNS: new(ns), EndSeq: seq}}
	return explain.NewInput(in)
}

// For any number of shown modules, the modules of a category sum to the category, and the categories sum to the
// difference of the peaks.
func TestExplainTables(t *testing.T) {
	from, to := dissected("before", 9<<20, 0, 5<<20, 1<<20), dissected("after", 1<<20, 7<<20, 5<<20, 3<<20, 100<<20,
		1000, 2<<20)
	doc, err := explain.Explain(from, to)
	if err != nil {
		t.Fatal(err)
	}
	// A module with the same bytes in both runs has no row. Slack of a few bytes has none either.
	for top, want := range map[int]int{0: 6, 1: 2, 2: 3, 4: 5, 5: 6, 8: 6} {
		tables := report.ExplainTables(doc, top)
		if len(tables) != 3 {
			t.Fatalf("%d tables", len(tables))
		}
		var births int64
		for _, row := range tables[1].Rows {
			if delta := row[4].Value.(int64); row[0].Value != "total" {
				births += delta
			} else if births != delta || delta != *doc.PeakDeltaBytes || len(tables[1].Rows) != 3 {
				t.Errorf("phases of birth sum to %d of %d in %d rows", births, delta, len(tables[1].Rows))
			}
		}
		var categories, modules, own, total int64
		rows := 0
		for _, row := range tables[0].Rows {
			delta := row[6].Value.(int64)
			switch row[0].Value {
			case "category":
				if modules != own && modules != 0 {
					t.Errorf("top %d: modules sum to %d of %d", top, modules, own)
				}
				categories, modules, own = categories+delta, 0, delta
			case "module", "others":
				modules += delta
				if row[1].Value == schemas.Gradients {
					rows++
				}
			case "total":
				total = delta
			}
		}
		if categories != total || total != *doc.PeakDeltaBytes || rows != want {
			t.Errorf("top %d: categories sum to %d of %d, %d rows of modules, want %d", top, categories, total, rows,
				want)
		}
	}
	for _, format := range []string{"table", "markdown", "latex"} {
		text := printed(t, format, report.ExplainTables(doc, 8))
		for _, want := range []string{"The peak of after is 118.00 MiB", "residue of medians", "partc", "+12.0"} {
			if has := strings.Contains(text, want); has == (want == "partc") {
				t.Errorf("%s: %q: %t in\n%s", format, want, has, text)
			}
		}
	}
}
