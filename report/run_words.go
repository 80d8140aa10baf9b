package report

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// RunWords put each remark on a run into a sentence.
func RunWords(remarks []analyze.Remark) []string {
	out := make([]string, len(remarks))
	for i := range remarks {
		r := &remarks[i]
		if r.Rank != nil {
			out[i] = fmt.Sprintf("rank %d: ", *r.Rank)
		}
		out[i] += runWord(r)
	}
	return out
}

// runWord puts a remark on a run into a sentence.
func runWord(r *analyze.Remark) string {
	switch r.Kind {
	case analyze.RemarkNotIngested:
		return notIngested
	case analyze.RemarkNoBlocks:
		return "not broken down: " + r.Err.Error()
	case analyze.RemarkNoPeak:
		return r.Err.Error()
	case analyze.RemarkOfTimes:
		return timeWords(*r.Times)
	case analyze.RemarkEndedEarly:
		if r.Status == schemas.StatusPartial {
			return "the recording ended early (partial): its peak and times are of what the run did until then"
		}
		return fmt.Sprintf("the run ended early (%s): its peak and times are of what it did until then", r.Status)
	case analyze.RemarkHookFailed:
		return r.Hook.Words()
	case analyze.RemarkTableGone:
		return goneWords(r.Name)
	case analyze.RemarkRecompute:
		text := "bare steps count recompute as backward"
		if r.MS != nil {
			text += fmt.Sprintf(": about %.1f ms a step, by its share of instrumented steps (dpsight time)", *r.MS)
		}
		return text
	case analyze.RemarkOneOfMany, analyze.RemarkOverRepeats:
		return repeatsWords(r)
	case analyze.RemarkLatePeak:
		return lateWords(r, "came outside the recorded steps")
	case analyze.RemarkMissedPeak:
		return lateWords(r, "is above all recorded events (some are missing)")
	case analyze.RemarkBounded:
		return boundedPeak(r.Bytes, r.OtherBytes)
	case analyze.RemarkOfFullest:
		return fmt.Sprintf("memory is of the device with the highest peak, 1 of %d", r.N)
	case analyze.RemarkInTurn:
		return fmt.Sprintf("memory is of the process with the highest peak; %d processes used the device in turn", r.N)
	case analyze.RemarkTogether:
		return togetherWords(r.N, "their highest sum")
	case analyze.RemarkSumReserved:
		return togetherWords(r.N, "the sum of their maxima")
	}
	return costWord(r)
}

func lateWords(r *analyze.Remark, where string) string {
	return fmt.Sprintf("the peak of %s %s: only torch's counter has it, so the breakdown is of the highest recorded "+
		"moment, %s", units.MiB(r.Bytes), where, units.MiB(r.OtherBytes))
}

func togetherWords(processes int, reserved string) string {
	return fmt.Sprintf("%s shared one device: reserved is %s; peak and breakdown are of the process with the "+
		"highest peak", units.Plural(processes, "process", "processes"), reserved)
}

// repeatsWords state the figures of all repeats of a run.
func repeatsWords(r *analyze.Remark) string {
	low, high := prose.MS(r.StepMS.Low), prose.MS(r.StepMS.High)
	if r.Kind == analyze.RemarkOverRepeats {
		return fmt.Sprintf("times are medians over %d repeats in the store (%s to %s a step); run %s itself takes "+
			"%s", r.StepMS.N, low, high, r.Name, prose.MS(*r.MS))
	}
	who := "one"
	if r.N > 1 {
		who = fmt.Sprint(r.N)
	}
	return fmt.Sprintf("%s of %d repeats in the store: their medians range from %s to %s, median %s", who, r.StepMS.N, low,
		high, prose.MS(r.StepMS.Median))
}

// costWord puts a remark on the cost of recording into a sentence.
func costWord(r *analyze.Remark) string {
	switch r.Kind {
	case analyze.RemarkBatchesVary:
		return "batch sizes vary: Δ compares the time per sample, for a bare step of median size"
	case analyze.RemarkUntimedSteps:
		return units.Plural(r.N, "step", "steps") + " left out of the medians: forward and backward took no GPU time, as " +
			"when a CUDA graph captures them"
	case analyze.RemarkFasterSteps:
		return "instrumented steps took less time than bare ones: steps vary by more than hooks and tags cost, for " +
			"example since batch sizes vary (dpsight.step(samples=…) records them)"
	case analyze.RemarkDrains:
		return fmt.Sprintf("drains took %.1f %% of the recorded time, more than %.0f %%: record a longer run, or "+
			"fewer steps (--record-steps)", 100*r.Share, 100*analyze.MostDraining)
	case analyze.RemarkAllocatedDiff:
		return "its peak allocated is " + besideBareWords(r)
	case analyze.RemarkReservedDiff:
		return "its peak reserved is " + besideBareWords(r)
	case analyze.RemarkCachedDiff:
		return "its peak reserved is " + besideBareWords(r) + ", with the same peak allocated: the allocator cached " +
			"the difference"
	}
	panic("no words for the remark " + string(r.Kind))
}

// besideBareWords compares a run's bytes with a bare run's.
func besideBareWords(r *analyze.Remark) string {
	way := "more"
	if r.Bytes < r.OtherBytes {
		way = "less"
	}
	return fmt.Sprintf("%s %s than in its bare twin %s (%s and %s)", units.MiB(prose.Magnitude(r.Bytes-r.OtherBytes)),
		way, r.Name, units.MiB(r.Bytes), units.MiB(r.OtherBytes))
}

// tellRuns writes the warnings of each row.
func tellRuns(rows []analyze.RunsRow) []analyze.RunsRow {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Warnings = RunWords(rows[i].Remarks)
	}
	return rows
}

// tellPhases writes the warnings of each run.
func tellPhases(runs []analyze.PhasesRun) []analyze.PhasesRun {
	runs = slices.Clone(runs)
	for i := range runs {
		runs[i].Warnings = RunWords(runs[i].Remarks)
	}
	return runs
}

func tellCosts(runs []analyze.CostRun) []analyze.CostRun {
	runs = slices.Clone(runs)
	for i := range runs {
		runs[i].Warnings = RunWords(runs[i].Remarks)
	}
	return runs
}

// goneWords say that a run's table has been deleted.
func goneWords(table string) string {
	return table + " is missing, so its figures are missing too, and others were not checked against it; dpsight ingest " +
		"--again rebuilds it from the journal"
}
