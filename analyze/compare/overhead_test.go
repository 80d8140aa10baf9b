package compare_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/analyze"
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// overheads returns the overheads of single runs over a baseline.
func overheads(baseline analyze.Summary, runs []analyze.Summary) (doc OverheadDocument) {
	doc.Baseline = baseline.RunID
	for i := range runs {
		doc.Runs = append(doc.Runs, OverheadOf(&baseline, &runs[i]))
	}
	return inWords(doc)
}

func TestDeltasSumToThePeaksDifference(t *testing.T) {
	var runs []analyze.Summary
	for seed := range uint64(20) {
		in, _ := fixture.RandomRun(rand.New(rand.NewPCG(seed, 2)))
		in.Manifest.RunID = string(rune('a' + seed))
		runs = append(runs, analyze.Summarize(in))
	}
	doc := overheads(runs[0], runs)
	if len(doc.Runs) != 20 || doc.Baseline != "a" {
		t.Fatalf("%d runs over %s", len(doc.Runs), doc.Baseline)
	}
	for _, o := range doc.Runs {
		var sum, bytes int64
		for _, c := range o.Categories {
			sum += c.DeltaBytes
			bytes += c.Bytes
		}
		if sum != *o.PeakDeltaBytes || bytes != *o.PeakBytes {
			t.Errorf("%s: deltas sum to %d, the peaks differ by %d; bytes %d of %d", o.RunID, sum, *o.PeakDeltaBytes,
				bytes, *o.PeakBytes)
		}
	}
	if *doc.Runs[0].PeakDeltaBytes != 0 || *doc.Runs[0].PeakRatio != 1 {
		t.Error("the baseline differs from itself")
	}
}

func TestTimesComeFromBareSteps(t *testing.T) {
	a, b := analyze.Summarize(fixture.TimedRun("a", 100, 120, 110)),
		analyze.Summarize(fixture.TimedRun("b", 200, 260, 220, 230, 210, 250, 240))
	doc := overheads(a, []analyze.Summary{a, b})
	if s := doc.Runs[0].StepMS; *s != (timing.Interval{Median: 110, Low: 100, High: 120, N: 3, Of: timing.OfRange,
		Confidence: 0.75, Over: timing.OverSteps, Clock: timing.ClockGPU}) {
		t.Errorf("a: %+v", s)
	}
	if s := doc.Runs[1].StepMS; *s != (timing.Interval{Median: 230, Low: 200, High: 260, N: 7, Of: timing.OfMedian,
		Confidence: 1 - 2.0/128, Over: timing.OverSteps, Clock: timing.ClockGPU}) {
		t.Errorf("b: %+v", s)
	}
	if o := doc.Runs[1]; *o.StepDeltaMS != 120 || math.Abs(*o.StepRatio-230.0/110) > 1e-12 ||
		math.Abs(*o.SamplesPerS-8*7/1.61) > 1e-9 || math.Abs(*o.TokensPerS-80*7/1.61) > 1e-9 {
		t.Errorf("b: %+v", o)
	}
	if p := doc.Runs[1].Phases[0]; p.Phase != schemas.PhaseForward || *p.MS != 115 || *p.DeltaMS != 60 {
		t.Errorf("forward: two microbatches make a step: %v %v", *p.MS, *p.DeltaMS)
	}
	row := analyze.Phases(fixture.TimedRun("a", 100, 120, 110)).Phases[0]
	if row.Occurrences != 10 || row.GPUMS.Median != 55 || row.WallMS.Median != 110 || *row.StepPercent != 50 {
		t.Errorf("%+v", row)
	}

	in := fixture.TimedRun("p", 100)
	in.Manifest.Source = schemas.Predicted
	if s := analyze.Summarize(in); s.StepMS != nil || s.SamplesPerS != nil || s.Phases.Phases[0].WallMS != nil {
		t.Error("a predicted run has times")
	}
	in = fixture.TimedRun("w", 100, 100)
	in.Steps[3].GPUNS = 0
	if s := analyze.Summarize(in); s.StepMS.Clock != timing.ClockWall || s.StepMS.Median != 101 {
		t.Errorf("without GPU time in one step: %+v", s.StepMS)
	}
	in = fixture.TimedRun("i")
	if s := analyze.Summarize(in); s.StepMS.Median != 5555 || len(s.Remarks) != 1 ||
		s.Remarks[0].Times.Kind != timing.RemarkOnlyInstrumented {
		t.Errorf("no bare step: %+v %+v", s.StepMS, s.Remarks)
	}
}

