package explain

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

func explained(t *testing.T, from, to schemas.Tables) Explanation {
	t.Helper()
	doc, err := Explain(NewInput(from), NewInput(to))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestExplainedModuleTimes(t *testing.T) {
	doc := explained(t, fixture.PlainTimes(), fixture.GhostTimes())
	type row struct {
		title            string
		from, to, hook   float64
		delta            float64
		phases, noPhases int // the number of the module's phases, and how many of them the other run lacks
	}
	for i, want := range []row{{"head", 600, 10000, 9000, 9400, 4, 3}, {"blocks.*.up ×2", 1800, 3801, 1000, 2001, 4,
		3}} {
		m := doc.ModuleTimes[i]
		got := row{title: m.Title(), from: math.Round(*m.FromMS*1e6) / 1e6, to: math.Round(*m.ToMS*1e6) / 1e6,
			hook: math.Round(m.ToHookMS*1e6) / 1e6, delta: math.Round(m.DeltaMS*1e6) / 1e6, phases: len(m.Phases)}
		for _, p := range m.Phases {
			if p.FromMS == nil || p.ToMS == nil {
				got.noPhases++
			}
		}
		if got != want || m.FromHookMS != 0 {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if o := doc.OutsideModules; math.Abs(o.DeltaMS+5) > 1e-9 || math.Abs(*o.FromMS-100) > 1e-9 || len(o.Phases) != 2 ||
		math.Abs(*doc.ModuleResidueMS) > 1e-9 || len(doc.ModuleTimes) != 2 {
		t.Errorf("outside %+v, residue %g", o, *doc.ModuleResidueMS)
	}
	if *doc.ModuleTimes[1].Role != "mlp" || *doc.Runs[1].ModuleTiming != (ModuleTiming{Rank: 0, Ranks: 1, BareSteps: 2,
		InstrumentedSteps: 2, InstrumentedStepMS: 2 * 13896}) {
		t.Errorf("%+v, %+v", doc.ModuleTimes[1], doc.Runs[1].ModuleTiming)
	}
}

// If the modules of a run were not timed, or the steps of the runs have different clocks, the explanation has no times
// by module. A note names the runs without such times.
func TestUnexplainedModuleTimes(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(from, to *schemas.Tables)
		want   []string
	}{
		{"older", func(from, _ *schemas.Tables) { from.ModuleTimes = nil }, []string{"plain"}},
		{"bare", func(from, to *schemas.Tables) {
			from.Manifest.Bare, to.Manifest.Bare = true, true
		}, []string{"plain", "ghost"}},
		{"warm-up", func(_, to *schemas.Tables) {
			to.Steps[0].Warmup, to.Steps[2].Warmup = true, true
		}, []string{"ghost"}},
		{"wall", func(from, to *schemas.Tables) {
			from.Steps[1].GPUNS, to.Steps[1].GPUNS = 0, 0
		}, nil},
	} {
		from, to := fixture.PlainTimes(), fixture.GhostTimes()
		c.change(&from, &to)
		doc := explained(t, from, to)
		if len(doc.ModuleTimes) != 0 || doc.OutsideModules != nil || doc.ModuleResidueMS != nil ||
			!slices.Equal(doc.Untimed(), c.want) {
			t.Errorf("%s: %q, %+v", c.name, doc.Untimed(), doc.ModuleTimes)
		}
	}
}

// A run with several ranks has the slowest rank's times by module.
func TestExplainedModuleTimesOfRanks(t *testing.T) {
	to := fixture.GhostTimes()
	other := fixture.LayeredTimes("slow", fixture.Spent{Phase: "forward", Module: 6, Hook: false, Ms: 20000})
	for _, m := range other.Modules {
		m.Rank = 1
		to.Modules = append(to.Modules, m)
	}
	for _, s := range other.Steps {
		s.Rank = 1
		to.Steps = append(to.Steps, s)
	}
	for _, p := range other.Phases {
		p.Rank = 1
		to.Phases = append(to.Phases, p)
	}
	for _, m := range other.ModuleTimes {
		m.Rank = 1
		to.ModuleTimes = append(to.ModuleTimes, m)
	}
	doc := explained(t, fixture.PlainTimes(), to)
	if timing := doc.Runs[1].ModuleTiming; timing.Rank != 1 || timing.Ranks != 2 ||
		doc.ModuleTimes[0].Title() != "head" || math.Abs(*doc.ModuleTimes[0].ToMS-20000) > 1e-9 ||
		doc.ModuleTimes[0].Modules != 1 {
		t.Errorf("%+v, %+v", timing, doc.ModuleTimes[0])
	}
	checkExplainedTimes(t, &doc)
}

// checkExplainedTimes checks that the times by module sum to the step times.
func checkExplainedTimes(t *testing.T, doc *Explanation) {
	t.Helper()
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s to %s: %s: %v ms, want %v", doc.From, doc.To, what, got, want)
		}
	}
	part := func(what string, p *TimePart) {
		t.Helper()
		var from, to, delta float64
		for _, f := range p.Phases {
			from, to, delta = from+timing.OrZero(f.FromMS), to+timing.OrZero(f.ToMS), delta+*f.DeltaMS
			if f.FromMS == nil && f.ToMS == nil {
				t.Errorf("%s: %s has no time in either run", what, f.Phase)
			}
		}
		near(what+"'s from", from, timing.OrZero(p.FromMS))
		near(what+"'s to", to, timing.OrZero(p.ToMS))
		near(what+"'s phases", delta, p.DeltaMS)
		near(what+"'s difference", p.DeltaMS, to-from)
	}
	part("outside", doc.OutsideModules)
	sum, titles := doc.OutsideModules.DeltaMS+*doc.ModuleResidueMS, map[string]bool{}
	for i := range doc.ModuleTimes {
		m := &doc.ModuleTimes[i]
		part(m.Title(), &m.TimePart)
		sum += m.DeltaMS
		if titles[m.Title()] || i > 0 && math.Abs(m.DeltaMS) > math.Abs(doc.ModuleTimes[i-1].DeltaMS) ||
			(m.Module == nil) != (m.Modules == 0) {
			t.Errorf("%s stands twice, or out of order, or for no module: %+v", m.Title(), m)
		}
	}
	near("all", sum, *doc.StepDeltaMS)
}

