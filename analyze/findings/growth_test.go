package findings

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// growing is a run of steps over 1,000 bytes of parameters: each makes 500 bytes and gives them up, and keeps the given
// bytes more of module
// 3. With a negative number it keeps none, and gives up what the step before kept.
func growing(warmup int, kept ...int64) schemas.Tables {
	in := schemas.Tables{Manifest: &schemas.Manifest{RunID: "grow", Status: schemas.StatusOK,
		Source: schemas.Predicted},
		Modules: []schemas.Module{{ID: 3, Path: "mlp", Role: "mlp"}}}
	var seq, live, peak, peakSeq int64
	alloc := func(bytes, module int64, category schemas.Category) {
		seq++
		id := int64(len(in.Allocations) + 1)
		in.Allocations = append(in.Allocations, schemas.Allocation{AllocID: id, Address: uint64(id) << 20,
			RequestedBytes: bytes, BlockBytes: bytes, AllocSeq: seq, Module: module})
		in.Owners = append(in.Owners, schemas.Owner{AllocID: id, Category: category, BeginSeq: seq,
			Evidence: schemas.Tagged, Module: module})
		if live += bytes; live > peak {
			peak, peakSeq = live, seq
		}
	}
	alloc(1000, 0, schemas.Parameters)
	for i, bytes := range kept {
		begin := seq
		alloc(500, 0, schemas.ActivationGradients)
		a := len(in.Allocations) - 1
		if bytes > 0 {
			alloc(bytes, 3, schemas.Activations)
		}
		seq++
		live -= 500
		in.Allocations[a].FreeRequestedSeq, in.Owners[a].EndSeq = seq, seq
		if bytes < 0 { // what the step before kept is given up
			seq++
			last := len(in.Allocations) - 2
			live -= in.Allocations[last].BlockBytes
			in.Allocations[last].FreeRequestedSeq, in.Owners[last].EndSeq = seq, seq
		}
		in.Steps = append(in.Steps, schemas.Step{Step: int64(i), Warmup: i < warmup, Instrumented: true, Recorded: true,
			BeginSeq: begin, EndSeq: seq})
	}
	in.Report = &schemas.IngestReport{Devices: []schemas.DeviceVerdict{{Verdict: schemas.Exact, Events: seq,
		PeakSeq: peakSeq, InstrumentedPeakSeq: &peakSeq, PeakAllocatedBytes: peak}}}
	return in
}

// What every step keeps is found: for eight steps or more, more than 1 % of the peak a step or 10 % in all.
func TestGrowthIsFound(t *testing.T) {
	each := func(n int, bytes int64) []int64 { return slices.Repeat([]int64{bytes}, n) }
	for _, c := range []struct {
		what   string
		warmup int
		kept   []int64
		grown  int64 // 0: none
		words  string
	}{
		{"every step", 0, each(10, 100), 900, "From step 0 to step 9 the lowest allocated of each step is above that " +
			"of the one before: by <0.01 MiB a step, <0.01 MiB (36 % of the peak) in all, of it <0.01 MiB " +
			"activations; by module, <0.01 MiB of module mlp. Something keeps"},
		{"after warm-up", 2, each(10, 100), 700, "From step 2 to step 9 "},
		{"too few after warm-up", 3, each(10, 100), 0, ""},
		{"little, for long", 0, each(40, 8), 312, "(17 % of the peak)"},
		{"little", 0, each(12, 8), 0, ""},
		{"nothing", 0, each(12, 0), 0, ""},
		{"in the first alone", 0, append([]int64{400}, each(12, 0)...), 0, ""},
		{"given up in between", 0, slices.Concat(each(6, 100), []int64{-1}, each(6, 100)), 0, ""},
		{"a cache that is full", 0, slices.Concat(each(10, 100), each(5, 0)), 1000, "From step 0 to step 10 "},
	} {
		in := growing(c.warmup, c.kept...)
		list := inspected(in)
		f := theFinding(t, list, Growth)
		switch {
		case c.grown == 0 && f == nil:
		case c.grown == 0 || f == nil:
			t.Errorf("%s: %+v", c.what, f)
		case *f.Bytes != c.grown || !strings.Contains(f.Sentence, c.words) || f.Change == "" || f.SavesBytes != nil ||
			list[0].ID != Growth:
			t.Errorf("%s: %d bytes, %s", c.what, *f.Bytes, f.Sentence)
		}
	}
	// Steps in windows, with others between them: a step adds what the difference is by all of them.
	in := growing(0, each(12, 100)...)
	for i := range in.Steps {
		in.Steps[i].Step *= 10
	}
	if f := theFinding(t, inspected(in), Growth); f == nil || f.Figures[3].Value != 10 ||
		!strings.Contains(f.Sentence, "of each recorded step") {
		t.Errorf("%+v", f)
	}
}

// Of a run that died of it, what grew stands before what the allocator could do.
func TestGrowthStandsBeforeTheFailure(t *testing.T) {
	list := []Finding{{ID: Cached, SavesBytes: new(int64(90)), Share: new(0.9)},
		{ID: OOM, failed: &memory.FailedRequest{Fatal: true}}, {ID: Growth, Share: new(0.5)}}
	run := analyze.Summary{PeakBytes: new(int64(100))}
	slices.SortStableFunc(list, byWeight(&run))
	if list[0].ID != Growth || list[1].ID != OOM {
		t.Errorf("%+v", list)
	}
}
