package explain

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

func ghostTimes() schemas.Tables {
	return fixture.LayeredTimes("ghost", fixture.Spent{Phase: "forward", Module: 4, Hook: false, Ms: 300},
		fixture.Spent{Phase: "forward", Module: 5, Hook: false, Ms: 301},
		fixture.Spent{Phase: "forward", Module: 6, Hook: false, Ms: 200},
		fixture.Spent{Phase: "forward", Module: 0, Hook: false, Ms: 10},
		fixture.Spent{Phase: "backward.norm", Module: 4, Hook: false, Ms: 500},
		fixture.Spent{Phase: "backward.norm", Module: 5, Hook: false, Ms: 500},
		fixture.Spent{Phase: "backward.norm", Module: 6, Hook: false,
			Ms: 400}, fixture.Spent{Phase: "backward.norm", Module: 6, Hook: true, Ms: 9000},
		fixture.Spent{Phase: "backward.norm", Module: 5, Hook: true, Ms: 1000},
		fixture.Spent{Phase: "backward.grad", Module: 4, Hook: false, Ms: 600},
		fixture.Spent{Phase: "backward.grad", Module: 5, Hook: false,
			Ms: 600}, fixture.Spent{Phase: "backward.grad", Module: 6, Hook: false, Ms: 400},
		fixture.Spent{Phase: "optimizer", Module: 0, Hook: false, Ms: 85})
}