// checkPhasesOfModules checks that the modules' times in a phase sum to the phase's time, if a run of one rank was
// timed by module in that phase. Only for backward may recompute make a difference.
func checkPhasesOfModules(t *testing.T, doc *Explanation) {
	t.Helper()
	for side := range doc.Runs {
		of := func(p *PhasePart) *float64 { return []*float64{p.FromMS, p.ToMS}[side] }
		if doc.Runs[side].Params["ranks"] != 1 {
			continue
		}
		sums, times := map[string]float64{}, []*TimePart{doc.OutsideModules}
		for i := range doc.ModuleTimes {
			times = append(times, &doc.ModuleTimes[i].TimePart)
		}
		for _, m := range times {
			for i := range m.Phases {
				if ms := of(&m.Phases[i]); ms != nil {
					sums[m.Phases[i].Phase] += *ms
				}
			}
		}
		for i := range doc.Phases {
			p := &doc.Phases[i]
			sum, known := sums[p.Phase]
			if ms := of(p); known && sum > 0 && (memory.PhaseFamily(p.Phase) != "backward" || sums["recompute"] == 0) &&
				math.Abs(sum-timing.OrZero(ms)) > 1e-6 {
				t.Errorf("%s to %s: modules have %v ms of %s, whose time is %v", doc.From, doc.To, sum, p.Phase,
					timing.OrZero(ms))
			}
		}
	}
}

