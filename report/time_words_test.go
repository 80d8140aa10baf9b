package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/timing"
)

// The run's warnings have every remark on times, in alphabetical order.
func TestModuleTimeWords(t *testing.T) {
	was := timing.ModuleTimeDocument{Runs: []timing.ModuleTimeRun{{Warnings: []string{}, Remarks: []timing.Remark{
		{Kind: timing.RemarkOnlyInstrumented}, {Kind: timing.RemarkCaptured, Steps: []int64{3}},
		{Kind: timing.RemarkCaptured, Steps: []int64{4, 5}}, {Kind: timing.RemarkNoInstrumented},
		{Kind: timing.RemarkUnscaled}, {Kind: timing.RemarkIdling, StepMS: 110, InstrumentedMS: 130},
		{Kind: timing.RemarkNotIngested}, {Kind: timing.RemarkPredicted}, {Kind: timing.RemarkBareRun},
		{Kind: timing.RemarkModulesNotRecorded}}}}}
	const captured = " no time: forward and backward took no GPU time, as when a CUDA graph captures them; call " +
		"dpsight.step() after each replay of a graph to time it"
	want := []string{"2 steps (4 to 5) have" + captured,
		"a bare run has no instrumented steps: its time is known only by phase",
		"instrumented steps take 18 % longer than bare ones (130.0 ms and 110.0 ms): their times include idle GPU " +
			"time, and modules with many short calls get too large a share",
		"no instrumented step after warm-up: module times are unknown", notIngested,
		"predicted runs have no times: nothing was computed", "step 3 has" + captured,
		"the recording has no module times",
		"no bare step has phases: times come from instrumented steps and are not scaled",
		"times come from instrumented steps: the run has no bare steps"}
	slices.Sort(want)
	if got := tellModuleTimes(was).Runs[0].Warnings; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if len(was.Runs[0].Warnings) != 0 {
		t.Error("the document that was given is another now")
	}
	for _, made := range []any{ModuleTimeTables(was)[0].Document, ModuleTimeRecords(was).Document} {
		if doc := made.(timing.ModuleTimeDocument); !slices.Equal(doc.Runs[0].Warnings, want) {
			t.Errorf("%q", doc.Runs[0].Warnings)
		}
	}
}

func TestNoEnergyWords(t *testing.T) {
	for why, want := range map[timing.NoEnergy]string{timing.EnergyNotRead: "gave no reading",
		timing.EnergyTooShort: "last less than 5 s", timing.EnergyNotCovered: "do not cover the timed steps"} {
		if got := noEnergyWords(why); !strings.HasPrefix(got, "no energy: ") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
