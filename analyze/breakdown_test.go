package analyze

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// randomRun makes blocks with random lives and owners on two devices, and the allocated bytes after every event as an
// allocator would count them.
func randomRun(r *rand.Rand) (Input, map[place][]int64) {
	in := Input{Manifest: &schemas.Manifest{RunID: "r", Status: schemas.StatusOK, Source: schemas.Measured},
		Report: &schemas.IngestReport{}}
	allocated := map[place][]int64{}
	for device := range int32(2) {
		p := place{0, device}
		events := 20 + r.Int64N(60)
		counts := make([]int64, events+1)
		for id := int64(1); id <= 1+r.Int64N(40); id++ {
			a := schemas.Allocation{Device: device, AllocID: id, RequestedBytes: 1 + r.Int64N(4096),
				AllocSeq: r.Int64N(events)}
			a.BlockBytes = (a.RequestedBytes + 511) / 512 * 512
			if r.IntN(3) > 0 {
				a.FreeRequestedSeq = a.AllocSeq + 1 + r.Int64N(events-a.AllocSeq)
			}
			end := events + 1
			if a.FreeRequestedSeq != 0 {
				end = a.FreeRequestedSeq
			}
			for seq := a.AllocSeq; seq < end; seq++ {
				counts[seq] += a.BlockBytes
			}
			in.Allocations = append(in.Allocations, a)
			for range r.IntN(4) {
				begin := a.AllocSeq + r.Int64N(end-a.AllocSeq)
				o := schemas.Owner{Device: device, AllocID: id,
					Category: schemas.Categories[r.IntN(len(schemas.Categories))], BeginSeq: begin,
					Evidence: []string{schemas.Tagged, schemas.Lifetime, schemas.ByPhase}[r.IntN(3)]}
				if r.IntN(4) > 0 {
					o.EndSeq = begin + 1 + r.Int64N(end-begin)
				}
				if o.EndSeq > events { // there is no such event
					o.EndSeq = 0
				}
				in.Owners = append(in.Owners, o)
			}
		}
		r.Shuffle(len(in.Owners), func(i, j int) { in.Owners[i], in.Owners[j] = in.Owners[j], in.Owners[i] })
		allocated[p] = counts
		peak, at := int64(-1), int64(0)
		for seq, b := range counts {
			if b > peak {
				peak, at = b, int64(seq)
			}
		}
		in.Report.Devices = append(in.Report.Devices, schemas.DeviceVerdict{Device: device, Verdict: schemas.Exact,
			Events: events, PeakSeq: at,
			PeakAllocatedBytes: peak, InstrumentedPeakSeq: &at})
	}
	return in, allocated
}

// Whatever the owners, at every event the categories sum to the allocator's own bytes, the sweep over intervals agrees
// with counting afresh, and no category exceeds the maximum given for it.
func TestCategoriesSumToAllocatedAtEveryEvent(t *testing.T) {
	for seed := range uint64(150) {
		in, allocated := randomRun(rand.New(rand.NewPCG(seed, 1)))
		for p, counts := range allocated {
			l := newLedger(&in, p)
			changes := l.changes()
			highest := maxima(changes)
			swept := make([][]int64, len(counts))
			sweep(changes, func(seq int64, bytes []int64) {
				for s := seq; s < int64(len(counts)); s++ {
					swept[s] = slices.Clone(bytes)
				}
			})
			reached := make([]int64, nCategories)
			for seq, want := range counts {
				d := in.breakdownAt(p, l, in.momentOf(p, int64(seq)), want)
				if d.AllocatedBytes != want || d.Conservation.Verdict != schemas.Exact || len(d.Warnings) > 0 {
					t.Fatalf("seed %d, %v, event %d: %d bytes, want %d (%+v)", seed, p, seq, d.AllocatedBytes, want,
						d.Conservation)
				}
				for i, name := range schemas.Categories {
					c := d.Category(name)
					reached[i] = max(reached[i], c.Bytes)
					if swept[seq] != nil && swept[seq][i] != c.Bytes {
						t.Fatalf("seed %d, event %d: %s has %d bytes, the sweep says %d", seed, seq, name, c.Bytes,
							swept[seq][i])
					}
					if c.TaggedBytes+c.LifetimeBytes+c.PhaseOnlyBytes != c.Bytes || c.SharedBytes > c.HeldBytes ||
						c.TaggedBytes > c.HeldBytes {
						t.Fatalf("seed %d, event %d: %+v does not add up", seed, seq, c)
					}
				}
			}
			if !slices.Equal(reached, highest) {
				t.Fatalf("seed %d: maxima %v, want %v", seed, highest, reached)
			}
		}
	}
}

