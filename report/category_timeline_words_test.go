package report

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
)

// If a timeline shows steps without tags, a warning of the device names each of them.
func TestCategoryTimelineWords(t *testing.T) {
	alike := memory.Likeness{From: memory.FromAlikeInSizes, Like: 1, Known: 4, Blocks: 5}
	parts := memory.Likeness{From: memory.FromParts, Like: 8, Known: 5, Blocks: 5}
	was := timeline.CategoryTimelineDocument{Runs: []timeline.CategoryTimelineRun{{Devices: []timeline.DeviceTimeline{
		{Warnings: []string{}, Untagged: []*memory.Untagged{{Step: 2, OnlyPeak: true, Likeness: alike},
			{Step: 7, Likeness: parts}}}}}}}
	want := []string{"cuda:0: only step 2, which has no tags, reached the peak: its categories come from step 1, " +
		"which made the same allocations in other sizes (4 of 5 blocks; the others are known only by lifetime and " +
		"phase)",
		"cuda:0: step 7 has no tags: its categories combine parts of step 8 and of steps around it that allocated " +
			"alike"}
	for _, made := range []any{CategoryTimelineTables(was)[0].Document, CategoryTimelineRecords(was).Document} {
		doc := made.(timeline.CategoryTimelineDocument)
		if got := doc.Runs[0].Devices[0].Warnings; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
	if len(was.Runs[0].Devices[0].Warnings) > 0 {
		t.Error("the document that was given is another now")
	}
}
