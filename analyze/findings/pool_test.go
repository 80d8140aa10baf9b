package findings

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/identity"
)

// If the repeats of an experiment share a finding, it appears once, with the figures of the full run. The pooled
// finding does not include the findings of other experiments.
func TestFindingsOfRepeatsArePooled(t *testing.T) {
	ms := func(id string, ms float64) Finding { return Finding{ID: id, MS: &ms} }
	run := func(id, experiment string, bare bool, list ...Finding) Run {
		return Run{Identity: identity.Identity{RunID: id, Name: "n", Params: map[string]any{"bare": bare}},
			Findings: list, experiment: experiment}
	}
	cuda := func(device string) Finding {
		return Finding{ID: "slack", Device: &device, Rank: new(int32(0)), Bytes: new(int64(5))}
	}
	found := Found{Runs: []Run{
		run("bare1", "x", true, ms("unsteady", 12), ms("repeats", 1)),
		run("other", "y", false, ms("unsteady", 99)),
		run("full", "x", false, cuda("cuda:0"), cuda("cuda:1"), ms("unsteady", 10)),
		run("bare2", "x", true),
		run("bare3", "x", true, ms("unsteady", 9)),
		run("by itself", "", false),
	}}
	got := found.Experiments()
	if len(got) != 3 || got[0].Run.RunID != "full" || !slices.Equal(got[0].RunIDs, []string{"bare1", "full", "bare2",
		"bare3"}) || got[1].Run.RunID != "other" || len(got[2].Findings) != 0 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []struct {
		id, run   string
		in        int
		low, high float64
	}{{"slack", "full", 1, 5, 5}, {"slack", "full", 1, 5, 5}, {"unsteady", "full", 3, 9, 12}, {"repeats", "bare1", 1, 1,
		1}} {
		if f := got[0].Findings[i]; f.ID != want.id || f.RunID != want.run || f.In != want.in || *f.Low != want.low ||
			*f.High != want.high {
			t.Errorf("%d: %s of %s in %d, %v to %v", i, f.ID, f.RunID, f.In, *f.Low, *f.High)
		}
	}
	if len(got[0].Findings) != 4 || got[1].Findings[0].In != 1 || len(found.Runs[0].Findings) != 2 {
		t.Errorf("%+v", got)
	}
}