// If a rank uses two devices, the time of the rank appears in the row of each device. A step waits for its slowest
// rank.
func TestPhaseTimesOfTwoDevices(t *testing.T) {
	one := fixture.TimedRun("a", 100, 120, 110)
	two := one
	two.Steps, two.Phases = nil, nil
	for _, s := range one.Steps {
		other := s
		other.Device = 1
		two.Steps = append(two.Steps, s, other)
	}
	for _, f := range one.Phases {
		other, slower := f, f
		other.Device = 1
		slower.Rank, slower.GPUNS, slower.EndNS = 1, new(2**f.GPUNS), 2*f.EndNS
		two.Phases = append(two.Phases, f, other, slower)
	}
	for _, row := range analyze.Phases(two).Phases {
		if row.GPUMS.Median != 110 || row.WallMS.Median != 220 {
			t.Errorf("rank %d, %s: %v ms on the GPU, %v ms of wall time; want 110 and 220", row.Rank, row.Device,
				row.GPUMS.Median, row.WallMS.Median)
		}
	}
	two.Phases = slices.DeleteFunc(two.Phases, func(f schemas.Phase) bool { return f.Rank == 1 })
	if row := analyze.Phases(two).Phases[1]; row.Device != "cuda:1" || row.GPUMS.Median != 55 ||
		row.WallMS.Median != 110 {
		t.Errorf("two devices of one rank: %+v", row)
	}
}

// If a phase has no CUDA event, its GPU time is unknown. If a run does not have the phase at all, the phase's GPU time
// is 0.
func TestPhaseWithoutGPUTime(t *testing.T) {
	a, in := analyze.Summarize(fixture.TimedRun("a", 100, 100)), fixture.TimedRun("b", 100, 100)
	for i := range in.Phases {
		in.Phases[i].GPUNS = nil
	}
	b := analyze.Summarize(in)
	if p := overheads(a, []analyze.Summary{b}).Runs[0].Phases[0]; p.MS != nil || p.DeltaMS != nil {
		t.Errorf("an unknown time is shown as %v (%v)", *p.MS, p.DeltaMS)
	}
	if p := overheads(b, []analyze.Summary{a}).Runs[0].Phases[0]; *p.MS != 50 || p.DeltaMS != nil {
		t.Errorf("a difference to an unknown time: %+v", p)
	}
	in.Phases = []schemas.Phase{{Step: 2, Phase: "noise", GPUNS: new(int64(4e6)), EndNS: 8e6},
		{Step: 3, Phase: "noise", GPUNS: new(int64(4e6)),
			EndNS: 8e6}}
	p := overheads(a, []analyze.Summary{analyze.Summarize(in)}).Runs[0].Phases
	if len(p) != 2 || *p[0].MS != 4 || *p[0].DeltaMS != 4 || p[1].MS != nil || *p[1].DeltaMS != -50 {
		t.Errorf("%+v", p)
	}
}

