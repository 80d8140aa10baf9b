package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

func moduleTimes() timing.ModuleTimeDocument {
	bare, norm := 40.0, 50.0
	step, instrumented, residue := 100.0, 104.0, 1.5
	q, head := "blocks.*.attention.q", "head"
	id := identity.Identity{RunID: "r", Name: "ghost", Source: schemas.Measured, Status: schemas.StatusOK}
	rank := timing.RankModuleTime{BareSteps: 8, InstrumentedSteps: 6, StepMS: &step, InstrumentedStepMS: &instrumented,
		ResidueMS: &residue, OutsideMS: 8.5,
		Phases: []timing.ModuleTimePhase{{Phase: "forward", BareMS: &bare, InstrumentedMS: 42, OutsideMS: 8.5,
			Scale: 40.0 / 42}, {Phase: "backward.norm", BareMS: &norm, InstrumentedMS: 52, Scale: 50.0 / 52}},
		Rows: []timing.ModuleTimeRow{{Key: &q, Modules: 20, MS: 60, HookMS: 30,
			Phases: map[string]float64{"forward": 20, "backward.norm": 40}},
			{Key: &head, Modules: 1, MS: 20, Phases: map[string]float64{"forward": 10, "backward.norm": 10}},
			{Others: 3, Modules: 3, MS: 10, Phases: map[string]float64{"forward": 10}}}}
	predicted := timing.ModuleTimeRun{Identity: identity.Identity{RunID: "p", Name: "p", Source: schemas.Predicted},
		Ranks: []timing.RankModuleTime{}, Warnings: []string{"predicted runs have no times"}}
	return timing.NewModuleTimeDocument(timing.ModuleTimeBy{Dimension: grouping.DimensionModule, Fold: true, Top: 2},
		timing.ModuleTimeRun{Identity: id, Ranks: []timing.RankModuleTime{rank}, Warnings: []string{}}, predicted)
}

func TestModuleTimeTables(t *testing.T) {
	var b bytes.Buffer
	if err := table.Write(&b, "table", ModuleTimeTables(moduleTimes())...); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"GPU time of ghost by module (ms a step)",
		"blocks.*.attention.q ×20 60.0 60.0 20.0 40.0 30.0",
		"head 20.0 20.0 10.0 10.0 –",
		"3 others 10.0 10.0 10.0 – –",
		"in no module 8.500 8.5 8.500 – –",
		"residue 1.500 1.5 – – –",
		"step 100.0 100.0 40.0 50.0 –",
		"shares come from 6 instrumented steps of 104.0 ms; each phase is scaled to its median in 8 bare steps, of " +
			"100.0 ms",
		"note: predicted runs have no times",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := table.Write(&b, "csv", ModuleTimeRecords(moduleTimes())); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{",module,blocks.*.attention.q,20,backward.norm,40", ",module,3 others,3,forward,10",
		",outside,,,forward,8.5", ",residue,,,,1.5"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestStackWaterfall(t *testing.T) {
	keep, linear, same := "keep train.py", "linear torch/nn/functional.py < forward model.py", "main train.py"
	a, b, delta := int64(100<<20), int64(109<<20), int64(9<<20)
	doc := explain.Explanation{Differences: explain.Differences{PeakDeltaBytes: &delta,
		Stacks: []explain.StackPart{{Stack: &keep, FromBytes: 8 << 20, ToBytes: 16 << 20, DeltaBytes: 8 << 20},
			{Stack: &linear, FromBytes: 20 << 20, ToBytes: 22 << 20, DeltaBytes: 2 << 20},
			{FromBytes: 12 << 20, ToBytes: 11 << 20, DeltaBytes: -1 << 20}, {Stack: &same, FromBytes: 60 << 20,
				ToBytes: 60 << 20}}}}
	doc.Runs[0].Label, doc.Runs[0].PeakBytes, doc.Runs[1].Label, doc.Runs[1].PeakBytes = "a", &a, "b", &b
	for top, want := range map[int][]string{
		0: {"keep train.py 8.00 16.00 +8.00", "linear torch/nn/functional.py < forward model.py 20.00 22.00 +2.00",
			"– 12.00 11.00 −1.00", "stacks with the same bytes in both 60.00 60.00 0.00",
			"peak allocated 100.00 109.00 +9.00"},
		1: {"keep train.py 8.00 16.00 +8.00", "2 others 32.00 33.00 +1.00", "peak allocated 100.00 109.00 +9.00"},
	} {
		var out bytes.Buffer
		if err := table.Write(&out, "table", stackWaterfall(&doc, top)); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(strings.Fields(out.String()), " ")
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("top %d: no %q in\n%s", top, w, out.String())
			}
		}
	}
}
