package compare_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

func TestRepeatsAreOneCell(t *testing.T) {
	v, g := map[string]any{"method": "vanilla"}, map[string]any{"method": "ghost"}
	runs := []analyze.Summary{
		summaries.SuiteRun("v1", "v", v, 0, 100), summaries.SuiteRun("g1", "g", g, 512, 210),
		summaries.SuiteRun("v2", "v", v, 0, 120),
		summaries.SuiteRun("g2", "g", g, 1024, 200),
		summaries.SuiteRun("v3", "v", v, 0, 110), summaries.SuiteRun("g3", "g", g, 2048, 220),
		summaries.SuiteRun("v4", "v", v, 0, 130),
		summaries.SuiteRun("v5", "v", v, 0, 90),
	}
	failed := summaries.SuiteRun("g4", "g", g, 1<<30, 1)
	failed.Status = schemas.StatusOOM
	s := told(NewMatchedStudy(append(runs, failed), nil, ""))
	if len(s.Cells) != 2 || !slices.Equal(s.Cells[0].RunIDs, []string{"v1", "v2", "v3", "v4", "v5"}) {
		t.Fatalf("%d cells, the first of %v", len(s.Cells), s.Cells[0].RunIDs)
	}
	plain, ghost := &s.Cells[0], &s.Cells[1]
	if want := (timing.Interval{Median: 111, Low: 91, High: 131, N: 5, Of: timing.OfRange, Confidence: 1 - 2.0/32,
		Over: timing.OverRepeats, Clock: timing.ClockGPU}); *plain.StepMS != want {
		t.Errorf("vanilla: %+v, want %+v", *plain.StepMS, want)
	}
	if *plain.PeakLow != *plain.PeakHigh || slices.Contains(kinds(plain.Remarks), RemarkPeaksDiffer) {
		t.Errorf("equal peaks: %d to %d, %+v", *plain.PeakLow, *plain.PeakHigh, plain.Remarks)
	}
	if ghost.RunID != "g2" || *ghost.PeakHigh-*ghost.PeakLow != 1536 || ghost.Good != 3 || ghost.StepMS.Median != 211 {
		t.Errorf("ghost is shown as %s, %d to %d, %d good, %+v", ghost.RunID, *ghost.PeakLow, *ghost.PeakHigh,
			ghost.Good, *ghost.StepMS)
	}
	w := strings.Join(ghost.Overhead.Warnings, "; ")
	if !strings.Contains(w, "peaks of 3 repeats differ") ||
		!strings.Contains(w, "1 of 4 repeats did not end well (1 oom)") {
		t.Errorf("warnings %q", w)
	}
	if o := ghost.Overhead; *o.StepDeltaMS != 100 || *o.PeakDeltaBytes != 1024 || o.Baseline != plain.RunID {
		t.Errorf("ghost over vanilla: %v ms, %v bytes, over %s", *o.StepDeltaMS, *o.PeakDeltaBytes, o.Baseline)
	}
	if p := ghost.Overhead.Phases[0]; math.Abs(*p.MS-105.5) > 1e-9 || math.Abs(*p.DeltaMS-50) > 1e-9 {
		t.Errorf("forward: %v ms, %v more", *p.MS, *p.DeltaMS)
	}
	if len(s.Overhead.Runs) != 9 || len(s.Overhead.Cells) != 2 {
		t.Errorf("%d runs, %d cells in the document", len(s.Overhead.Runs), len(s.Overhead.Cells))
	}
}

