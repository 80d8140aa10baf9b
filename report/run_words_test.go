package report

import (
	"errors"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// Each remark on a run is one sentence. Every document that has the remark has this sentence.
func TestRunWords(t *testing.T) {
	const captured = " no time: forward and backward took no GPU time, as when a CUDA graph captures them; call " +
		"dpsight.step() after each replay of a graph to time it"
	const recompute = "bare steps count recompute as backward"
	const shared = "2 processes shared one device: reserved is "
	const alone = "; peak and breakdown are of the process with the highest peak"
	repeats := &timing.Interval{N: 3, Low: 10, Median: 20, High: 30}
	told := []struct {
		remark analyze.Remark
		want   string
	}{
		{analyze.Remark{Kind: analyze.RemarkNotIngested}, "not ingested yet"},
		{analyze.Remark{Kind: analyze.RemarkNoBlocks, Err: errors.New("it is a bare run")},
			"not broken down: it is a bare run"},
		{analyze.Remark{Kind: analyze.RemarkNoPeak, Err: errors.New("cuda:0 has no peak")}, "cuda:0 has no peak"},
		{analyze.Remark{Kind: analyze.RemarkOfTimes, Times: &timing.Remark{Kind: timing.RemarkOnlyInstrumented}},
			"times come from instrumented steps: the run has no bare steps"},
		{analyze.Remark{Kind: analyze.RemarkOfTimes, Times: &timing.Remark{Kind: timing.RemarkCaptured,
			Steps: []int64{3}}}, "step 3 has" + captured},
		{analyze.Remark{Kind: analyze.RemarkOfTimes, Times: &timing.Remark{Kind: timing.RemarkCaptured,
			Steps: []int64{4, 5}}}, "2 steps (4 to 5) have" + captured},
		{analyze.Remark{Kind: analyze.RemarkEndedEarly, Status: schemas.StatusOOM},
			"the run ended early (oom): its peak and times are of what it did until then"},
		{analyze.Remark{Kind: analyze.RemarkEndedEarly, Status: schemas.StatusPartial},
			"the recording ended early (partial): its peak and times are of what the run did until then"},
		{analyze.Remark{Kind: analyze.RemarkHookFailed, Rank: new(int32(1)), Hook: &schemas.FailedHook{
			Hook: "the forward hook", Error: "ValueError: odd", Step: 3}}, "rank 1: the forward hook failed at step 3 " +
			"(ValueError: odd): later forward passes and their modules are unknown"},
		{analyze.Remark{Kind: analyze.RemarkHookFailed, Hook: &schemas.FailedHook{Hook: "taggers.saved.Saved._tag",
			Error: "ValueError: odd", Step: -1}}, "taggers.saved.Saved._tag failed before the first step (ValueError: " +
			"odd): the categories of some memory are unknown"},
		{analyze.Remark{Kind: analyze.RemarkRecompute}, recompute},
		{analyze.Remark{Kind: analyze.RemarkRecompute, MS: new(20.18), Rank: new(int32(1))}, "rank 1: " + recompute +
			": about 20.2 ms a step, by its share of instrumented steps (dpsight time)"},
		{analyze.Remark{Kind: analyze.RemarkOneOfMany, N: 1, StepMS: repeats},
			"one of 3 repeats in the store: their medians range from 10.0 ms to 30.0 ms, median 20.0 ms"},
		{analyze.Remark{Kind: analyze.RemarkOverRepeats, StepMS: repeats, MS: new(25.0), Name: "r"}, "times are " +
			"medians over 3 repeats in the store (10.0 ms to 30.0 ms a step); run r itself takes 25.0 ms"},
		{analyze.Remark{Kind: analyze.RemarkLatePeak, Bytes: 3 << 20, OtherBytes: 2 << 20},
			"the peak of 3.00 MiB came outside the recorded steps: only torch's counter has it, so the breakdown " +
				"is of the highest recorded moment, 2.00 MiB"},
		{analyze.Remark{Kind: analyze.RemarkMissedPeak, Bytes: 3 << 20, OtherBytes: 2 << 20},
			"the peak of 3.00 MiB is above all recorded events (some are missing): only torch's counter has it, so " +
				"the breakdown is of the highest recorded moment, 2.00 MiB"},
		{analyze.Remark{Kind: analyze.RemarkOfFullest, N: 2}, "memory is of the device with the highest peak, 1 of " +
			"2"},
		{analyze.Remark{Kind: analyze.RemarkInTurn, N: 2},
			"memory is of the process with the highest peak; 2 processes used the device in turn"},
		{analyze.Remark{Kind: analyze.RemarkTogether, N: 2}, shared + "their highest sum" + alone},
		{analyze.Remark{Kind: analyze.RemarkSumReserved, N: 2}, shared + "the sum of their maxima" + alone},
		{analyze.Remark{Kind: analyze.RemarkBatchesVary},
			"batch sizes vary: Δ compares the time per sample, for a bare step of median size"},
		{analyze.Remark{Kind: analyze.RemarkUntimedSteps, N: 1}, "1 step left out of the medians: forward and " +
			"backward took no GPU time, as when a CUDA graph captures them"},
		{analyze.Remark{Kind: analyze.RemarkUntimedSteps, N: 3, Rank: new(int32(0))}, "rank 0: 3 steps left out of " +
			"the medians: forward and backward took no GPU time, as when a CUDA graph captures them"},
		{analyze.Remark{Kind: analyze.RemarkFasterSteps}, "instrumented steps took less time than bare ones: steps " +
			"vary by more than hooks and tags cost, for example since batch sizes vary (dpsight.step(samples=…) " +
			"records them)"},
		{analyze.Remark{Kind: analyze.RemarkDrains, Share: 0.1}, "drains took 10.0 % of the recorded time, more " +
			"than 5 %: record a longer run, or fewer steps (--record-steps)"},
		{analyze.Remark{Kind: analyze.RemarkAllocatedDiff, Bytes: 3 << 20, OtherBytes: 4 << 20, Name: "bare"},
			"its peak allocated is 1.00 MiB less than in its bare twin bare (3.00 MiB and 4.00 MiB)"},
		{analyze.Remark{Kind: analyze.RemarkReservedDiff, Bytes: 9 << 20, OtherBytes: 8 << 20, Name: "bare"},
			"its peak reserved is 1.00 MiB more than in its bare twin bare (9.00 MiB and 8.00 MiB)"},
		{analyze.Remark{Kind: analyze.RemarkCachedDiff, Bytes: 9 << 20, OtherBytes: 8 << 20, Name: "bare"},
			"its peak reserved is 1.00 MiB more than in its bare twin bare (9.00 MiB and 8.00 MiB), with the same " +
				"peak allocated: the allocator cached the difference"},
	}
	var remarks []analyze.Remark
	var want []string
	for _, c := range told {
		remarks, want = append(remarks, c.remark), append(want, c.want)
	}
	if got := RunWords(remarks); !slices.Equal(got, want) {
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%q, want %q", got[i], want[i])
			}
		}
	}
	rows := RunsTable(analyze.RunsDocument{Runs: []analyze.RunsRow{{Identity: identity.Identity{RunID: "r"},
		Remarks: remarks}}})
	for i := range remarks { // the other remarks concern figures that other commands explain
		if noted := slices.Contains(rows.Notes, "r: "+want[i]); noted != (remarks[i].Kind == analyze.RemarkHookFailed) {
			t.Errorf("the table of runs has the note %q: %v", want[i], noted)
		}
	}
	phases := PhasesTables(analyze.PhasesDocument{Runs: []analyze.PhasesRun{{Remarks: remarks}}})[0]
	costs := CostTable(analyze.CostDocument{Runs: []analyze.CostRun{{Remarks: remarks}}})
	study := tellStudy(&compare.Study{Runs: []analyze.Summary{{Remarks: remarks,
		Phases: analyze.PhasesRun{Remarks: remarks}, Cost: analyze.CostRun{Remarks: remarks}}}})
	for what, got := range map[string][]string{
		"runs": rows.Document.(analyze.RunsDocument).Runs[0].Warnings, "runs of a study": study.Runs[0].Warnings,
		"phases":            phases.Document.(analyze.PhasesDocument).Runs[0].Warnings,
		"phases of a study": study.Phases[0].Warnings,
		"costs":             costs.Document.(analyze.CostDocument).Runs[0].Warnings,
		"costs of a study":  study.Cost[0].Warnings,
	} {
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", what, got)
		}
	}
}