// A method with two passes has two phases of the same family. The sum of the two phases' times is compared with the
// time of the single phase of another method.
func TestFamilyTime(t *testing.T) {
	in := fixture.TimedRun("b", 100, 100)
	for i := range in.Phases { // the first of a step's two microbatches becomes one pass, and the second the other pass
		in.Phases[i].Phase = []string{"forward.one", "forward.two"}[in.Phases[i].Microbatch]
	}
	a, b := analyze.Summarize(fixture.TimedRun("a", 80, 80)), analyze.Summarize(in)
	o := overheads(a, []analyze.Summary{b}).Runs[0]
	if ms, delta, percent := o.FamilyTime("forward"); ms == nil || *ms != 50 || delta == nil || *delta != 10 ||
		percent == nil || *percent != 12.5 {
		t.Errorf("%v, %v, %v of %+v", ms, delta, percent, o.Phases)
	}
	if ms, delta, percent := o.FamilyTime("backward"); ms != nil || delta != nil || percent != nil {
		t.Errorf("a family that is not there: %v, %v, %v", ms, delta, percent)
	}
	// If one phase of a family cannot be compared, the family cannot be compared either. The sum of the family's times
	// is still known.
	for i := range o.Phases {
		if p := &o.Phases[i]; p.MS != nil {
			p.DeltaMS = nil
			break
		}
	}
	if ms, delta, percent := o.FamilyTime("forward"); ms == nil || *ms != 50 || delta != nil || percent != nil {
		t.Errorf("%v, %v, %v of %+v", ms, delta, percent, o.Phases)
	}
	for _, p := range o.Phases {
		if p.MS != nil && *p.MS == 0 {
			t.Errorf("a phase that the run lacks has a time: %+v", p)
		}
	}
}

// The peaks of phases are compared phase by phase. A family of phases is compared by the highest peak of its phases.
func TestPeaksByPhase(t *testing.T) {
	cell := func(id string, peaks map[string]int64) *Cell {
		s := analyze.Summary{Identity: identity.Identity{RunID: id, Status: schemas.StatusOK}}
		for _, phase := range slices.Sorted(maps.Keys(peaks)) {
			s.Phases.Phases = append(s.Phases.Phases, analyze.PhaseRow{Device: "cuda:0", Phase: phase,
				PeakBytes: new(peaks[phase])})
		}
		return &Cell{Summary: s}
	}
	base := cell("a", map[string]int64{"backward": 200, "forward": 100})
	run := cell("b", map[string]int64{"backward.grad": 150, "backward.norm": 250, "forward": 110, "noise": 7})
	run.Baseline = base
	o := OverheadOf(&base.Summary, &run.Summary)
	if p := o.Phase("forward"); *p.PeakDeltaBytes != 10 || *p.PeakDeltaPercent != 10 {
		t.Errorf("%+v", p)
	}
	if p := o.Phase("noise"); *p.PeakBytes != 7 || p.PeakDeltaBytes != nil || p.PeakDeltaPercent != nil {
		t.Errorf("a phase that the baseline lacks is compared: %+v", p)
	}
	if peak, delta, percent := run.FamilyPeak("backward"); *peak != 250 || *delta != 50 || *percent != 25 {
		t.Errorf("%d, %d, %v", *peak, *delta, *percent)
	}
	if peak, delta, percent := run.FamilyPeak("noise"); *peak != 7 || delta != nil || percent != nil {
		t.Errorf("%d, %v, %v", *peak, delta, percent)
	}
	if peak, _, _ := run.FamilyPeak("clip"); peak != nil {
		t.Errorf("a family that is not there: %d", *peak)
	}
}

// If the steps of one run have GPU time and the steps of the other run only wall time, neither phase times nor rates
// are subtracted.
func TestTwoClocks(t *testing.T) {
	in := fixture.TimedRun("w", 100, 100)
	in.Steps[3].GPUNS = 0 // the phases of this step still have GPU time
	gpu, wall := analyze.Summarize(fixture.TimedRun("g", 100, 100)), analyze.Summarize(in)
	for _, o := range []OverheadRun{overheads(gpu, []analyze.Summary{wall}).Runs[0],
		overheads(wall, []analyze.Summary{gpu}).Runs[0]} {
		if p := o.Phases[0]; p.MS == nil || p.DeltaMS != nil {
			t.Errorf("%s: GPU time beside wall time: %+v", o.RunID, p)
		}
	}
	for _, d := range compare(t, Options{}, gpu, wall).Differences {
		if d.Unit != UnitBytes && (d.Value == nil || d.Delta != nil) {
			t.Errorf("%s: %+v", d.Metric, d)
		}
	}
}