// If only some repeats have a phase, the phase's time counts as 0 in the other repeats. The order of the repeats does
// not matter.
func TestPhaseOfSomeRepeats(t *testing.T) {
	v := map[string]any{"method": "vanilla"}
	runs := []analyze.Summary{summaries.SuiteRun("v1", "v", v, 0, 100), summaries.SuiteRun("v2", "v", v, 0, 100),
		summaries.SuiteRun("v3", "v", v, 0, 100)}
	for i, ms := range []float64{0, 8, 6} {
		if ms > 0 {
			runs[i].PhaseTimes = maps.Clone(runs[i].PhaseTimes)
			runs[i].PhaseTimes[schemas.PhaseNoise] = timing.PhaseTime{Clock: timing.ClockGPU,
				GPU: &timing.Interval{Median: ms,
					Clock: timing.ClockGPU}}
		}
	}
	for range runs {
		runs = append(runs[1:], runs[0])
		times := told(NewMatchedStudy(runs, nil, "")).Cells[0].PhaseTimes[schemas.PhaseNoise]
		if times.GPU == nil || times.GPU.Median != 6 || times.GPU.Low != 0 || times.GPU.High != 8 || times.GPU.N != 3 ||
			times.Wall != nil {
			t.Errorf("%s first: %+v", runs[0].RunID, times.GPU)
		}
	}
}

// If only one repeat ended well, the cell's interval of the step time is over the steps of this repeat.
func TestOneGoodRepeat(t *testing.T) {
	p := map[string]any{"method": "vanilla"}
	runs := []analyze.Summary{summaries.SuiteRun("a", "k", p, 0, 100), summaries.SuiteRun("b", "k", p, 0, 1)}
	runs[1].Status = schemas.StatusTimeout
	c := Cells(runs)
	if len(c) != 1 || c[0].Good != 1 || c[0].RunID != "a" || c[0].StepMS.Over != timing.OverSteps ||
		c[0].StepMS.N != 3 {
		t.Errorf("%+v", c[0].StepMS)
	}
	runs[0].Status = schemas.StatusOOM
	if c := Cells(runs); len(c) != 1 || c[0].Good != 0 || c[0].Status == schemas.StatusOK {
		t.Errorf("no repeat ended well: %+v", c[0].Identity)
	}
}

// Runs in different environments are no repeats of each other. Two runs of a script are no repeats either, since the
// script may have changed between the runs.
func TestWhatIsNoRepeat(t *testing.T) {
	p := map[string]any{"method": "ghost"}
	same, other := fixture.TimedRun("a", 1), fixture.TimedRun("b", 1)
	for _, in := range []*schemas.Tables{&same, &other} {
		in.Manifest.Name, in.Manifest.Params = "ghost", p
		in.Manifest.Environment = &schemas.Environment{Torch: "2.11.0"}
	}
	count := func() int { return len(Cells([]analyze.Summary{analyze.Summarize(same), analyze.Summarize(other)})) }
	if count() != 1 {
		t.Error("two runs of the same method and parameters are two experiments")
	}
	other.Manifest.Environment = &schemas.Environment{Torch: "2.15.0"}
	if count() != 2 {
		t.Error("runs of two torch versions are repeats")
	}
	other.Manifest.Environment = same.Manifest.Environment
	other.Manifest.Params = map[string]any{"method": "ghost", "seq_len": 8.0}
	if count() != 2 {
		t.Error("runs of other parameters are repeats")
	}
	same.Manifest.Params, other.Manifest.Params = nil, nil
	if count() != 2 {
		t.Error("two runs of a script are repeats: it may have changed")
	}
}

