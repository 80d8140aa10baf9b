package memory

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// At every event, the categories sum to the allocator's own bytes, for any owners. A sweep over the changes gives the
// same bytes as a separate count at each event, and no category exceeds its stated maximum.
func TestCategoriesSumToAllocatedAtEveryEvent(t *testing.T) {
	for seed := range uint64(150) {
		in, allocated := fixture.RandomRun(rand.New(rand.NewPCG(seed, 1)))
		for p, counts := range allocated {
			l := NewLedger(&in, p)
			changes := l.Changes()
			highest := maxima(changes)
			swept := make([][]int64, len(counts))
			Sweep(changes, func(seq int64, bytes []int64) {
				for s := seq; s < int64(len(counts)); s++ {
					swept[s] = slices.Clone(bytes)
				}
			})
			reached := make([]int64, NCategories)
			for seq, want := range counts {
				d := BreakdownAt(&in, p, l, MomentOf(&in, p, int64(seq)), want)
				if d.AllocatedBytes != want || d.Conservation.Verdict != schemas.Exact || len(d.Remarks) > 0 {
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

func TestSharedBytes(t *testing.T) {
	run, err := Breakdown(fixture.Hooked(), At{})
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
			run, err = Breakdown(fixture.Hooked(), at)
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

// Phases before the first step and after the last step have step numbers, but no step has these numbers.
func TestStepsThatThereAre(t *testing.T) {
	in := fixture.Hooked()
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

// If a phase only frees memory, its highest moment is its beginning, with the memory that the previous phase left. The
// moment still names the phase that the user requested.
func TestMomentIsOfThePhaseAskedFor(t *testing.T) {
	in := fixture.Hooked()
	in.Phases[2].PeakSeq, in.Phases[2].PeakBytes = 4, new(int64(4096))
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
	in := fixture.Hooked()
	in.Report.Devices[0].PeakAllocatedBytes += 512
	run, err := Breakdown(in, At{})
	if err != nil {
		t.Fatal(err)
	}
	c := run.Devices[0].Conservation
	if c.Verdict != schemas.Lossy || c.ResidueBytes != 512 || *c.Replayed-*c.Sum != 512 ||
		len(run.Devices[0].Remarks) != 1 || run.Devices[0].Remarks[0].Kind != RemarkSumDiffers {
		t.Errorf("%+v, %+v", c, run.Devices[0].Remarks)
	}
	in = fixture.Hooked()
	in.Report.Devices[0].Verdict, in.Report.Devices[0].Reason = schemas.Lossy, "3 events are missing"
	if run, err = Breakdown(in, At{}); err != nil || len(run.Devices[0].Remarks) != 1 ||
		run.Devices[0].Remarks[0].Kind != RemarkLossy || run.Devices[0].Conservation.Reason != "3 events are missing" {
		t.Errorf("%+v, %v", run.Devices, err)
	}
	in = fixture.Hooked()
	in.Report.Devices[0].InstrumentedPeakSeq = nil
	in.Steps[0].Instrumented = false
	if run, err = Breakdown(in, At{}); err != nil || len(run.Devices[0].Remarks) != 1 ||
		run.Devices[0].Remarks[0].Kind != RemarkUntagged {
		t.Errorf("a peak in a bare step: %v, %v", run.Devices, err)
	}
}

func TestRunsWithoutEvents(t *testing.T) {
	for _, c := range []struct {
		in   schemas.Tables
		want string
	}{
		{schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Bare: true, Status: schemas.StatusOK},
			Report: &schemas.IngestReport{}}, "bare run"},
		{schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Status: schemas.StatusOK}}, "not been ingested"},
		{schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Status: schemas.StatusFailed},
			Report: &schemas.IngestReport{}},
			"ended (failed)"},
		{schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Status: schemas.StatusOK},
			Report: &schemas.IngestReport{}},
			"never allocated"},
		{schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Status: schemas.StatusOK},
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
