package report

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/analyze/memory"
)

// The notes of a moment have every remark on the moment. The run's warnings name every GPU without samples.
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
	if want := []string{"before", "a phantom GPU has no NVML: only torch's own memory is known",
		"an imported file has no NVML samples: only torch's own memory is known",
		"cuda:0 was not sampled: only torch's own memory is known",
		"cuda:0 is ambiguous: several GPUs have the UUID GPU-B",
		"cuda:0 is MIG-1, which NVML did not sample",
		"it is unknown which of 2 GPUs cuda:0 is"}; !slices.Equal(doc.Runs[0].Warnings, want) {
		t.Errorf("%q", doc.Runs[0].Warnings)
	}
	const counters = "the peak is outside the recorded allocator events: torch's part comes from its counters at the " +
		"ends of steps, which "
	if want := []string{"device used has this value in 3 samples; the table shows the comparable sample with the most " +
		"allocated",
		"the peak lies in steps that were not recorded, and torch's counters before and after differ, so what " +
			"torch reserved then is unknown",
		"torch reserved or freed a segment within 50 ms of the sample: it may count as outside torch",
		counters + "are equal before and after",
		counters + "lie within 25 ms of the sample, with the same memory in use; allocated is from there",
		"torch reserved more than NVML shows in use: they have different clocks, or measure different GPUs",
		"the other allocators on the GPU are unknown at this moment: the rungs are only of cuda:1",
		"no NVML sample is comparable with the allocator",
		"bytes outside torch come from the sample 1.2 ms after the event; device used is the sum",
		"2.0 ms before the event it was 3.00 MiB",
		"cuda:0: only step 3, which has no tags, reached the peak: its blocks are known only by lifetime " +
			"and phase"}; !slices.Equal(doc.Runs[0].GPUs[0].Moments[0].Notes, want) {
		t.Errorf("%q", doc.Runs[0].GPUs[0].Moments[0].Notes)
	}
	if len(was.Runs[0].Warnings) != 1 || len(was.Runs[0].GPUs[0].Moments[0].Notes) != 0 {
		t.Error("the figures were changed")
	}
}
