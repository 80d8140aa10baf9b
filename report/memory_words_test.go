package report

import (
	"errors"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// Each remark on a breakdown is one sentence. Every document that has the remark has this sentence.
func TestMemoryWords(t *testing.T) {
	module := "head"
	died := &memory.FailedRequest{OOM: &schemas.OOM{Seq: 5, RequestedBytes: 3 << 30, Module: module}, Nth: 13,
		At: memory.Moment{Step: new(int64(2)), Phase: new(schemas.PhaseForward)}}
	lost := &memory.FailedRequest{OOM: &schemas.OOM{RequestedBytes: 3 << 20}}
	here := &memory.FailedRequest{Whole: true, ReservedBytes: new(int64(100 << 20)), OOM: &schemas.OOM{
		RequestedBytes: 1 << 30, LimitBytes: 600 << 20, DeviceFreeBytes: 412 << 20}}
	missing := &memory.Conservation{Verdict: schemas.Lossy, ResidueBytes: 8, Reason: "3 events are missing"}
	differs := &memory.Conservation{Verdict: schemas.Lossy, ResidueBytes: 512, Sum: new(int64(4096)),
		Replayed: new(int64(4608))}
	untagged := func(l memory.Likeness) memory.Remark {
		return memory.Remark{Kind: memory.RemarkUntagged, Untagged: &memory.Untagged{Step: 0, Likeness: l},
			PhaseOnlyBytes: 512, AllocatedBytes: 4096, Instead: &memory.At{Step: new(int64(1)),
				Phase: schemas.PhaseForward}}
	}
	const share = "; of 13 % of the allocated bytes only the phase is known (--at step=1,phase=forward breaks down " +
		"a step with tags)"
	told := []struct {
		remark memory.Remark
		want   string
	}{
		{memory.Remark{Kind: memory.RemarkOfIngest, Text: "a journal ends early"}, "a journal ends early"},
		{memory.Remark{Kind: memory.RemarkNoMoment, Err: errors.New("no step 3 on cuda:1")}, "no step 3 on cuda:1"},
		{memory.Remark{Kind: memory.RemarkDied, Failed: died}, "a failed request for 3,072.00 MiB by module head " +
			"ended the run in forward of step 2; the figures are of its peak until then, and --at oom=13 shows the " +
			"moment of failure"},
		{memory.Remark{Kind: memory.RemarkDied, Failed: lost},
			"a failed request for 3.00 MiB ended the run outside the steps"},
		{memory.Remark{Kind: memory.RemarkFailedHere, Device: "cuda:0", Failed: here}, "cuda:0: a request for " +
			"1,024.00 MiB failed here; the limit is 600.00 MiB; the CUDA context, the driver and other processes " +
			"took 88.00 MiB, leaving 512.00 MiB for tensors, and 412.00 MiB were free on the device"},
		{memory.Remark{Kind: memory.RemarkFailedHere, Device: "cuda:0", Failed: &memory.FailedRequest{
			OOM: &schemas.OOM{RequestedBytes: 64 << 20, DeviceFreeBytes: 16 << 20}}}, "cuda:0: a request for 64.00 MiB " +
			"failed here; the limit is not known, and 16.00 MiB were free on the device"},
		{memory.Remark{Kind: memory.RemarkLossy, Device: "cuda:0", Conservation: missing},
			"cuda:0: events are missing or disagree (3 events are missing); the residue is 8 bytes"},
		{memory.Remark{Kind: memory.RemarkSumDiffers, Device: "cuda:0", Conservation: differs},
			"cuda:0: the categories sum to 4096 bytes, replay says 4608"},
		{untagged(memory.Likeness{From: memory.FromLifetimes}),
			"cuda:0: step 0 has no tags: its blocks are known only by lifetime and phase" + share},
		{untagged(memory.Likeness{From: memory.FromAnyAlike}), "cuda:0: step 0 has no tags: its categories come " +
			"from a step with tags that allocated alike, else from lifetime and phase" + share},
		{untagged(memory.Likeness{From: memory.FromNoneAlike, Blocks: 4}), "cuda:0: step 0 has no tags: no step " +
			"with tags allocated alike, so its blocks are known only by lifetime and phase" + share},
		{untagged(memory.Likeness{From: memory.FromAlike, Like: 1, Blocks: 4, Known: 4}), "cuda:0: step 0 has no tags: " +
			"its categories come from step 1, which made the same allocations" + share},
		{untagged(memory.Likeness{From: memory.FromAlikeInSizes, Like: 1, Blocks: 4, Known: 4}), "cuda:0: step 0 has " +
			"no tags: its categories come from step 1, which made the same allocations in other sizes" + share},
		{untagged(memory.Likeness{From: memory.FromParts, Like: 1, Blocks: 4, Known: 3}), "cuda:0: step 0 has no " +
			"tags: its categories combine parts of step 1 and of steps around it that allocated alike (3 of 4 " +
			"blocks; the others are known only by lifetime and phase)" + share},
		{memory.Remark{Kind: memory.RemarkUntagged, Untagged: &memory.Untagged{Step: 4, OnlyPeak: true}},
			"cuda:0: only step 4, which has no tags, reached the peak: its blocks are known only by lifetime and " +
				"phase"},
	}
	var remarks []memory.Remark
	var want []string
	for _, c := range told {
		remarks, want = append(remarks, c.remark), append(want, c.want)
		if got := memoryWord(&c.remark); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	device := memory.DeviceBreakdown{Device: "cuda:0", Conservation: *differs, Remarks: remarks}
	run := memory.BreakdownRun{Devices: []memory.DeviceBreakdown{device}, Remarks: remarks}
	doc := memory.BreakdownDocument{Runs: []memory.BreakdownRun{run}}
	study := tellStudy(&compare.Study{Runs: []analyze.Summary{{Breakdown: run}}})
	for what, told := range map[string]memory.BreakdownRun{
		"breakdown": BreakdownTables(doc)[0].Document.(memory.BreakdownDocument).Runs[0],
		"known":     KnownTable(doc).Document.(memory.BreakdownDocument).Runs[0], "study": study.Breakdown[0]} {
		if d := &told.Devices[0]; !slices.Equal(told.Warnings, want) || !slices.Equal(d.Warnings, want) ||
			d.Conservation.Reason != "the categories sum to 4096 bytes, replay says 4608" {
			t.Errorf("%s: %q, %q, %q", what, told.Warnings, d.Warnings, d.Conservation.Reason)
		}
	}
	if doc.Runs[0].Warnings != nil || doc.Runs[0].Devices[0].Warnings != nil {
		t.Errorf("the document that was told of has changed: %+v", doc)
	}
	by := grouping.BreakdownByDocument{By: []grouping.Dimension{grouping.DimensionModule},
		Runs: []grouping.BreakdownByRun{{Remarks: remarks, Devices: []grouping.DeviceBy{{Conservation: *differs,
			Remarks: remarks}}}}}
	for what, told := range map[string]any{"by": BreakdownByTables(by)[0].Document,
		"records": BreakdownByRecords(by).Document} {
		if r := told.(grouping.BreakdownByDocument).Runs[0]; !slices.Equal(r.Warnings, want) ||
			!slices.Equal(r.Devices[0].Warnings, want) ||
			r.Devices[0].Conservation.Reason != "the categories sum to 4096 bytes, replay says 4608" {
			t.Errorf("%s: %+v", what, r)
		}
	}
	explained := NewExplainDocument(explain.Explanation{Runs: [2]explain.Run{{Conservation: differs}, {}}})
	if c := explained.Runs[0].Conservation; c.Reason == "" || differs.Reason != "" {
		t.Errorf("%+v", c)
	}
}

// The words for a moment name its phase and step, or say that the moment lies outside of both.
func TestWhen(t *testing.T) {
	step, forward, between := new(int64(2)), new(schemas.PhaseForward), new(schemas.PhaseBetween)
	for _, c := range []struct {
		at   *memory.Moment
		want string
	}{{nil, "outside the steps"}, {&memory.Moment{}, "outside the steps"},
		{&memory.Moment{Phase: between}, "outside all phases"}, {&memory.Moment{Phase: forward}, "in forward"},
		{&memory.Moment{Step: step}, "in step 2"}, {&memory.Moment{Step: step, Phase: forward}, "in forward of step 2"},
		{&memory.Moment{Step: step, Phase: between}, "outside all phases of step 2"}} {
		if got := when(c.at); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestNamelessWords(t *testing.T) {
	for dim, want := range map[grouping.Dimension]string{grouping.DimensionOp: "cuda:0: no block has a known op",
		grouping.DimensionStack: "cuda:0: no block has a known stack: collect --stacks python records stacks"} {
		if got := namelessWords("cuda:0", dim); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
