package findings

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/growth"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// dpsight finds a growth in every step if a run has at least eight steps, and if the growth is 0.1 % of the peak for
// each step or 1 % in all.
func TestGrowthIsFound(t *testing.T) {
	each := func(n int, bytes int64) []int64 { return slices.Repeat([]int64{bytes}, n) }
	for _, c := range []struct {
		what   string
		warmup int
		kept   []int64
		grown  int64 // 0 is no growth
		from   int64 // the step from which on memory grows
		saves  int64 // the bytes that all steps except the last two keep
	}{
		{"every step", 0, each(10, 100), 900, 0, 800},
		{"after warm-up", 2, each(10, 100), 700, 2, 600},
		{"too few after warm-up", 3, each(10, 100), 0, 0, 0},
		{"little, for long", 0, each(40, 8), 312, 0, 304},
		{"little", 0, each(12, 8), 88, 0, 80},
		{"too little", 0, each(12, 1), 0, 0, 0},
		{"nothing", 0, each(12, 0), 0, 0, 0},
		{"in the first alone", 0, append([]int64{400}, each(12, 0)...), 0, 0, 0},
		{"given up once in between", 0, slices.Concat(each(6, 100), []int64{-1}, each(6, 100)), 1000, 0, 900},
		{"a cache that is full", 0, slices.Concat(each(10, 100), each(5, 0)), 0, 0, 0},
	} {
		in := fixture.Growing(c.warmup, c.kept...)
		list := inspected(in)
		f := theFinding(t, list, KeptGraphs)
		switch {
		case c.grown == 0 && f == nil:
		case c.grown == 0 || f == nil:
			t.Errorf("%s: %+v", c.what, f)
		default:
			x := factsOf[GrowthFacts](t, f)
			parts := slices.Equal(x.Categories, []NamedBytes{{schemas.Activations, c.grown}}) &&
				slices.Equal(x.Modules, []NamedBytes{{"mlp", c.grown}})
			if *f.Bytes != c.grown || x.First.At != c.from || x.Last.Bytes-x.First.Bytes != c.grown || x.Gaps ||
				!parts || *f.SavesBytes != c.saves || f.Confidence != AtLeast || list[0].ID != KeptGraphs {
				t.Errorf("%s: %d bytes, saves %d, %+v", c.what, *f.Bytes, *f.SavesBytes, x)
			}
		}
	}
	// If the recorded steps lie in windows, the growth for each step is the whole growth divided by the number of all
	// steps. The steps between windows count too.
	in := fixture.Growing(0, each(12, 100)...)
	for i := range in.Steps {
		in.Steps[i].Step *= 10
	}
	x := factsOf[GrowthFacts](t, theFinding(t, inspected(in), KeptGraphs))
	if !x.Gaps || x.Last.At-x.First.At != 110 || x.Last.Bytes-x.First.Bytes != 1100 {
		t.Errorf("%+v", x)
	}
}

// If a run ran out of memory because it grew, the finding on growth comes before advice about the allocator.
func TestGrowthStandsBeforeTheFailure(t *testing.T) {
	list := []Finding{{ID: Cached, SavesBytes: new(int64(90)), Share: new(0.9)},
		{ID: OOM, Facts: OOMFacts{Request: &memory.FailedRequest{Fatal: true}}}, {ID: Growth, Share: new(0.5),
			Facts: GrowthFacts{Growth: &growth.Growth{}}}}
	run := analyze.Summary{PeakBytes: new(int64(100))}
	slices.SortStableFunc(list, byWeight(&run))
	if list[0].ID != Growth || list[1].ID != OOM {
		t.Errorf("%+v", list)
	}
}

// There are four findings on growth. Which one a run gets depends on what holds the growing memory: something unknown,
// a graph, a graph through gradients, or the graph of an evaluation.
func TestGrowthIsToldApart(t *testing.T) {
	kept := func(c schemas.Category, phase string) schemas.Tables {
		in := fixture.Growing(0, slices.Repeat([]int64{100}, 12)...)
		for i := range in.Allocations {
			if in.Allocations[i].RequestedBytes == 100 {
				in.Allocations[i].Phase, in.Owners[i].Category = phase, c
			}
		}
		return in
	}
	evaluation := kept(schemas.Activations, schemas.PhaseEval)
	for _, s := range evaluation.Steps {
		evaluation.Phases = append(evaluation.Phases, schemas.Phase{Step: -1, Phase: schemas.PhaseEval, BeginK: 2 * s.Step,
			EndK: 2*s.Step + 1, BeginSeq: s.BeginSeq, EndSeq: s.EndSeq})
	}
	evaluation.Steps = nil
	for id, in := range map[string]schemas.Tables{
		Growth:           kept(schemas.Script, schemas.PhaseForward),
		KeptGraphs:       kept(schemas.Activations, schemas.PhaseForward),
		GradientGraphs:   kept(schemas.Activations, schemas.PhaseBackward),
		EvaluationGraphs: evaluation,
	} {
		if list := inspected(in); len(list) == 0 || list[0].ID != id || list[0].SavesBytes == nil ||
			*list[0].SavesBytes < 900 || *list[0].SavesBytes > 1000 {
			t.Errorf("%s: %+v", id, list)
		}
	}
	// Backward also allocates the gradients of parameters. A script can keep these without keeping a graph.
	if list := inspected(kept(schemas.Gradients, schemas.PhaseBackward)); list[0].ID != Growth ||
		*list[0].SavesBytes != 0 {
		t.Errorf("%+v", list)
	}
}

