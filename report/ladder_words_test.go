package report

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/analyze/memory"
)

// Every remark on a moment is in its notes, and every GPU without samples among the run's warnings.
func TestLadderWords(t *testing.T) {
	was := ladder.Document{Runs: []ladder.Run{{Warnings: []string{"before"},
		Unsampled: []ladder.Unsampled{{Why: ladder.UnsampledPhantom}, {Why: ladder.UnsampledImported},
			{Why: ladder.UnsampledNever, Device: "cuda:0"},
			{Why: ladder.UnsampledTwin, Device: "cuda:0", UUID: "GPU-B"},
			{Why: ladder.UnsampledUnknown, Device: "cuda:0", UUID: "MIG-1"},
			{Why: ladder.UnsampledWhich, Device: "cuda:0", GPUs: 2}},
		GPUs: []ladder.GPULadder{{Moments: []ladder.Moment{{Notes: []string{}, Remarks: []ladder.Remark{
			{Kind: ladder.RemarkPlateau, Samples: 3}, {Kind: ladder.RemarkNotRecorded},
			{Kind: ladder.RemarkUnsettled, MS: 50}, {Kind: ladder.RemarkCounters},
			{Kind: ladder.RemarkCountersNear, MS: 25}, {Kind: ladder.RemarkReservedMore},
			{Kind: ladder.RemarkAlone, Device: "cuda:1"}, {Kind: ladder.RemarkNoSample},
			{Kind: ladder.RemarkNearestSample, MS: 1.25, After: true},
			{Kind: ladder.RemarkOtherSide, MS: 2, Bytes: 3 << 20},
			{Kind: ladder.RemarkUntagged, Untagged: &memory.Untagged{Step: 3, OnlyPeak: true}}}}}}}}}}
	doc := tellLadders(was)
	if want := []string{"before", "a phantom GPU has no NVML: nothing is known of its memory beyond torch's own",
		"an imported file has no NVML samples: nothing is known of the GPU's memory beyond torch's own",
		"cuda:0 was not sampled: nothing is known of the GPU's memory beyond torch's own",
		"cuda:0 cannot be told from another GPU: several have the UUID GPU-B",
		"cuda:0 is MIG-1, which NVML did not sample",
		"it is not known which of 2 GPUs cuda:0 is"}; !slices.Equal(doc.Runs[0].Warnings, want) {
		t.Errorf("%q", doc.Runs[0].Warnings)
	}
	const counters = "the peak is outside the recorded allocator events: torch's part comes from its counters at the " +
		"ends of steps, which "
	if want := []string{"device used has this value in 3 samples; the table shows the comparable sample with the most " +
		"allocated",
		"the peak lies in steps that were not recorded, and torch's counters before and after differ: what torch " +
			"reserved then is not known",
		"a segment came or went within 50 ms of the sample: what is outside torch may hold it",
		counters + "are the same before and after",
		counters + "lie within 25 ms of the sample, with as much in use; allocated is of there",
		"torch reserved more than NVML has in use: the clocks, or the GPU, are not the same",
		"the state of the other allocators on the GPU is not known then: the rungs are of cuda:1 alone",
		"no NVML sample can be set beside the allocator",
		"the bytes outside torch come from the sample 1.2 ms after the event; device used is the sum",
		"2.0 ms before the event it was 3.00 MiB",
		"cuda:0: only step 3, which has no tags, reached the peak: what was made in it is known by lifetime and " +
			"phase only"}; !slices.Equal(doc.Runs[0].GPUs[0].Moments[0].Notes, want) {
		t.Errorf("%q", doc.Runs[0].GPUs[0].Moments[0].Notes)
	}
	if len(was.Runs[0].Warnings) != 1 || len(was.Runs[0].GPUs[0].Moments[0].Notes) != 0 {
		t.Error("the figures were changed")
	}
}
