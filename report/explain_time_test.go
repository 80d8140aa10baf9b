package report_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// timedPart is the time that a module takes in a phase of a bare step. If module is empty, the time is outside of all
// modules.
type timedPart struct {
	phase, module string
	ms            float64
}

var (
	plainParts = []timedPart{{"forward", "blocks.0.up", 300}, {"forward", "blocks.1.up", 310}, {"forward", "head", 200},
		{"backward", "blocks.0.up", 600}, {"backward", "blocks.1.up", 600},
		{"backward", "head", 400}, {"optimizer", "", 30}}
	ghostParts = []timedPart{{"forward", "blocks.0.up", 300}, {"forward", "blocks.1.up", 310}, {"forward", "head", 200},
		{"backward.norm", "blocks.0.up", 1100}, {"backward.norm", "blocks.1.up", 1100},
		{"backward.norm", "head", 11000}, {"backward.grad", "blocks.0.up", 600}, {"backward.grad", "blocks.1.up", 600},
		{"backward.grad", "head", 400}, {"optimizer", "", 33}, {"noise", "", 12}}
)

// timedRun returns a run with an instrumented step and a bare step. In the bare step all parts take less time.
func timedRun(name string, parts ...timedPart) explain.Input {
	in := schemas.Tables{Manifest: &schemas.Manifest{RunID: name, Name: name, Status: schemas.StatusOK,
		Source: schemas.Measured}, Report: &schemas.IngestReport{}}
	ids := map[string]int64{}
	for n, scale := range []float64{1.25e6, 1e6} {
		s := schemas.Step{Step: int64(n), Instrumented: n == 0}
		phases := map[string]int64{}
		for _, p := range parts {
			if ids[p.module] == 0 && p.module != "" {
				ids[p.module] = int64(len(ids)) + 1
				in.Modules = append(in.Modules, schemas.Module{ID: ids[p.module], Path: p.module, Class: "Linear"})
			}
			ns := int64(p.ms * scale)
			phases[p.phase] += ns
			s.GPUNS += ns
			if s.Instrumented {
				in.ModuleTimes = append(in.ModuleTimes, schemas.ModuleTime{Step: s.Step, Phase: p.phase,
					Module: ids[p.module], GPUNS: ns})
			}
		}
		for phase, ns := range phases {
			in.Phases = append(in.Phases, schemas.Phase{Step: s.Step, Phase: phase, GPUNS: new(ns), EndNS: ns})
		}
		s.GPUNS += 2e6 // this time is in no phase
		in.Steps = append(in.Steps, s)
	}
	slices.SortFunc(in.Phases, func(a, b schemas.Phase) int { return strings.Compare(a.Phase, b.Phase) })
	in.Modules = append(in.Modules, schemas.Module{ID: 1000, Path: "blocks.0", Class: "Block"}, schemas.Module{ID: 1001,
		Path: "blocks.1", Class: "Block"})
	return explain.NewInput(in)
}

// For any number of shown modules, the times of all rows sum to the difference of the steps. The rows include the time
// outside of all modules and the residue. The phases under a module sum to the module's time.
func TestExplainModuleTimeTables(t *testing.T) {
	for name, doc := range explanations(t) {
		for _, top := range []int{0, 1, 2, 8} {
			tables := report.ExplainTables(doc, top)
			last := tables[len(tables)-1]
			if timed := last.Columns[1].Key == "module" &&
				last.Columns[3].Key == "phase"; timed != strings.HasPrefix(name, "explain-timed") {
				t.Fatalf("%s: a table of times by module: %t", name, timed)
			} else if !timed {
				continue
			}
			var sum, phases, own float64
			rows, under := 0, false
			closed := func() {
				if under && math.Abs(phases-own) > 1e-6 {
					t.Errorf("%s: top %d: phases sum to %g of %g", name, top, phases, own)
				}
				under, phases = false, 0
			}
			for _, row := range last.Rows {
				delta := row[6].Value.(float64)
				switch kind := row[0].Value; kind {
				case "phase", "outside phase":
					under = true
					phases += delta
				case "total":
					closed()
					if math.Abs(sum-delta) > 1e-6 || delta != *doc.StepDeltaMS {
						t.Errorf("%s: top %d: modules sum to %g of %g", name, top, sum, delta)
					}
				default:
					if row[1].Text == "1 others" {
						t.Errorf("%s: top %d: one row stands for one module", name, top)
					}
					closed()
					sum, own = sum+delta, delta
					if kind == "module" {
						rows++
					}
				}
			}
			if top > 0 && rows > top+1 || top == 0 && rows != len(doc.ModuleTimes) {
				t.Errorf("%s: top %d: %d modules", name, top, rows)
			}
		}
	}
}

func TestExplainModuleTimeText(t *testing.T) {
	doc := explanations(t)["explain-timed"]
	for _, format := range []string{"table", "markdown", "latex"} {
		got := strings.Join(strings.Fields(printed(t, format, report.ExplainTables(doc, 8))), " ")
		for _, want := range []string{"In which modules the step of ghost differs from that of plain (ms a step)",
			"11,600.0", "in no module", "shares come from 1 instrumented steps",
			"that ghost's step takes longer than plain's, 11,000.0 ms (83", "lie in the backward of head"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", format, want, got)
			}
		}
	}
	got := printed(t, "csv", report.ExplainTables(doc, 0))
	for _, want := range []string{"row,module,modules,phase,from_ms,to_ms,delta_ms,percent\n",
		"\nmodule,head,1,,600,11600,11000,", "\nphase,head,,backward.norm,,11000,11000,",
		"\noutside phase,in no module,,noise,,12,12,", "\nresidue,residue,,,,,"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// The golden files hold the table and the picture as they are printed. Look at them when they change.
func TestExplainModuleTimeGolden(t *testing.T) {
	doc := explanations(t)["explain-timed"]
	for _, format := range []string{"table", "markdown", "latex", "csv"} {
		golden(t, "explain/"+format+".txt", []byte(printed(t, format, report.ExplainTables(doc, 8))))
	}
	goldenGeometry(t, "explain-timed", report.ExplainFigure(doc))
}

// If the ranks of a run take different times, the table shows the slowest rank, and a note says so.
func TestExplainModuleTimeOfRanks(t *testing.T) {
	doc := explanations(t)["explain-timed"]
	doc.Runs[1].ModuleTiming = &explain.ModuleTiming{Rank: 3, Ranks: 8}
	notes := strings.Join(lastOf(report.ExplainTables(doc, 8)).Notes, "\n")
	if !strings.Contains(notes, "ghost: modules of rank 3, the slowest of 8") ||
		strings.Contains(notes, "ghost: shares come from") || !strings.Contains(notes, "plain: shares come from") {
		t.Error(notes)
	}
}

func lastOf(tables []table.Table) table.Table { return tables[len(tables)-1] }