// hooked is one step: parameters, one activation that a DP hook holds too, one that only the hook holds.
func hooked() Input {
	owner := func(id int64, c string, begin, end int64, evidence string) schemas.Owner {
		return schemas.Owner{AllocID: id, Category: c, BeginSeq: begin, EndSeq: end, Evidence: evidence}
	}
	peak := int64(4)
	return Input{
		Manifest: &schemas.Manifest{RunID: "run", Name: "ghost", Status: schemas.StatusOK, Source: schemas.Measured},
		Report: &schemas.IngestReport{Devices: []schemas.DeviceVerdict{{Verdict: schemas.Exact, Events: 6, PeakSeq: 4,
			InstrumentedPeakSeq: &peak,
			PeakAllocatedBytes:  1024 + 2048 + 512 + 512, PeakReservedBytes: 4 << 20}}},
		Allocations: []schemas.Allocation{
			{AllocID: 1, RequestedBytes: 1000, BlockBytes: 1024, AllocSeq: 1},
			{AllocID: 2, RequestedBytes: 2048, BlockBytes: 2048, AllocSeq: 2, FreeRequestedSeq: 5},
			{AllocID: 3, RequestedBytes: 500, BlockBytes: 512, AllocSeq: 3, FreeRequestedSeq: 6},
			{AllocID: 4, RequestedBytes: 512, BlockBytes: 512, AllocSeq: 4, FreeRequestedSeq: 5},
		},
		Owners: []schemas.Owner{
			owner(1, schemas.Parameters, 1, 0, schemas.Tagged),
			owner(2, schemas.Activations, 2, 5, schemas.Tagged), owner(2, schemas.HookActivations, 2, 5,
				schemas.Tagged),
			owner(3, schemas.HookActivations, 3, 6, schemas.Tagged), owner(3, schemas.ForwardTemporaries, 3, 6,
				schemas.Lifetime),
			owner(4, schemas.ForwardTemporaries, 4, 5, schemas.Lifetime),
		},
		Steps: []schemas.Step{{Step: 0, Recorded: true, Instrumented: true, BeginSeq: 1, EndSeq: 6}},
		Phases: []schemas.Phase{
			{Step: -1, Phase: schemas.PhaseSetupModel, BeginSeq: 0, EndSeq: 1, PeakBytes: 1024, PeakSeq: 1},
			{Step: 0, Phase: schemas.PhaseForward, BeginSeq: 1, EndSeq: 4, PeakBytes: 4096, PeakSeq: 4},
			{Step: 0, Phase: schemas.PhaseBackward, BeginSeq: 4, EndSeq: 6, PeakBytes: 1536, PeakSeq: 5},
		},
		Events: []schemas.Event{{Seq: 1, Action: int32(schemas.ActionSegmentAlloc), Size: 2 << 20},
			{Seq: 3, Action: int32(schemas.ActionSegmentAlloc), Size: 2 << 20},
			{Seq: 6, Action: int32(schemas.ActionSegmentFree), Size: 2 << 20}},
	}
}

// A phase's name means all of its family: a method of two passes has no phase "backward". A run that lacks the moment
// says so.
func TestMomentOfAFamily(t *testing.T) {
	in := hooked()
	in.Phases = append(in.Phases[:2:2], schemas.Phase{Phase: schemas.PhaseBackwardNorm, BeginSeq: 4, EndSeq: 5,
		PeakBytes: 1536, PeakSeq: 5},
		schemas.Phase{Phase: schemas.PhaseBackwardGrad, BeginSeq: 5, EndSeq: 6, PeakBytes: 1024, PeakSeq: 6})
	for phase, want := range map[string]string{schemas.PhaseBackward: schemas.PhaseBackwardNorm,
		schemas.PhaseBackwardGrad: schemas.PhaseBackwardGrad,
		"setup":                   schemas.PhaseSetupModel} {
		if run, err := Breakdown(in, At{Phase: phase}); err != nil || *run.Devices[0].At.Phase != want {
			t.Errorf("%s: %+v, %v, want %s", phase, run.Devices, err, want)
		}
	}
	var missing *NoMomentError
	run, err := Breakdown(in, At{Phase: schemas.PhaseClip})
	if !errors.As(err, &missing) || missing.RunID != "run" ||
		!strings.HasPrefix(run.Missing, `no phase "clip" there on cuda:0; there are `) {
		t.Errorf("%q, %v", run.Missing, err)
	}
	by, err := BreakdownBy(in, At{OOM: new(int64(1))}, By{Dimensions: []Dimension{DimensionPhase}})
	if !errors.As(err, &missing) || by.Missing != "cuda:0 did not run out of memory" {
		t.Errorf("%q, %v", by.Missing, err)
	}
}