// The line of a growth is the line whose memory accumulates. Another line may request more in each step, and replace
// what it requested in the step before.
func TestGrowthIsNotWhatIsReplaced(t *testing.T) {
	const replaces, keeps = 20, 24
	for _, c := range []struct {
		what   string
		change func(step int, replaced *schemas.Allocation)
		line   int64
		bytes  int64 // of the line
	}{
		{"as large", func(int, *schemas.Allocation) {}, keeps, 1000},
		{"modules are known in some steps", func(step int, a *schemas.Allocation) { a.Module = int64(step % 2 * 3) },
			keeps, 1000},
		{"nothing is known of the first", func(step int, a *schemas.Allocation) {
			if step == 0 { // the latest new blocks replace it, and the last kept block is one of these
				a.Line, a.Phase = 0, ""
			}
		}, keeps, 900},
		{"in another phase at the end", func(step int, a *schemas.Allocation) {
			if step == 10 { // the last low comes before the block of step 11
				a.Phase = schemas.PhaseEval
			}
		}, replaces, 1000},
		{"larger in each step", func(step int, a *schemas.Allocation) { a.BlockBytes += 300 * int64(step) },
			replaces, 3000},
	} {
		in := fixture.Growing(0, slices.Repeat([]int64{100}, 12)...)
		in.Lines = []schemas.Line{{Line: 1, File: "train.py", Number: replaces}, {Line: 2, File: "train.py", Number: keeps}}
		var last *schemas.Allocation
		step := 0
		for i := range in.Allocations[1:] {
			a := &in.Allocations[1+i]
			a.Phase = schemas.PhaseForward
			if a.RequestedBytes == 100 {
				a.Line = 2
				continue
			}
			a.Line, a.BlockBytes = 1, 4000
			c.change(step, a)
			a.RequestedBytes = a.BlockBytes
			if last != nil {
				last.FreeRequestedSeq, in.Owners[last.AllocID-1].EndSeq = a.FreeRequestedSeq, a.FreeRequestedSeq
			}
			last = a
			step++
		}
		last.FreeRequestedSeq, in.Owners[last.AllocID-1].EndSeq = 0, 0
		var f *Finding
		for _, found := range inspected(in) {
			if _, grows := found.Facts.(GrowthFacts); grows {
				f = &found
			}
		}
		if f == nil || f.Line == nil || f.Line.Line.Number != c.line || f.Line.Bytes != c.bytes {
			t.Errorf("%s: %+v", c.what, f)
		}
	}
}

// dpsight reports a rank whose memory grows even if another rank has the highest peak. If several ranks grow alike, one
// finding is about the rank that grows most.
func TestGrowthOfARank(t *testing.T) {
	rank := func(first, each int64) schemas.Tables {
		in := fixture.Growing(0, append([]int64{first}, slices.Repeat([]int64{each}, 11)...)...)
		in.Lines = []schemas.Line{{Line: 1, File: "train.py", Number: 24}}
		for i := range in.Allocations {
			if in.Allocations[i].RequestedBytes == each {
				in.Allocations[i].Line = 1
			}
		}
		return in
	}
	for _, c := range []struct {
		what      string
		ranks     []schemas.Tables
		found     []int32
		bytes     int64
		alike     int
		elsewhere bool
	}{
		{"the fullest does not grow", []schemas.Tables{rank(3000, 0), rank(100, 100), rank(0, 0)}, []int32{1}, 1100, 0,
			true},
		{"the fullest alone grows", []schemas.Tables{rank(0, 0), rank(100, 100)}, []int32{1}, 1100, 0,
			false},
		{"all grow", []schemas.Tables{rank(100, 100), rank(100, 100), rank(100, 100)}, []int32{0}, 1100, 2, false},
		{"one grows more", []schemas.Tables{rank(3000, 100), rank(300, 300), rank(100, 100)}, []int32{1}, 3300, 2, true},
		{"none grows", []schemas.Tables{rank(3000, 0), rank(0, 0)}, nil, 0, 0, false},
	} {
		var found []int32
		for _, f := range inspected(fixture.Ranks(c.ranks...)) {
			facts, is := f.Facts.(GrowthFacts)
			if !is {
				continue
			}
			found = append(found, *f.Rank)
			if *f.Bytes != c.bytes || facts.Alike != c.alike || facts.Elsewhere != c.elsewhere || f.Line == nil ||
				f.Line.Line.Number != 24 || facts.Devices != len(c.ranks) {
				t.Errorf("%s: %d bytes, %+v", c.what, *f.Bytes, facts)
			}
		}
		if !slices.Equal(found, c.found) {
			t.Errorf("%s: found on ranks %d", c.what, found)
		}
	}
}
