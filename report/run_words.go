package report

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// RunWords are a sentence a remark on a run.
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

// runWord says a remark in a sentence.
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
		text := "recompute has no GPU ms of its own: in bare steps it is part of backward's"
		if r.MS != nil {
			text += fmt.Sprintf("; of that it is %.1f ms a step, by its share of instrumented steps (dpsight analyze "+
				"time)", *r.MS)
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
		return fmt.Sprintf("memory is the fullest of %d devices'", r.N)
	case analyze.RemarkInTurn:
		return fmt.Sprintf("memory is the fullest of %d processes', which used the device in turn", r.N)
	case analyze.RemarkTogether:
		return togetherWords(r.N, "the most that they had together")
	case analyze.RemarkSumReserved:
		return togetherWords(r.N, "the sum of the most that each had")
	}
	return costWord(r)
}

func lateWords(r *analyze.Remark, where string) string {
	return fmt.Sprintf("the peak of %s %s and is torch's counter: it is not broken down; the highest recorded moment "+
		"is %s", units.MiB(r.Bytes), where, units.MiB(r.OtherBytes))
}

func togetherWords(processes int, reserved string) string {
	return fmt.Sprintf("%s shared one device: reserved is %s, the peak is the fullest process's, and a breakdown "+
		"shows one process", units.Plural(processes, "process", "processes"), reserved)
}

// repeatsWords say what all repeats of a run take.
func repeatsWords(r *analyze.Remark) string {
	low, high := prose.MS(r.StepMS.Low), prose.MS(r.StepMS.High)
	if r.Kind == analyze.RemarkOverRepeats {
		return fmt.Sprintf("times are medians over %d repeats in the store, with steps of %s to %s; run %s has "+
			"%s", r.StepMS.N, low, high, r.Name, prose.MS(*r.MS))
	}
	who := "one"
	if r.N > 1 {
		who = fmt.Sprint(r.N)
	}
	return fmt.Sprintf("%s of %d repeats in the store: their medians go from %s to %s, median %s", who, r.StepMS.N, low,
		high, prose.MS(r.StepMS.Median))
}

// costWord says a remark on what recording cost.
func costWord(r *analyze.Remark) string {
	switch r.Kind {
	case analyze.RemarkBatchesVary:
		return "batches vary: Δ is by time a sample, for a bare step of median size"
	case analyze.RemarkUntimedSteps:
		return units.Plural(r.N, "step", "steps") + " in no median: forward and backward took no time on the GPU, as " +
			"where a CUDA graph captures them"
	case analyze.RemarkFasterSteps:
		return "instrumented steps took less time than bare ones: steps differ by more than hooks and tags take, as " +
			"where batches vary (dpsight.step(samples=…) says how large each is)"
	case analyze.RemarkDrains:
		return fmt.Sprintf("drains took %.1f %% of the recorded time, more than %.0f %%: a longer run, or fewer "+
			"--record-steps, makes it less", 100*r.Share, 100*analyze.MostDraining)
	case analyze.RemarkAllocatedDiff:
		return "at its peak it allocated " + besideBareWords(r)
	case analyze.RemarkReservedDiff:
		return "at its highest it reserved " + besideBareWords(r)
	case analyze.RemarkCachedDiff:
		return "at its highest it reserved " + besideBareWords(r) + ", with the same peak allocated: the difference is " +
			"memory that the allocator cached, not what the run holds"
	}
	panic("no words for the remark " + string(r.Kind))
}

// besideBareWords compares a run's bytes with a bare run's.
func besideBareWords(r *analyze.Remark) string {
	way := "more"
	if r.Bytes < r.OtherBytes {
		way = "less"
	}
	return fmt.Sprintf("%s %s than its bare twin %s (%s, and %s)", units.MiB(prose.Magnitude(r.Bytes-r.OtherBytes)),
		way, r.Name, units.MiB(r.Bytes), units.MiB(r.OtherBytes))
}

// tellRuns fills in the warnings of each row.
func tellRuns(rows []analyze.RunsRow) []analyze.RunsRow {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Warnings = RunWords(rows[i].Remarks)
	}
	return rows
}

// tellPhases fills in the warnings of each run, tellCosts the warnings of the costs.
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

// goneWords say that a table of a run was taken away.
func goneWords(table string) string {
	return table + " is gone: what rests on it is missing, and the other figures cannot be checked against it (dpsight " +
		"ingest --again makes it again from the journal)"
}
