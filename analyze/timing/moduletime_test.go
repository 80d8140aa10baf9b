package timing

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/schemas"
)

func TestModuleTimes(t *testing.T) {
	in := fixture.TimedModules()
	r := ModuleTimes(in, ModuleTimeBy{Dimension: grouping.DimensionModule})
	idling := []Remark{{Kind: RemarkIdling, StepMS: 110, InstrumentedMS: 130}}
	if len(r.Ranks) != 1 || !reflect.DeepEqual(r.Remarks, idling) {
		t.Fatalf("%+v", r)
	}
	d := r.Ranks[0]
	if d.BareSteps != 2 || d.InstrumentedSteps != 2 || *d.StepMS != 110 || *d.InstrumentedStepMS != 130 {
		t.Errorf("%+v", d)
	}
	// In bare steps, forward takes 36 ms and backward 74 ms. In instrumented steps, forward takes 42 ms, backward 64 ms
	// and recompute 24 ms. The times of backward and recompute are scaled so that together they are 74 ms.
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v ms, want %v", what, got, want)
		}
	}
	scale := 74.0 / 88
	want := map[string]float64{"layers.0": 18 + 24*scale, "layers.1": 9 + 48*scale, "head": 16 * scale}
	sum := d.OutsideMS + *d.ResidueMS
	for _, row := range d.Rows {
		near(*row.Key, row.MS, want[*row.Key])
		phases := 0.0
		for _, ms := range row.Phases {
			phases += ms
		}
		near(*row.Key+"'s phases", phases, row.MS)
		sum += row.MS
	}
	near("outside", d.OutsideMS, 9)
	near("residue", *d.ResidueMS, 0)
	near("all", sum, *d.StepMS)
	if len(d.Rows) != 3 || *d.Rows[0].Key != "layers.1" {
		t.Errorf("rows %+v", d.Rows)
	}
	near("hook", d.Rows[0].HookMS, 16*scale)

	folded := ModuleTimes(in, ModuleTimeBy{Dimension: grouping.DimensionModule, Fold: true}).Ranks[0].Rows
	if len(folded) != 2 || *folded[0].Key != "layers.*" || folded[0].Modules != 2 {
		t.Errorf("folded %+v", folded)
	}
	near("folded", folded[0].MS, want["layers.0"]+want["layers.1"])
	classes := ModuleTimes(in, ModuleTimeBy{Dimension: grouping.DimensionClass}).Ranks[0].Rows
	if len(classes) != 1 || *classes[0].Key != "Linear" || classes[0].Modules != 3 {
		t.Errorf("classes %+v", classes)
	}
	top := ModuleTimes(in, ModuleTimeBy{Dimension: grouping.DimensionModule, Top: 1}).Ranks[0].Rows
	if len(top) != 2 || top[1].Key != nil || top[1].Others != 2 {
		t.Errorf("top %+v", top)
	}
	near("others", top[1].MS, want["layers.0"]+want["head"])
}

// If a step's phases were not marked, its whole time counts as between. The step does not affect the times of phases in
// other steps.
func TestTimesBesideStepsWithoutPhases(t *testing.T) {
	in := fixture.TimedModules()
	phased := len(in.Steps)
	for n := int64(phased); n < int64(3*phased); n++ {
		in.Steps = append(in.Steps, schemas.Step{Step: n, Unphased: true, GPUNS: 100e6})
		in.Phases = append(in.Phases, schemas.Phase{Step: n, Phase: "between", GPUNS: new(int64(99e6))},
			schemas.Phase{Step: n, Phase: "optimizer", GPUNS: new(int64(1e6))})
	}
	d := ModuleTimes(in, ModuleTimeBy{Dimension: grouping.DimensionModule}).Ranks[0]
	if d.BareSteps != 2 || *d.StepMS != 100 || math.Abs(*d.ResidueMS+10) > 1e-9 {
		t.Errorf("%d bare steps of %v ms, residue %v ms", d.BareSteps, *d.StepMS, *d.ResidueMS)
	}
	times := Of(&in)
	if step := times.Step(); step.N != 12 || step.Median != 100 {
		t.Errorf("step %+v", step)
	}
	got := times.Phases(&in)
	if len(got) != 2 || got["forward"].GPU.Median != 36 || got["backward"].GPU.Median != 74 ||
		got["backward"].GPU.N != 2 {
		t.Errorf("phases %+v", got)
	}
}

