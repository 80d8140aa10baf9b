package analyze

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// suiteRun is a run of an experiment of a suite, as slow as given, its peak made larger by extra bytes.
func suiteRun(id, key string, params map[string]any, extra, ms int64) Summary {
	in := timedRun(id, ms, ms+2, ms+1)
	in.Manifest.Name, in.Manifest.Params = key, params
	in.Manifest.Suite = &schemas.SuiteRef{Name: "s", Key: key}
	for i := range in.Allocations {
		if i == 0 {
			in.Allocations[i].BlockBytes += extra
		}
	}
	for i := range in.Report.Devices {
		in.Report.Devices[i].PeakAllocatedBytes += extra
	}
	return Summarize(in)
}

func TestRepeatsAreOneCell(t *testing.T) {
	v, g := map[string]any{"method": "vanilla"}, map[string]any{"method": "ghost"}
	runs := []Summary{
		suiteRun("v1", "v", v, 0, 100), suiteRun("g1", "g", g, 512, 210), suiteRun("v2", "v", v, 0, 120),
		suiteRun("g2", "g", g, 1024, 200),
		suiteRun("v3", "v", v, 0, 110), suiteRun("g3", "g", g, 2048, 220), suiteRun("v4", "v", v, 0, 130),
		suiteRun("v5", "v", v, 0, 90),
	}
	failed := suiteRun("g4", "g", g, 1<<30, 1)
	failed.Status = schemas.StatusOOM
	s := NewMatchedStudy(append(runs, failed), nil, "")
	if len(s.Cells) != 2 || !slices.Equal(s.Cells[0].RunIDs, []string{"v1", "v2", "v3", "v4", "v5"}) {
		t.Fatalf("%d cells, the first of %v", len(s.Cells), s.Cells[0].RunIDs)
	}
	plain, ghost := &s.Cells[0], &s.Cells[1]
	if want := (Interval{111, 91, 131, 5, OfRange, 1 - 2.0/32, OverRepeats, ClockGPU}); *plain.StepMS != want {
		t.Errorf("vanilla: %+v, want %+v", *plain.StepMS, want)
	}
	if *plain.PeakLow != *plain.PeakHigh || strings.Contains(strings.Join(plain.Warnings, ";"), "differ") {
		t.Errorf("equal peaks: %d to %d, %v", *plain.PeakLow, *plain.PeakHigh, plain.Warnings)
	}
	if ghost.RunID != "g2" || *ghost.PeakHigh-*ghost.PeakLow != 1536 || ghost.Good != 3 || ghost.StepMS.Median != 211 {
		t.Errorf("ghost is shown as %s, %d to %d, %d good, %+v", ghost.RunID, *ghost.PeakLow, *ghost.PeakHigh,
			ghost.Good, *ghost.StepMS)
	}
	w := strings.Join(ghost.Warnings, "; ")
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

// A phase that not each repeat has took no time in the others, whichever repeat comes first.
func TestPhaseOfSomeRepeats(t *testing.T) {
	v := map[string]any{"method": "vanilla"}
	runs := []Summary{suiteRun("v1", "v", v, 0, 100), suiteRun("v2", "v", v, 0, 100), suiteRun("v3", "v", v, 0, 100)}
	for i, ms := range []float64{0, 8, 6} {
		if ms > 0 {
			runs[i].phaseTimes = maps.Clone(runs[i].phaseTimes)
			runs[i].phaseTimes[schemas.PhaseNoise] = phaseTime{clock: ClockGPU, gpu: &Interval{Median: ms,
				Clock: ClockGPU}}
		}
	}
	for range runs {
		runs = append(runs[1:], runs[0])
		times := NewMatchedStudy(runs, nil, "").Cells[0].phaseTimes[schemas.PhaseNoise]
		if times.gpu == nil || times.gpu.Median != 6 || times.gpu.Low != 0 || times.gpu.High != 8 || times.gpu.N != 3 ||
			times.wall != nil {
			t.Errorf("%s first: %+v", runs[0].RunID, times.gpu)
		}
	}
}

// Where one repeat ended well, its own steps say how sure its time is.
func TestOneGoodRepeat(t *testing.T) {
	p := map[string]any{"method": "vanilla"}
	runs := []Summary{suiteRun("a", "k", p, 0, 100), suiteRun("b", "k", p, 0, 1)}
	runs[1].Status = schemas.StatusTimeout
	c := Cells(runs)
	if len(c) != 1 || c[0].Good != 1 || c[0].RunID != "a" || c[0].StepMS.Over != OverSteps || c[0].StepMS.N != 3 {
		t.Errorf("%+v", c[0].StepMS)
	}
	runs[0].Status = schemas.StatusOOM
	if c := Cells(runs); len(c) != 1 || c[0].Good != 0 || c[0].Status == schemas.StatusOK {
		t.Errorf("no repeat ended well: %+v", c[0].Identity)
	}
}

// What was made on something else, or by a script that nobody knows, is no repeat.
func TestWhatIsNoRepeat(t *testing.T) {
	p := map[string]any{"method": "ghost"}
	same, other := timedRun("a", 1), timedRun("b", 1)
	for _, in := range []*Input{&same, &other} {
		in.Manifest.Name, in.Manifest.Params = "ghost", p
		in.Manifest.Environment = &schemas.Environment{Torch: "2.11.0"}
	}
	count := func() int { return len(Cells([]Summary{Summarize(same), Summarize(other)})) }
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
	runs := []Summary{
		suiteRun("g4", "g4", params("ghost", "transformer", 4), 0, 10),
		suiteRun("v4", "v4", params("vanilla", "transformer", 4), 0, 10),
		suiteRun("g8", "g8", params("ghost", "transformer", 8), 0, 10),
		suiteRun("v8", "v8", params("vanilla", "transformer", 8), 0, 10),
		suiteRun("m", "m", params("ghost", "mlp", 4), 0, 10),
	}
	s := NewMatchedStudy(runs, map[string]any{"method": "vanilla"}, "")
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
	one := NewStudy(runs, &runs[3])
	for i := range one.Cells {
		if one.Cells[i].Baseline.RunID != "v8" {
			t.Error("a baseline that was named is everybody's")
		}
	}
}

// A bare twin is no bar of its own, and its energy is its experiment's; a bare run without a twin stays.
func TestBareTwins(t *testing.T) {
	full := suiteRun("v", "v", map[string]any{"method": "vanilla", "num_iter": 3.0}, 0, 100)
	in := timedRun("b", 100)
	in.Manifest.Name, in.Manifest.Bare, in.Manifest.Params = "v-bare", true, map[string]any{"method": "vanilla",
		"num_iter": 5.0}
	in.Manifest.Suite = &schemas.SuiteRef{Key: "vb"}
	bare := Summarize(in)
	j := 7.0
	bare.JoulesPerStep, bare.JoulesPerSample = &j, &j
	s := NewMatchedStudy([]Summary{full, bare}, nil, "")
	if len(s.Cells) != 1 || s.Cells[0].RunID != "v" || *s.Cells[0].JoulesPerSample != 7 || len(s.Overhead.Runs) != 2 {
		t.Errorf("%d cells, %+v", len(s.Cells), s.Notes)
	}
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "v-bare") {
		t.Errorf("notes %q", s.Notes)
	}
	if s := NewMatchedStudy([]Summary{bare}, nil, ""); len(s.Cells) != 1 {
		t.Error("a bare run by itself is left out")
	}
	named := []Summary{full} // without its bare twin
	named[0].NoEnergy = "no energy: too short"
	LendEnergy(named, []Summary{bare})
	if n := &named[0]; n.JoulesPerSample == nil || *n.JoulesPerSample != 7 || n.NoEnergy != "" ||
		!slices.Contains(n.Warnings, "energy is that of the bare run of the same experiment") {
		t.Errorf("%v J, %q, %q", n.JoulesPerSample, n.NoEnergy, n.Warnings)
	}
	if slices.Contains(full.Warnings, "energy is that of the bare run of the same experiment") {
		t.Error("the run itself was changed")
	}
	other := bare
	other.Key, other.facts = "", append(slices.Clone(bare.facts), Fact{What: "batch_size", Value: "8", Condition: true,
		Param: true})
	own := []Summary{full, full}
	own[0].NoEnergy, own[1].NoEnergy, own[1].Status = "no energy: too short", "no energy: too short", schemas.StatusOOM
	LendEnergy(own[:1], []Summary{other})
	LendEnergy(own[1:], []Summary{bare})
	if own[0].JoulesPerSample != nil || own[1].JoulesPerSample != nil {
		t.Error("the energy of another experiment, or to a run that failed")
	}
	gan, scripts := bare, []Summary{full}
	gan.Params, gan.script = map[string]any{"bare": true}, "gan.py"
	scripts[0].Params, scripts[0].script, scripts[0].NoEnergy = nil, "resnet.py", "no energy: too short"
	if LendEnergy(scripts, []Summary{gan}); scripts[0].JoulesPerSample != nil {
		t.Error("the energy of another script")
	}
	gan.script = "resnet.py"
	if LendEnergy(scripts, []Summary{gan}); scripts[0].JoulesPerSample == nil {
		t.Error("no energy of the same script")
	}
	failed := full
	failed.Status = schemas.StatusOOM
	if s := NewMatchedStudy([]Summary{failed, bare}, nil, ""); len(s.Cells) != 2 || len(s.Notes) != 0 {
		t.Errorf("a bare run is left out for one that failed: %d cells, %q", len(s.Cells), s.Notes)
	}
	bare.Status = schemas.StatusOOM
	if s := NewMatchedStudy([]Summary{full, bare}, nil, ""); len(s.Cells) != 1 || s.Cells[0].JoulesPerSample != nil {
		t.Errorf("the energy of a run that failed: %v", s.Cells[0].JoulesPerSample)
	}
}

func TestRateIntervals(t *testing.T) {
	s := NewMatchedStudy([]Summary{suiteRun("a", "a", map[string]any{"method": "vanilla", "batch_size": 1.0}, 0, 100),
		suiteRun("b", "b", map[string]any{"method": "vanilla", "batch_size": 2.0}, 0, 100)}, nil, "")
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