func TestSharedBytes(t *testing.T) {
	run, err := Breakdown(hooked(), At{})
	if err != nil {
		t.Fatal(err)
	}
	d := run.Devices[0]
	if d.AllocatedBytes != 4096 || *d.At.Step != 0 || *d.At.Phase != schemas.PhaseForward || *d.ReservedBytes != 4<<20 {
		t.Errorf("%+v", d)
	}
	hooks, act := d.Category(schemas.HookActivations), d.Category(schemas.Activations)
	if hooks.Bytes != 500 || hooks.HeldBytes != 2548 || hooks.SharedBytes != 2048 ||
		hooks.SharedWith[schemas.Activations] != 2048 || hooks.Blocks != 1 {
		t.Errorf("hook activations: %+v", hooks)
	}
	if act.Bytes != 2048 || act.SharedBytes != 2048 || act.TaggedBytes != 2048 {
		t.Errorf("activations: %+v", act)
	}
	if s := d.Category(schemas.Slack); s.Bytes != 36 || s.Blocks != 2 || s.MaxBytes != 36 {
		t.Errorf("slack: %+v", s)
	}
	if s := d.SharedHookActivations(); s == nil || s.ExtraBytes != 500 || s.AutogradBytes != 2048 {
		t.Errorf("shared: %+v", s)
	}
	if f := d.Category(schemas.ForwardTemporaries); f.Bytes != 512 || f.HeldBytes != 0 || f.TaggedBytes != 0 {
		t.Errorf("forward temporaries: %+v: a rule proves no holding", f)
	}
}

func TestMoments(t *testing.T) {
	for _, c := range []struct {
		at      string
		event   int64
		bytes   int64
		problem string
	}{
		{"", 4, 4096, ""},
		{"peak", 4, 4096, ""},
		{"event=2", 2, 3072, ""},
		{"event=0", 0, 0, ""},
		{"step=0,phase=backward", 5, 1536, ""},
		{"phase=setup.model", 1, 1024, ""},
		{"step=0", 4, 4096, ""},
		{"event=7", 0, 0, "has 6 events, not 7"},
		{"step=3", 0, 0, "no step 3 on cuda:0: steps go from 0 to 0; -1 is what came before them"},
		{"step=0,phase=clip", 0, 0, `no phase "clip" there on cuda:0; there are backward, forward`},
		{"noon", 0, 0, "is not peak, oom, event=N, or step=N,phase=P"},
		{"event=x", 0, 0, "event must be a whole number, 0 or more"},
		{"event=-1", 0, 0, "event must be a whole number, 0 or more"},
		{"step=-2", 0, 0, "step must be a whole number, -1 or more"},
		{"step=1,step=2", 0, 0, "step is given twice"},
		{"step=0,phase=clip,phase=noise", 0, 0, "phase is given twice"},
		{"event=1,step=2", 0, 0, "moment by itself"},
		{"when=2", 0, 0, `unknown key "when"`},
	} {
		at, err := ParseAt(c.at)
		var run BreakdownRun
		if err == nil {
			run, err = Breakdown(hooked(), at)
		}
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%q: %v, want %q", c.at, err, c.problem)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.at, err)
		} else if d := run.Devices[0]; d.At.Event != c.event || d.AllocatedBytes != c.bytes ||
			d.Conservation.ResidueBytes != 0 {
			t.Errorf("%q: event %d, %d bytes, residue %d; want %d, %d, 0", c.at, d.At.Event, d.AllocatedBytes,
				d.Conservation.ResidueBytes, c.event, c.bytes)
		}
	}
}