// If a module takes long in one instrumented step, since it loaded a kernel or waited, the step does not change the
// module's share. The three other instrumented steps are alike. All parts still sum to the time of a bare step.
func TestModuleTimesOfAnOutlier(t *testing.T) {
	in := fixture.LayeredTimes("ghost", fixture.Spent{Phase: "forward", Module: 4, Hook: false, Ms: 30},
		fixture.Spent{Phase: "forward", Module: 6, Hook: false, Ms: 10},
		fixture.Spent{Phase: "optimizer", Module: 0, Hook: false, Ms: 5})
	for n := int64(4); n < 6; n++ { // add a third and a fourth instrumented step
		for _, m := range in.ModuleTimes[:3] {
			m.Step = n
			in.ModuleTimes = append(in.ModuleTimes, m)
		}
		s := in.Steps[0]
		s.Step = n
		in.Steps = append(in.Steps, s)
	}
	late := slices.IndexFunc(in.ModuleTimes, func(m schemas.ModuleTime) bool { return m.Step == 5 && m.Module == 6 })
	in.ModuleTimes[late].GPUNS += 400e6
	in.Steps[len(in.Steps)-1].GPUNS += 400e6
	r := ModuleTimes(in, ModuleTimeBy{Dimension: grouping.DimensionModule})
	d := r.Ranks[0]
	if len(d.Rows) != 2 || *d.Rows[0].Key != "blocks.0.up" || math.Abs(d.Rows[0].MS-30) > 1e-9 ||
		math.Abs(d.Rows[1].MS-10) > 1e-9 || math.Abs(d.OutsideMS-5) > 1e-9 || math.Abs(*d.ResidueMS) > 1e-9 {
		t.Errorf("%+v, outside %v ms, residue %v ms", d.Rows, d.OutsideMS, *d.ResidueMS)
	}
	if *d.InstrumentedStepMS != 90 || d.InstrumentedSteps != 4 {
		t.Errorf("%d instrumented steps of %v ms", d.InstrumentedSteps, *d.InstrumentedStepMS)
	}
	// If different modules run in different steps, they share the time of the phase.
	turns := slices.Clone(in.ModuleTimes)
	in.ModuleTimes = slices.DeleteFunc(slices.Clone(turns), func(m schemas.ModuleTime) bool {
		return m.Phase == "forward" && (m.Module == 6) != (m.Step < 4)
	})
	if d := ModuleTimes(in, ModuleTimeBy{Dimension: grouping.DimensionModule}).Ranks[0]; math.Abs(
		d.Rows[0].MS-30) > 1e-9 ||
		math.Abs(d.Rows[1].MS-10) > 1e-9 || math.Abs(*d.ResidueMS) > 1e-9 {
		t.Errorf("modules by turns: %+v, residue %v ms", d.Rows, *d.ResidueMS)
	}
	in.ModuleTimes = turns
	// If a module has a time in only one of four steps, this time may be a wait. A module with only such a time gets no
	// time.
	in.ModuleTimes = slices.DeleteFunc(in.ModuleTimes, func(m schemas.ModuleTime) bool {
		return m.Module == 6 && m.Step != 5
	})
	if d := ModuleTimes(in, ModuleTimeBy{Dimension: grouping.DimensionModule}).Ranks[0]; math.Abs(
		d.Rows[0].MS-40) > 1e-9 ||
		d.Rows[1].MS != 0 {
		t.Errorf("what one of four steps has: %+v", d.Rows)
	}
}

func TestModuleTimesThatAreNotThere(t *testing.T) {
	for _, c := range []struct {
		name   string
		why    RemarkKind
		change func(*schemas.Tables)
	}{
		{"predicted", RemarkPredicted, func(in *schemas.Tables) { in.Manifest.Source = schemas.Predicted }},
		{"bare", RemarkBareRun, func(in *schemas.Tables) {
			in.Manifest.Bare = true
		}},
		{"older", RemarkModulesNotRecorded, func(in *schemas.Tables) { in.ModuleTimes = nil }},
		{"not ingested", RemarkNotIngested, func(in *schemas.Tables) {
			*in = schemas.Tables{Manifest: in.Manifest}
		}},
	} {
		in := fixture.TimedModules()
		c.change(&in)
		if r := ModuleTimes(in, ModuleTimeBy{Dimension: grouping.DimensionModule}); len(r.Ranks) != 0 ||
			!reflect.DeepEqual(r.Remarks, []Remark{{Kind: c.why}}) {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	in := fixture.TimedModules()
	in.Steps[2].Instrumented, in.Steps[4].Instrumented = true, true // without a bare step, the shares are not scaled
	r := ModuleTimes(in, ModuleTimeBy{Dimension: grouping.DimensionModule})
	if len(r.Remarks) != 1 || r.Remarks[0].Kind != RemarkUnscaled || r.Ranks[0].Phases[0].Scale != 1 {
		t.Errorf("%+v", r)
	}
	for _, by := range []ModuleTimeBy{{Dimension: grouping.DimensionStep},
		{Dimension: grouping.DimensionClass, Fold: true},
		{Dimension: grouping.DimensionModule, Top: -1}, {Dimension: grouping.DimensionModule, Depth: -1}} {
		if by.Check() == nil {
			t.Errorf("%+v makes sense", by)
		}
	}
}

// If the times of a rank's modules are unknown, the rank is left out and not listed with zeros.
func TestModuleTimesOfWarmUpOnly(t *testing.T) {
	in := fixture.TimedModules()
	for i := range in.Steps {
		in.Steps[i].Warmup = in.Steps[i].Instrumented
	}
	if r := ModuleTimes(in, ModuleTimeBy{Dimension: grouping.DimensionModule}); len(r.Ranks) != 0 ||
		!reflect.DeepEqual(r.Remarks, []Remark{{Kind: RemarkNoInstrumented}}) {
		t.Errorf("%+v", r)
	}
}

// A sum of floats depends on the order of the terms, and a Go map has no order. Still, the same recording must always
// give the same bits.
func TestModuleTimesAreTheSameEachTime(t *testing.T) {
	phases := []string{schemas.PhaseForward, schemas.PhaseBackward, schemas.PhaseBackwardNorm,
		schemas.PhaseBackwardGrad, schemas.PhaseRecompute}
	steps, bare := map[int64]int64{1: 1}, map[string]float64{}
	var times []schemas.ModuleTime
	for i, p := range phases {
		if p != schemas.PhaseRecompute {
			bare[p] = 0.1 * float64(i+1)
		}
		for module := range int64(40) {
			times = append(times, schemas.ModuleTime{Step: 1, Phase: p, Module: module, GPUNS: 1 + 100003*module*module})
		}
	}
	sums := func() (out []float64) {
		s := newShares(times, steps)
		scale := s.Scale(bare)
		for _, p := range phases {
			out = append(out, s.Phase[p], scale(p))
		}
		return out
	}
	first := sums()
	for range 100 {
		if again := sums(); !slices.Equal(first, again) {
			t.Fatalf("%v, then %v", first, again)
		}
	}
}