func TestEachCellHasTheBaselineOfItsParameters(t *testing.T) {
	params := func(method, model string, batch float64) map[string]any {
		return map[string]any{"method": method, "model": model, "batch_size": batch}
	}
	runs := []analyze.Summary{
		summaries.SuiteRun("g4", "g4", params("ghost", "transformer", 4), 0, 10),
		summaries.SuiteRun("v4", "v4", params("vanilla", "transformer", 4), 0, 10),
		summaries.SuiteRun("g8", "g8", params("ghost", "transformer", 8), 0, 10),
		summaries.SuiteRun("v8", "v8", params("vanilla", "transformer", 8), 0, 10),
		summaries.SuiteRun("m", "m", params("ghost", "mlp", 4), 0, 10),
	}
	s := told(NewMatchedStudy(runs, map[string]any{"method": "vanilla"}, ""))
	for i, want := range []string{"v4", "v4", "v8", "v8", "v4"} {
		if got := s.Cells[i].Baseline.RunID; got != want {
			t.Errorf("%s is compared with %s, want %s", s.Cells[i].RunID, got, want)
		}
	}
	if w := strings.Join(s.Cells[2].Overhead.Warnings, "; "); strings.Contains(w, "differs") {
		t.Errorf("a matched baseline is called unfair: %s", w)
	}
	if w := strings.Join(s.Cells[4].Overhead.Warnings, "; "); !strings.Contains(w, "model differs: mlp, baseline "+
		"transformer") {
		t.Errorf("no baseline has the same model, and nobody says so: %q", w)
	}
	if !s.SeveralBaselines || s.Overhead.Baseline != "v4" || !s.Cells[3].IsBaseline() || s.Cells[4].IsBaseline() {
		t.Errorf("several %v, document over %s", s.SeveralBaselines, s.Overhead.Baseline)
	}
	if c := s.Configuration; !slices.Equal(c.Varying, []string{"method", "model", "batch_size"}) || len(c.Common) != 0 {
		t.Errorf("configuration %+v", c)
	}
	one := told(NewStudy(runs, &runs[3]))
	for i := range one.Cells {
		if one.Cells[i].Baseline.RunID != "v8" {
			t.Error("a baseline that was named is everybody's")
		}
	}
}

// A bare twin gets no cell, and its energy goes to the cell of the full run. A bare run without a full twin gets a
// cell.
func TestBareTwins(t *testing.T) {
	full := summaries.SuiteRun("v", "v", map[string]any{"method": "vanilla", "num_iter": 3.0}, 0, 100)
	in := fixture.TimedRun("b", 100)
	in.Manifest.Name, in.Manifest.Bare, in.Manifest.Params = "v-bare", true, map[string]any{"method": "vanilla",
		"num_iter": 5.0}
	in.Manifest.Suite = &schemas.SuiteRef{Key: "vb"}
	bare := analyze.Summarize(in)
	j := 7.0
	bare.JoulesPerStep, bare.JoulesPerSample = &j, &j
	s := told(NewMatchedStudy([]analyze.Summary{full, bare}, nil, ""))
	if len(s.Cells) != 1 || s.Cells[0].RunID != "v" || *s.Cells[0].JoulesPerSample != 7 || len(s.Overhead.Runs) != 2 {
		t.Errorf("%d cells, %+v", len(s.Cells), s.Twins)
	}
	if !slices.Equal(s.Twins, []string{"v-bare"}) {
		t.Errorf("twins %q", s.Twins)
	}
	if s := told(NewMatchedStudy([]analyze.Summary{bare}, nil, "")); len(s.Cells) != 1 {
		t.Error("a bare run by itself is left out")
	}
	named := []analyze.Summary{full} // the study has no bare twin
	named[0].NoEnergy = timing.EnergyTooShort
	LendEnergy(named, []analyze.Summary{bare})
	if n := &named[0]; n.JoulesPerSample == nil || *n.JoulesPerSample != 7 || n.NoEnergy != "" ||
		!slices.Equal(kinds(RemarksOf(n)), []RemarkKind{RemarkEnergyLent}) {
		t.Errorf("%v J, %q, %q", n.JoulesPerSample, n.NoEnergy, kinds(RemarksOf(n)))
	}
	if full.EnergyLent {
		t.Error("the run itself was changed")
	}
	other := bare
	other.Key, other.RunFacts = "", append(slices.Clone(bare.RunFacts),
		identity.Fact{What: "batch_size", Value: "8", Condition: true,
			Param: true})
	own := []analyze.Summary{full, full}
	own[0].NoEnergy, own[1].NoEnergy, own[1].Status = timing.EnergyTooShort, timing.EnergyTooShort, schemas.StatusOOM
	LendEnergy(own[:1], []analyze.Summary{other})
	LendEnergy(own[1:], []analyze.Summary{bare})
	if own[0].JoulesPerSample != nil || own[1].JoulesPerSample != nil {
		t.Error("the energy of another experiment, or to a run that failed")
	}
	gan, scripts := bare, []analyze.Summary{full}
	gan.Params, gan.Script = map[string]any{"bare": true}, "gan.py"
	scripts[0].Params, scripts[0].Script, scripts[0].NoEnergy = nil, "resnet.py", timing.EnergyTooShort
	if LendEnergy(scripts, []analyze.Summary{gan}); scripts[0].JoulesPerSample != nil {
		t.Error("the energy of another script")
	}
	gan.Script = "resnet.py"
	if LendEnergy(scripts, []analyze.Summary{gan}); scripts[0].JoulesPerSample == nil {
		t.Error("no energy of the same script")
	}
	failed := full
	failed.Status = schemas.StatusOOM
	if s := told(NewMatchedStudy([]analyze.Summary{failed, bare}, nil, "")); len(s.Cells) != 2 || len(s.Twins) != 0 {
		t.Errorf("a bare run is left out for one that failed: %d cells, %q", len(s.Cells), s.Twins)
	}
	bare.Status = schemas.StatusOOM
	if s := told(NewMatchedStudy([]analyze.Summary{full, bare}, nil, "")); len(s.Cells) != 1 ||
		s.Cells[0].JoulesPerSample != nil {
		t.Errorf("the energy of a run that failed: %v", s.Cells[0].JoulesPerSample)
	}
}