// randomTimes returns a run of random steps. The run may have several ranks, phases that only some steps have, a
// recompute that bare steps lack, modules that the table of modules lacks, and steps without rows.
func randomTimes(r *rand.Rand, name string) schemas.Tables {
	in := fixture.LayeredTimes(name)
	in.Steps, in.ModuleTimes, in.Modules = nil, nil, slices.Clone(in.Modules)
	ranks := 1 + r.IntN(2)
	in.Manifest.Params = map[string]any{"ranks": ranks}
	for rank := range int32(ranks) {
		if rank > 0 {
			for _, m := range in.Modules[:6] {
				m.Rank = rank
				in.Modules = append(in.Modules, m)
			}
		}
		for n := range int64(2 + r.IntN(6)) {
			s := schemas.Step{Rank: rank, Step: n, Instrumented: n%2 == 0, Warmup: n == 0 && r.IntN(2) == 0}
			for _, phase := range []string{"forward", "backward", "backward.norm", "backward.grad", "recompute",
				"noise", "optimizer"} {
				if r.IntN(5) == 0 || phase == "recompute" && !s.Instrumented {
					continue
				}
				rows := map[int64]int64{}
				for range r.IntN(5) {
					rows[r.Int64N(9)] += r.Int64N(50e6) // the table of modules lacks modules 7 and 8
				}
				ns := r.Int64N(1000) // this time is in no module's row
				for _, m := range slices.Sorted(maps.Keys(rows)) {
					ns += rows[m]
					if s.Instrumented {
						in.ModuleTimes = append(in.ModuleTimes, schemas.ModuleTime{Rank: rank, Step: n, Phase: phase,
							Module: m, DPHook: r.IntN(3) == 0, GPUNS: rows[m]})
					}
				}
				in.Phases = append(in.Phases, schemas.Phase{Rank: rank, Step: n, Phase: phase, GPUNS: new(ns), EndNS: ns})
				s.GPUNS += ns
			}
			s.GPUNS += 1
			s.WallNS, s.EndNS = s.GPUNS, s.GPUNS
			in.Steps = append(in.Steps, s)
		}
	}
	return in
}

func TestExplainedTimesSum(t *testing.T) {
	var runs []Input
	for seed := range uint64(40) {
		if d := NewInput(randomTimes(rand.New(rand.NewPCG(seed, 11)), fmt.Sprint("run", seed))); d.times != nil {
			runs = append(runs, d)
		}
	}
	if len(runs) < 20 {
		t.Fatalf("only %d of 40 runs have times of modules", len(runs))
	}
	for i := range runs {
		for j := range runs {
			doc, err := Explain(runs[i], runs[j])
			if err != nil {
				t.Fatal(err)
			}
			if doc.ModuleResidueMS == nil {
				t.Fatalf("%s to %s is not known by module", doc.From, doc.To)
			}
			checkExplainedTimes(t, &doc)
			checkPhasesOfModules(t, &doc)
			if i == j && (doc.OutsideModules.DeltaMS != 0 || *doc.ModuleResidueMS != 0 || len(doc.ModuleTimes) > 0 &&
				doc.ModuleTimes[0].DeltaMS != 0) {
				t.Errorf("%s differs from itself", doc.From)
			}
		}
	}
}