func explained(t *testing.T, from, to schemas.Tables) Document {
	t.Helper()
	doc, err := Explain(NewInput(from), NewInput(to))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestExplainedModuleTimes(t *testing.T) {
	doc := explained(t, fixture.PlainTimes(), ghostTimes())
	type row struct {
		title            string
		from, to, hook   float64
		delta            float64
		phases, noPhases int // of which the other run has none
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
	for _, c := range []struct {
		doc  Document
		want []string
	}{
		{doc, []string{"Of the 11,396.0 ms that ghost's step takes longer than plain's, 9,400.0 ms (82 %) lie in the " +
			"backward of head and 2,000.0 ms (18 %) the backward of blocks.*.up (2 modules); 2 other parts come to " +
			"−4.000 ms.",
			"In ghost's step, 10,000.0 ms (72 %) are of norms and per-sample gradients in DP hooks, 9,000.0 ms of " +
				"them for head."}},
		{explained(t, ghostTimes(), fixture.PlainTimes()), []string{"Of the 11,396.0 ms that plain's step takes " +
			"less than " +
			"ghost's, 9,400.0 ms (82 %) lie in the backward of head",
			"In ghost's step, 10,000.0 ms (72 %) are of"}},
		{explained(t, fixture.PlainTimes(), fixture.LayeredTimes("other",
			fixture.Spent{Phase: "forward", Module: 4, Hook: false, Ms: 2010},
			fixture.Spent{Phase: "backward", Module: 4, Hook: true,
				Ms: 490})), []string{
			"That other's step takes as long as plain's is the sum of 1,410.0 ms more of the forward of blocks.*.up " +
				"(2 modules), 710.0 ms less of the backward of blocks.*.up (2 modules), " +
				"400.0 ms less of the backward of head (other has none)", "one other of the parts comes to −10.0 ms.",
			"490.0 ms (20 %) are of norms and per-sample gradients in DP hooks, all of them for"}},
	} {
		got := strings.Join(c.doc.ModuleTimeSentences(), "\n")
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	}
}

// Where modules were not timed in both runs, or the steps' clock is another, nothing is given by module, and that is
// said.
func TestUnexplainedModuleTimes(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(from, to *schemas.Tables)
		want   string
	}{
		{"older", func(from, _ *schemas.Tables) { from.ModuleTimes = nil },
			"The difference of the steps is not known by " +
				"module: there are no times of modules of plain."},
		{"bare", func(from, to *schemas.Tables) {
			from.Manifest.Bare, to.Manifest.Bare = true, true
		}, "there are no times of modules of plain and ghost."},
		{"warm-up", func(_, to *schemas.Tables) {
			to.Steps[0].Warmup, to.Steps[2].Warmup = true, true
		}, "there are no times of modules of ghost."},
		{"wall", func(from, to *schemas.Tables) {
			from.Steps[1].GPUNS, to.Steps[1].GPUNS = 0, 0
		}, "steps are compared in wall time, and modules are timed on the GPU."},
	} {
		from, to := fixture.PlainTimes(), ghostTimes()
		c.change(&from, &to)
		doc := explained(t, from, to)
		if len(doc.ModuleTimes) != 0 || doc.OutsideModules != nil || doc.ModuleResidueMS != nil ||
			len(doc.ModuleTimeSentences()) != 0 ||
			!strings.HasSuffix(strings.Join(doc.TimeSentences(), "\n"), c.want) {
			t.Errorf("%s: %q, %+v", c.name, doc.TimeSentences(), doc.ModuleTimes)
		}
	}
}

// The slowest rank's modules stand for the run.
func TestExplainedModuleTimesOfRanks(t *testing.T) {
	to := ghostTimes()
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

// checkExplainedTimes holds the times by module to their sums.
func checkExplainedTimes(t *testing.T, doc *Document) {
	t.Helper()
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > rounding {
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

// checkPhasesOfModules holds the modules of each phase to the phase's own time, where a run of one rank was timed by
// module in it. Recompute makes a difference to backward alone.
func checkPhasesOfModules(t *testing.T, doc *Document) {
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
				math.Abs(sum-timing.OrZero(ms)) > rounding {
				t.Errorf("%s to %s: modules have %v ms of %s, whose time is %v", doc.From, doc.To, sum, p.Phase,
					timing.OrZero(ms))
			}
		}
	}
}

// randomTimes is a run of random steps: ranks, phases that only some steps have, a recompute that bare steps lack,
// modules that the table of modules does not know, and steps that lack rows.
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
					rows[r.Int64N(9)] += r.Int64N(50e6) // modules 7 and 8 are not known
				}
				ns := r.Int64N(1000) // that no module's row has
				for _, m := range slices.Sorted(maps.Keys(rows)) {
					ns += rows[m]
					if s.Instrumented {
						in.ModuleTimes = append(in.ModuleTimes, schemas.ModuleTime{Rank: rank, Step: n, Phase: phase,
							Module: m, DPHook: r.IntN(3) == 0, GPUNS: rows[m]})
					}
				}
				in.Phases = append(in.Phases, schemas.Phase{Rank: rank, Step: n, Phase: phase, GPUNS: ns, EndNS: ns})
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

// repeated makes further repeats of a run, of its bare steps, each so many times as slow.
func repeated(in schemas.Tables, factors ...float64) []analyze.Summary {
	in.Manifest.Suite = &schemas.SuiteRef{Name: "suite", Key: in.Manifest.Name}
	var out []analyze.Summary
	for i, f := range factors {
		m := *in.Manifest
		m.RunID, m.Bare, m.Suite = fmt.Sprint(m.RunID, i), true, &schemas.SuiteRef{Name: "suite", Key: m.Name,
			Repetition: i + 1}
		instrumented := map[int64]bool{}
		o := schemas.Tables{Manifest: &m, Report: in.Report}
		for _, s := range in.Steps {
			if instrumented[s.Step] = s.Instrumented; !s.Instrumented {
				o.Steps = append(o.Steps, s)
			}
		}
		for _, p := range in.Phases {
			if !instrumented[p.Step] {
				o.Phases = append(o.Phases, p)
			}
		}
		for k := range o.Steps {
			s := &o.Steps[k]
			s.GPUNS, s.WallNS = int64(f*float64(s.GPUNS)), int64(f*float64(s.WallNS))
		}
		for k := range o.Phases {
			o.Phases[k].GPUNS = int64(f * float64(o.Phases[k].GPUNS))
		}
		out = append(out, analyze.SummarizeForComparison(o))
	}
	return out
}

// A recorded run is but one of its repeats: times are medians over all of them, and modules keep their shares of the
// phases.
func TestExplainedRepeats(t *testing.T) {
	from, to := fixture.PlainTimes(), ghostTimes()
	around := append(repeated(from, 0.75, 0.6), repeated(to, 0.5, 0.3, 0.15)...)
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
	// 600 of 2,500 ms are as many of 1,875
	if math.Abs(*head.FromMS-450) > 1e-6 || math.Abs(*doc.ModuleResidueMS) > 1e-6 {
		t.Errorf("%+v, residue %v ms", head, *doc.ModuleResidueMS)
	}
	text := strings.Join(doc.Sentences, "\n")
	for _, want := range []string{"A step of ghost takes 5,558.4 ms, 3,683.4 ms (196 %) more than one of plain " +
		"(1,875.0 ms): medians of 4 repeats (2,084.4 ms to 13,896.0 ms) and of 3 repeats (1,500.0 ms to 2,500.0 ms), " +
		"in GPU time.",
		"The ranges of the repeats overlap: which of the two is faster depends on the repeat."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if want := "plain: times are medians over 3 repeats in the store, whose steps take 1,500.0 ms to 2,500.0 ms; " +
		"that of run plain takes 2,500.0 ms"; !slices.Contains(doc.Warnings, want) {
		t.Errorf("no %q in %q", want, doc.Warnings)
	}
	// Of two repeats of one experiment each has its own times.
	again := fixture.PlainTimes()
	again.Manifest.Suite, again.Manifest.RunID = from.Manifest.Suite, "again"
	a, b = NewInput(from), NewInput(again)
	if TakeRepeats([2]*Input{&a, &b}, around); a.StepMS.Over != timing.OverSteps || b.StepMS.Over != timing.OverSteps ||
		a.times.Repeats != 0 {
		t.Errorf("%+v, %+v", a.StepMS, b.StepMS)
	}
}

// The confidence is that of the range, however many repeats there are, and each phase's times are by its own clock.
func TestExplainedRepeatsHaveTheirRange(t *testing.T) {
	from, to := fixture.PlainTimes(), ghostTimes()
	around := repeated(from, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
	a, b := NewInput(from), NewInput(to)
	TakeRepeats([2]*Input{&a, &b}, around)
	if want := 1 - math.Pow(2, -9); a.StepMS.N != 10 || a.StepMS.Low != 250 || a.StepMS.High != 2500 ||
		math.Abs(a.StepMS.Confidence-want) > 1e-9 {
		t.Errorf("%+v, want a confidence of %v", a.StepMS, want)
	}
	again := NewInput(from) // of a store and its copy
	if TakeRepeats([2]*Input{&again, &b}, slices.Concat(around, around)); again.StepMS.N != 10 {
		t.Errorf("%d repeats, of which some are the same run", again.StepMS.N)
	}
	again = NewInput(from)
	if NoteRepeats([]*analyze.Summary{&again.Summary}, slices.Concat(around, around)); !strings.HasPrefix(
		again.Warnings[len(again.Warnings)-1], "one of 10 repeats") {
		t.Errorf("%q", again.Warnings)
	}
	if p := a.PhaseTimes["forward"]; p.Wall.Clock != timing.ClockWall || p.GPU.Clock != timing.ClockGPU {
		t.Errorf("%+v, %+v", p.Wall, p.GPU)
	}
}

// Whatever the repeats take, all still sums.
func TestExplainedRepeatsSum(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 5))
	for seed := range uint64(60) {
		from, to := randomTimes(rand.New(rand.NewPCG(seed, 1)), "a"), randomTimes(rand.New(rand.NewPCG(seed, 2)), "b")
		around := append(repeated(from, r.Float64(), r.Float64()), repeated(to, r.Float64())...)
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