func TestRateIntervals(t *testing.T) {
	s := told(NewMatchedStudy([]analyze.Summary{summaries.SuiteRun("a", "a",
		map[string]any{"method": "vanilla", "batch_size": 1.0}, 0, 100),
		summaries.SuiteRun("b", "b", map[string]any{"method": "vanilla", "batch_size": 2.0}, 0, 100)}, nil, ""))
	if s.Cost() != CostTokens {
		t.Errorf("steps of two sizes are compared by %s", s.Cost())
	}
	v := s.Cells[0].CostOf(CostTokens)
	if math.Abs(v.Median-80*3/0.303) > 1e-6 || math.Abs(v.High-v.Median*1.01) > 1e-6 ||
		math.Abs(v.Low-v.Median*101/102) > 1e-6 {
		t.Errorf("%+v", v)
	}
	s.Cells[0].TokensPerS, s.Cells[1].TokensPerS = nil, nil
	if s.Cost() != CostSamples {
		t.Errorf("without tokens: %s", s.Cost())
	}
}

// The median of an even number of times is the mean of the middle two, in a study, a comparison and a gate. For bytes,
// the median is the lower of the middle two, so that it is the peak of a run whose categories sum to it.
func TestMedianOfAnEvenNumber(t *testing.T) {
	v := map[string]any{"method": "vanilla"}
	runs := []analyze.Summary{summaries.SuiteRun("a", "v", v, 0, 100), summaries.SuiteRun("b", "v", v, 512, 120),
		summaries.SuiteRun("c", "v", v, 1024, 200),
		summaries.SuiteRun("d", "v", v, 2048, 300)}
	want := (runs[1].StepMS.Median + runs[2].StepMS.Median) / 2
	if c := Cells(runs)[0]; c.StepMS.Median != want || c.RunID != "b" {
		t.Errorf("a study: %v ms, bytes of %s", c.StepMS.Median, c.RunID)
	}
	ghost := summaries.SuiteRun("g", "g", map[string]any{"method": "ghost"}, 0, 100)
	for _, m := range []struct {
		name string
		want float64
	}{{MetricTime, want}, {MetricPeak, float64(*runs[1].PeakBytes)}} {
		if doc := compare(t, Options{Value: Metric{Name: m.name}}, append(slices.Clone(runs),
			ghost)...); *doc.Cells[0].Value != m.want {
			t.Errorf("%s of a comparison: %v, want %v", m.name, *doc.Cells[0].Value, m.want)
		}
	}
}