// A step that is shorter than the sampling interval may have no sample. A step without a sample shows nothing about
// throttling.
func TestThrottledSteps(t *testing.T) {
	in := fixture.TimedRun("t", 1, 1, 1)
	for i := range in.Steps[2:] {
		s := &in.Steps[2+i]
		s.StartNS, s.EndNS = int64(i)*10, int64(i)*10+5
	}
	in.Samples = []schemas.Sample{{TimeNS: 1, ThrottleReasons: new(schemas.ThrottlePowerCap)},
		{TimeNS: 21, ThrottleReasons: new(int64(0))}}
	s := analyze.Summarize(in)
	if want := (timing.Throttle{Slowed: 1, Sampled: 2, Steps: 3, Reasons: schemas.ThrottlePowerCap}); s.Throttled != want {
		t.Errorf("%+v, want %+v", s.Throttled, want)
	}
	// The throttling of all three repeats counts, although the repeat with the median step was not throttled.
	calm := s
	calm.Throttled = timing.Throttle{Sampled: 3, Steps: 3}
	want := timing.Throttle{Slowed: 1, Sampled: 8, Steps: 9, Reasons: schemas.ThrottlePowerCap}
	if c := NewCell([]*analyze.Summary{&calm, &calm, &s}); c.Throttled != want {
		t.Errorf("%+v, want %+v", c.Throttled, want)
	}
}