// If a recorded run has repeats, its times are medians over all of them. Each module keeps its share of a phase, as
// recorded.
func TestExplainedRepeats(t *testing.T) {
	from, to := fixture.PlainTimes(), fixture.GhostTimes()
	around := append(summaries.Repeats(from, 0.75, 0.6), summaries.Repeats(to, 0.5, 0.3, 0.15)...)
	a, b := NewInput(from), NewInput(to)
	own := a.times
	TakeRepeats([2]*Input{&a, &b}, around)
	if a.StepMS.N != 3 || a.StepMS.Over != timing.OverRepeats || a.StepMS.Of != timing.OfRange ||
		a.StepMS.Median != 1875 ||
		a.StepMS.Low != 1500 || a.StepMS.High != 2500 || b.StepMS.N != 4 {
		t.Fatalf("%+v, %+v", a.StepMS, b.StepMS)
	}
	if own.Repeats != 0 || a.times == own || a.times.Repeats != 3 {
		t.Errorf("%+v, and before %+v", a.times.ModuleTiming, own.ModuleTiming)
	}
	doc, err := Explain(a, b)
	if err != nil {
		t.Fatal(err)
	}
	checkExplainedTimes(t, &doc)
	head := doc.ModuleTimes[slices.IndexFunc(doc.ModuleTimes, func(m ModuleTimePart) bool {
		return m.Title() == "head"
	})]
	// The shares are equal: 600 ms of 2,500 ms, and 450 ms of 1,875 ms.
	if math.Abs(*head.FromMS-450) > 1e-6 || math.Abs(*doc.ModuleResidueMS) > 1e-6 {
		t.Errorf("%+v, residue %v ms", head, *doc.ModuleResidueMS)
	}
	// If both runs are repeats of the same experiment, each keeps its own times.
	again := fixture.PlainTimes()
	again.Manifest.Suite, again.Manifest.RunID = from.Manifest.Suite, "again"
	a, b = NewInput(from), NewInput(again)
	if TakeRepeats([2]*Input{&a, &b}, around); a.StepMS.Over != timing.OverSteps || b.StepMS.Over != timing.OverSteps ||
		a.times.Repeats != 0 {
		t.Errorf("%+v, %+v", a.StepMS, b.StepMS)
	}
}

// With repeats, a step time has the range of all repeats, with the confidence that the range covers the median. The
// times of each phase use the phase's own clock.
func TestExplainedRepeatsHaveTheirRange(t *testing.T) {
	from, to := fixture.PlainTimes(), fixture.GhostTimes()
	around := summaries.Repeats(from, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
	a, b := NewInput(from), NewInput(to)
	TakeRepeats([2]*Input{&a, &b}, around)
	if want := 1 - math.Pow(2, -9); a.StepMS.N != 10 || a.StepMS.Low != 250 || a.StepMS.High != 2500 ||
		math.Abs(a.StepMS.Confidence-want) > 1e-9 {
		t.Errorf("%+v, want a confidence of %v", a.StepMS, want)
	}
	again := NewInput(from) // the same runs occur twice, as in a store and its copy
	if TakeRepeats([2]*Input{&again, &b}, slices.Concat(around, around)); again.StepMS.N != 10 {
		t.Errorf("%d repeats, of which some are the same run", again.StepMS.N)
	}
	again = NewInput(from)
	if found := OtherRepeats([]*analyze.Summary{&again.Summary}, slices.Concat(around, around)); len(found) != 1 ||
		found[0].Here != 1 || found[0].StepMS.N != 10 || found[0].InPlace {
		t.Errorf("%+v", found)
	}
	if p := a.PhaseTimes["forward"]; p.Wall.Clock != timing.ClockWall || p.GPU.Clock != timing.ClockGPU {
		t.Errorf("%+v, %+v", p.Wall, p.GPU)
	}
}

// For any times of the repeats, the parts of the explanation sum to the difference.
func TestExplainedRepeatsSum(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 5))
	for seed := range uint64(60) {
		from, to := randomTimes(rand.New(rand.NewPCG(seed, 1)), "a"), randomTimes(rand.New(rand.NewPCG(seed, 2)), "b")
		around := append(summaries.Repeats(from, r.Float64(), r.Float64()), summaries.Repeats(to, r.Float64())...)
		a, b := NewInput(from), NewInput(to)
		if a.times == nil || b.times == nil {
			continue
		}
		TakeRepeats([2]*Input{&a, &b}, around)
		doc, err := Explain(a, b)
		if err != nil {
			t.Fatal(err)
		}
		checkExplainedTimes(t, &doc)
		checkPhasesOfModules(t, &doc)
	}
}