// What comes before the first step and after the last has phases of a step that is none.
func TestStepsThatThereAre(t *testing.T) {
	in := hooked()
	in.Phases = append(in.Phases, schemas.Phase{Step: 1, Phase: schemas.PhaseBetween, BeginSeq: 6, EndSeq: 6})
	const steps = "steps go from 0 to 0; -1 is what came before them, 1 is what came after"
	if _, err := Breakdown(in, At{Step: new(int64(9))}); err == nil || !strings.HasSuffix(err.Error(), steps) {
		t.Errorf("%v", err)
	}
	in.Steps = nil
	if _, err := Breakdown(in, At{Step: new(int64(9))}); err == nil ||
		!strings.HasSuffix(err.Error(), "phases are of steps -1 to 1") {
		t.Errorf("%v", err)
	}
	in.Phases = in.Phases[:1]
	if _, err := Breakdown(in, At{Step: new(int64(9))}); err == nil ||
		!strings.HasSuffix(err.Error(), "no step 9 on cuda:0: the recording has no steps") {
		t.Errorf("%v", err)
	}
}

// A phase that only frees is highest in the state that the phase before left: the answer is still of the phase asked
// for.
func TestMomentIsOfThePhaseAskedFor(t *testing.T) {
	in := hooked()
	in.Phases[2].PeakSeq, in.Phases[2].PeakBytes = 4, 4096
	step := int64(0)
	run, err := Breakdown(in, At{Step: &step, Phase: schemas.PhaseBackward})
	if err != nil {
		t.Fatal(err)
	}
	d := run.Devices[0]
	if d.At.Event != 4 || *d.At.Step != 0 || *d.At.Phase != schemas.PhaseBackward || d.AllocatedBytes != 4096 {
		t.Errorf("event %d, step %d, %s, %d bytes", d.At.Event, *d.At.Step, *d.At.Phase, d.AllocatedBytes)
	}
	if run, err = Breakdown(in, At{Phase: schemas.PhaseSetupModel}); err != nil || run.Devices[0].At.Step != nil {
		t.Errorf("set-up is of no step: %+v, %v", run.Devices, err)
	}
}

func TestResidueIsNeverHidden(t *testing.T) {
	in := hooked()
	in.Report.Devices[0].PeakAllocatedBytes += 512
	run, err := Breakdown(in, At{})
	if err != nil {
		t.Fatal(err)
	}
	c := run.Devices[0].Conservation
	if c.Verdict != schemas.Lossy || c.ResidueBytes != 512 || len(run.Devices[0].Warnings) != 1 {
		t.Errorf("%+v, %v", c, run.Devices[0].Warnings)
	}
	in = hooked()
	in.Report.Devices[0].InstrumentedPeakSeq = nil
	in.Steps[0].Instrumented = false
	if run, err = Breakdown(in, At{}); err != nil || len(run.Devices[0].Warnings) != 1 ||
		!strings.Contains(run.Devices[0].Warnings[0], "has no tags") {
		t.Errorf("a peak in a bare step: %v, %v", run.Devices, err)
	}
}

func TestRunsWithoutEvents(t *testing.T) {
	for _, c := range []struct {
		in   Input
		want string
	}{
		{Input{Manifest: &schemas.Manifest{RunID: "r", Bare: true, Status: schemas.StatusOK},
			Report: &schemas.IngestReport{}}, "bare run"},
		{Input{Manifest: &schemas.Manifest{RunID: "r", Status: schemas.StatusOK}}, "not been ingested"},
		{Input{Manifest: &schemas.Manifest{RunID: "r", Status: schemas.StatusFailed}, Report: &schemas.IngestReport{}},
			"ended (failed)"},
		{Input{Manifest: &schemas.Manifest{RunID: "r", Status: schemas.StatusOK}, Report: &schemas.IngestReport{}},
			"never allocated"},
		{Input{Manifest: &schemas.Manifest{RunID: "r", Status: schemas.StatusOK},
			Report: &schemas.IngestReport{Prediction: &schemas.Prediction{}}}, "did not live to say"},
	} {
		run, err := Breakdown(c.in, At{})
		var none *NoEventsError
		if !errors.As(err, &none) || !strings.Contains(err.Error(), c.want) || run.Devices == nil ||
			len(run.Devices) != 0 {
			t.Errorf("%v, devices %v; want %q", err, run.Devices, c.want)
		}
		if c.in.Manifest.Bare && run.Params["bare"] != true {
			t.Error("a bare run does not say so in its params")
		}
	}
}