func TestMiB(t *testing.T) {
	for n, want := range map[int64]string{0: "0.00 MiB", 1: "<0.01 MiB", 1 << 20: "1.00 MiB", 999 << 20: "999.00 MiB",
		4470<<20 + 1<<19: "4,470.50 MiB", 1234567 << 20: "1,234,567.00 MiB"} {
		if got := units.MiB(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestUnfairComparisonsAreNamed(t *testing.T) {
	text := func(s string) *string { return &s }
	base := func() schemas.Tables {
		in := fixture.TimedRun("base", 100)
		in.Manifest.GPUs = []schemas.GPU{{Name: "H200"}}
		in.Manifest.Driver = text("580")
		in.Manifest.Environment = &schemas.Environment{Torch: "2.11.0",
			AllocatorSettings: map[string]any{"expandable_segments": false, "max_split_size": -1}}
		in.Manifest.Params = map[string]any{"precision": "fp32", "batch_size": 4.0, "seq_len": 512.0,
			"method": "vanilla"}
		return in
	}
	keep := func(in *schemas.Tables, kept bool) {
		in.Steps = []schemas.Step{{Step: 0, Instrumented: true}, {Step: 1, Instrumented: true, BeginSeq: 1, EndSeq: 6}}
		in.Phases = []schemas.Phase{{Step: 1, Phase: schemas.PhaseForward, BeginSeq: 1, EndSeq: 4}}
		if kept {
			in.Owners[5].Category, in.Owners[5].Evidence = schemas.Gradients, schemas.Tagged
		}
	}
	for _, c := range []struct {
		change func(*schemas.Tables)
		want   string
	}{
		{func(in *schemas.Tables) {}, ""},
		{func(in *schemas.Tables) { in.Manifest.Params["method"] = "ghost" }, ""},
		{func(in *schemas.Tables) { in.Manifest.GPUs[0].Name = "A100" }, "GPU differs: A100, baseline H200"},
		{func(in *schemas.Tables) { in.Manifest.Driver = text("570") }, "driver differs"},
		{func(in *schemas.Tables) { in.Manifest.Environment.Torch = "2.15.0" }, "torch differs"},
		{func(in *schemas.Tables) { in.Manifest.Environment.Opacus = text("1.6.0") }, ""},
		{func(in *schemas.Tables) {
			in.Manifest.Environment.AllocatorSettings = map[string]any{"expandable_segments": true,
				"max_split_size": -1}
		},
			"allocator settings differ: expandable_segments=true (baseline false)"},
		{func(in *schemas.Tables) { in.Manifest.Params["learning_rate"] = 1.0 }, ""},
		{func(in *schemas.Tables) { in.Manifest.Params["method"] = "norm_only" },
			"norm_only computes only norms"},
		{func(in *schemas.Tables) {
			in.Manifest.GPUs[0].Index = 0
			in.Samples = []schemas.Sample{{TimeNS: 0, ThrottleReasons: new(int64(schemas.ThrottlePowerCap | 1))}}
		}, "the GPU was slowed down in 2 of 2 timed steps (" + schemas.ThrottleNames(schemas.ThrottlePowerCap)[0] +
			")"},
		{func(in *schemas.Tables) { in.Samples = []schemas.Sample{{TimeNS: 0, ThrottleReasons: new(int64(1))}} }, ""},
		{func(in *schemas.Tables) { in.Manifest.Params["precision"] = "bf16" },
			"precision differs: bf16, baseline fp32"},
		{func(in *schemas.Tables) { in.Manifest.Params["batch_size"] = 8.0 }, "batch_size differs"},
		{func(in *schemas.Tables) { in.Manifest.Params["seq_len"] = 2097152.0 },
			"seq_len differs: 2097152, baseline 512"},
		{func(in *schemas.Tables) { in.Manifest.Params["seq_len"] = 8.0 }, "seq_len differs"},
		{func(in *schemas.Tables) {
			in.Manifest.Privacy = &schemas.Privacy{Poisson: new(true)}
		}, "Poisson sampling varies the batch size of the run"},
		{func(in *schemas.Tables) { in.Manifest.Privacy = &schemas.Privacy{Poisson: new(false)} }, ""},
		{func(in *schemas.Tables) { in.Manifest.Source = schemas.Predicted },
			"the run is predicted, the baseline measured"},
		{func(in *schemas.Tables) { in.Manifest.Bare, in.Allocations = true, nil }, "the run is bare, the baseline " +
			"is not"},
		{func(in *schemas.Tables) {
			keep(
				in, true)
		}, "the run keeps .grad between steps and the baseline frees it: up to " +
			"<0.01 MiB"},
	} {
		b, r := base(), base()
		r.Manifest.RunID = "run"
		keep(&b, false)
		c.change(&r)
		if len(r.Steps) == 3 {
			keep(&r, false)
		}
		was, now := analyze.Summarize(b), analyze.Summarize(r)
		now.Remarks = nil
		w := strings.Join(overheads(was, []analyze.Summary{now}).Runs[0].Warnings, "; ")
		if c.want == "" && w != "" || !strings.Contains(w, c.want) {
			t.Errorf("warned %q, want %q", w, c.want)
		}
	}
}

func TestEnergy(t *testing.T) {
	in := fixture.TimedRun("e", 3000, 3000)
	for i := range in.Steps[2:] {
		s := &in.Steps[2+i]
		s.StartNS, s.EndNS = int64(10+3*i)*1e9, int64(13+3*i)*1e9
	}
	for sec := range int64(20) { // a constant power of 100 W
		in.Samples = append(in.Samples, schemas.Sample{TimeNS: sec*1e9 + 3e8, UsedBytes: sec,
			EnergyMJ: new(sec * 100_000)}, schemas.Sample{TimeNS: sec*1e9 + 5e8, UsedBytes: 7})
	}
	s := analyze.Summarize(in)
	if s.JoulesPerSample == nil || math.Abs(*s.JoulesPerSample-100*6/16.0) > 1e-6 {
		t.Errorf("100 W for 6 s over 16 samples: %v", s.JoulesPerSample)
	}
	if *s.PeakDeviceBytes != 19 {
		t.Errorf("device peak %d", *s.PeakDeviceBytes)
	}
	// With CUDA_VISIBLE_DEVICES=3, the only visible GPU is cuda:0 for torch and index 3 for NVML. The run's samples may
	// also be of other GPUs.
	one := in
	one.Manifest = new(*in.Manifest)
	one.Manifest.GPUs = []schemas.GPU{{Index: 3, UUID: "GPU-3"}}
	one.Processes = []schemas.Process{{Device: 0}}
	one.Samples = slices.Clone(in.Samples)
	for i := range one.Samples {
		one.Samples[i].Device = 3
	}
	one.Samples = append(one.Samples, schemas.Sample{Device: 0, TimeNS: 1e9, UsedBytes: 1 << 40})
	if s := analyze.Summarize(one); s.PeakDeviceBytes == nil || *s.PeakDeviceBytes != 19 || s.JoulesPerSample == nil ||
		math.Abs(*s.JoulesPerSample-100*6/16.0) > 1e-6 {
		t.Errorf("the only visible GPU: device peak %v, %v J a sample", s.PeakDeviceBytes, s.JoulesPerSample)
	}
	in.Steps[3].EndNS = 14e9
	if s := analyze.Summarize(in); s.JoulesPerSample != nil {
		t.Error("energy over less than five seconds of a counter read once a second")
	}
}

func TestLabels(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := func(run, name, status string) identity.Identity {
		return identity.Identity{RunID: run, Name: name, Status: status, Source: schemas.Measured}
	}
	got := identity.Labels([]identity.Identity{id("1", "a", "ok"), id("2", "a", "oom"), id("3", "b", "ok"),
		id("4", "b", "ok"),
		id("5", "c", "ok"), id("6", "c", "ok"), id("7", "", "ok")},
		[]time.Time{at, at, at, at.Add(time.Second), at, at, at})
	want := []string{"a", "a", "b 2026-01-02 03:04:05", "b 2026-01-02 03:04:06", "c 5", "c 6", "7"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	profile := "h200"
	p := identity.Identity{Source: schemas.Predicted, Profile: &profile, Status: "oom",
		Params: map[string]any{"bare": true}}
	if StatusBadge(&p) != "predicted (phantom h200), bare, oom" {
		t.Error(StatusBadge(&p))
	}
}

func TestDefaultBaseline(t *testing.T) {
	b := int64(1)
	run := func(method, status string, bare bool) analyze.Summary {
		return analyze.Summary{Identity: identity.Identity{Status: status,
			Params: map[string]any{"method": method, "bare": bare}},
			PeakBytes: &b}
	}
	ghost := map[string]any{"method": "ghost"}
	tokens := func(n float64) analyze.Summary {
		return analyze.Summary{Identity: identity.Identity{Status: "ok", Params: map[string]any{"tokens": n}},
			PeakBytes: &b}
	}
	for _, c := range []struct {
		runs  []analyze.Summary
		match map[string]any
		want  int
	}{
		{[]analyze.Summary{run("ghost", "ok", false), run("vanilla", "oom", false), run("vanilla", "ok", true),
			run("vanilla", "ok", false)}, nil, 3},
		{[]analyze.Summary{run("vanilla", "ok", false), run("ghost", "ok", true), run("ghost", "ok", false)}, ghost, 2},
		{[]analyze.Summary{run("dpsgd", "ok", false), run("vanilla", "ok", false)}, ghost, 1},
		{[]analyze.Summary{run("ghost", "ok", true), run("dpsgd", "ok", false)}, nil, 1},
		{[]analyze.Summary{run("vanilla", "failed", false)}, nil, -1},
		// parameters that come from JSON are floats
		{[]analyze.Summary{run("dpsgd", "ok", false), tokens(1 << 20), tokens(1 << 21)},
			map[string]any{"tokens": 1 << 21}, 2},
		{nil, ghost, -1},
	} {
		if got := DefaultBaseline(c.runs, c.match); got != c.want {
			t.Errorf("%d, want %d", got, c.want)
		}
	}
}

// If the readings of the energy counter end before the last step, the power extends them, over at most a tenth of the
// time. If the energy of a step is unknown, the run has a reason for this.
func TestEnergyBeyondTheReadings(t *testing.T) {
	in := fixture.TimedRun("e", 10000, 10000)
	for i := range in.Steps[2:] {
		s := &in.Steps[2+i]
		s.StartNS, s.EndNS = int64(10+10*i)*1e9, int64(20+10*i)*1e9
	}
	powered := func(readings ...int64) []schemas.Sample { // the power is 100 W until second 20, then 300 W
		var out []schemas.Sample
		for ds := range int64(400) {
			s := schemas.Sample{TimeNS: ds * 1e8, PowerMW: new(int64(100_000))}
			mj := ds * 10_000
			if ds >= 200 {
				s.PowerMW, mj = new(int64(300_000)), 200*10_000+(ds-200)*30_000
			}
			if slices.Contains(readings, ds) {
				s.EnergyMJ = &mj
			}
			out = append(out, s)
		}
		return out
	}
	for _, c := range []struct {
		what     string
		readings []int64
		joules   float64 // for each step; 0 is unknown
		why      timing.NoEnergy
	}{
		{"enclosed", []int64{90, 200, 310}, 2000, ""},
		{"the counter runs as power does", []int64{90, 310}, 2000, ""},
		{"a second is missing at the end", []int64{90, 290}, 2000, ""},
		{"a second is missing at the begin", []int64{110, 310}, 2000, ""},
		{"three seconds are missing", []int64{90, 270}, 0, timing.EnergyNotCovered},
		{"no reading", nil, 0, timing.EnergyNotRead},
	} {
		in.Samples = powered(c.readings...)
		s := analyze.Summarize(in)
		if c.joules == 0 && s.JoulesPerStep != nil || c.joules != 0 && (s.JoulesPerStep == nil ||
			math.Abs(*s.JoulesPerStep-c.joules) > 20) || s.NoEnergy != c.why {
			t.Errorf("%s: %v (%s)", c.what, s.JoulesPerStep, s.NoEnergy)
		}
	}
	in.Samples = powered(90, 290)
	for i := range in.Samples {
		in.Samples[i].PowerMW = nil
	}
	if s := analyze.Summarize(in); s.JoulesPerStep != nil {
		t.Errorf("beyond the readings without any power: %v", *s.JoulesPerStep)
	}
}

// If a run ended early, its peak is the peak of its first part only. A run that ended early has no overhead, neither in
// a study nor for single phases.
func TestNoOverheadOfWhatEndedEarly(t *testing.T) {
	for _, status := range []string{schemas.StatusOK, schemas.StatusOOM, schemas.StatusFailed, schemas.StatusPartial} {
		in := fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: 700})
		// the training went on, but its recording stopped
		if in.Manifest.Status = status; status == schemas.StatusPartial {
			in.Manifest.Status = schemas.StatusOK
			in.Report.Ranks = []schemas.RankVerdict{{FailedHooks: []schemas.FailedHook{{Fatal: true}}}}
		}
		base, run := analyze.Summarize(fixture.Sized("vanilla", map[schemas.Category]int64{schemas.Parameters: 1000})),
			analyze.Summarize(in)
		base.Params, run.Params = map[string]any{"method": "vanilla"}, map[string]any{"method": "ghost"}
		base.StepMS, run.StepMS = &timing.Interval{Median: 2, Clock: timing.ClockWall},
			&timing.Interval{Median: 1, Clock: timing.ClockWall}
		base.RunID, run.RunID = "v", "g"
		s := told(NewMatchedStudy([]analyze.Summary{base, run}, nil, ""))
		for _, o := range []*OverheadRun{s.Cells[1].Overhead, &s.Overhead.Runs[1], &s.Overhead.Cells[1].OverheadRun} {
			given := o.PeakDeltaBytes != nil && o.PeakRatio != nil && o.StepDeltaMS != nil && o.StepRatio != nil &&
				len(o.Categories) > 0
			none := o.PeakDeltaBytes == nil && o.PeakRatio == nil && o.StepDeltaMS == nil && o.StepRatio == nil &&
				len(o.Categories) == 0
			noted := slices.Contains(kinds(o.Remarks), RemarkEndedEarly)
			if *o.PeakBytes != 700 || o.StepMS == nil || status == schemas.StatusOK && (!given || noted) ||
				status != schemas.StatusOK && (!none || !noted) {
				t.Errorf("%s: %+v", status, o)
			}
			for _, p := range o.Phases {
				if status != schemas.StatusOK && (p.DeltaMS != nil || p.PeakDeltaBytes != nil ||
					p.PeakDeltaPercent != nil) {
					t.Errorf("%s: %+v", status, p)
				}
			}
		}
	}
}
