package timeline

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// For all options, each point of the timeline equals a direct count at the events of the point. Each maximum is the
// first moment of its height.
func TestCategoryTimeline(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 77))
		in, allocated := fixture.RandomRun(r)
		for p, counts := range allocated {
			last := int64(len(counts)) - 1
			from := r.Int64N(last)
			to := from + r.Int64N(last-from+1)
			points := r.IntN(12)
			run, err := CategoryTimeline(in, EventRange{Device: p.String(), From: &from, To: &to}, points)
			if err != nil || len(run.Devices) != 1 {
				t.Fatalf("seed %d: %d devices, %v", seed, len(run.Devices), err)
			}
			checkDevice(t, &in, p, &run.Devices[0], counts, from, to, points)
		}
	}
}

func checkDevice(t *testing.T, in *schemas.Tables, p identity.Place, d *DeviceTimeline, counts []int64, from, to int64,
	points int) {
	t.Helper()
	l := memory.NewLedger(in, p)
	want := int(to - from + 1)
	if points > 0 {
		want = min(want, points)
	}
	if len(d.Points) != want || d.Points[0].FromEvent != from || d.Points[want-1].ToEvent != to {
		t.Fatalf("events %d to %d at %d points: %d points", from, to, points, len(d.Points))
	}
	states := map[int64][]int64{}
	for seq := from; seq <= to; seq++ {
		states[seq] = partsAt(l, seq)
		if Total(states[seq]) != counts[seq] {
			t.Fatalf("event %d: the parts sum to %d of %d", seq, Total(states[seq]), counts[seq])
		}
	}
	part := func(parts []int64) (out []int64) {
		for _, c := range d.Categories {
			out = append(out, parts[schemas.Precedence(c.Category)])
		}
		return out
	}
	longest, shortest := int64(0), to
	for _, pt := range d.Points {
		n := pt.ToEvent - pt.FromEvent + 1
		longest, shortest = max(longest, n), min(shortest, n)
		most := make([]int64, memory.NCategories)
		low, high := pt.FromEvent, pt.FromEvent
		for seq := pt.FromEvent; seq <= pt.ToEvent; seq++ {
			if counts[seq] < counts[low] {
				low = seq
			}
			if counts[seq] > counts[high] {
				high = seq
			}
			for c, b := range states[seq] {
				most[c] = max(most[c], b)
			}
		}
		if pt.LowBytes != counts[low] || pt.LowEvent != low || pt.HighBytes != counts[high] || pt.HighEvent != high {
			t.Fatalf("%+v, want %d at %d to %d at %d", pt, counts[low], low, counts[high], high)
		}
		if !slices.Equal(pt.Bytes, part(states[high])) || !slices.Equal(pt.MaxBytes, part(most)) ||
			Total(pt.Bytes) != pt.HighBytes {
			t.Fatalf("%+v, want %v and %v", pt, part(states[high]), part(most))
		}
	}
	if longest > shortest+1 {
		t.Errorf("points of %d to %d events", shortest, longest)
	}
	atPeak := partsAt(l, d.RunPeakAt.Event)
	listed := map[schemas.Category]bool{}
	for _, m := range d.Categories {
		c := schemas.Precedence(m.Category)
		listed[m.Category] = true
		first := from
		for seq := from; seq <= to; seq++ {
			if states[seq][c] > states[first][c] {
				first = seq
			}
		}
		if m.MaxBytes != states[first][c] || m.At.Event != first || m.AllocatedBytes != counts[first] ||
			m.AtPeakBytes != atPeak[c] {
			t.Fatalf("%+v, want %d at %d", m, states[first][c], first)
		}
		for _, k := range []struct {
			memory.Evidence
			bytes int64
		}{{m.MaxEvidence, m.MaxBytes}, {m.AtPeakEvidence, m.AtPeakBytes}} {
			if k.TaggedBytes+k.LifetimeBytes+k.PhaseOnlyBytes != k.bytes {
				t.Fatalf("%s: %+v of %d bytes", m.Category, k, k.bytes)
			}
		}
	}
	for c, name := range schemas.Categories {
		for seq := from; seq <= to; seq++ {
			if states[seq][c] > 0 && !listed[name] {
				t.Fatalf("%s has bytes at %d and is not listed", name, seq)
			}
		}
	}
	if d.RunPeakBytes != slices.Max(counts) || d.PeakBytes != slices.Max(counts[from:to+1]) ||
		counts[d.PeakAt.Event] != d.PeakBytes {
		t.Errorf("peak %d of %d, in the range %d", d.RunPeakBytes, slices.Max(counts), d.PeakBytes)
	}
}

// The maxima of the figure equal the maxima of the whole run and of the step with the peak.
func TestTimelineMaxima(t *testing.T) {
	in := fixture.Hooked()
	in.Steps = []schemas.Step{{Step: 0, BeginSeq: 0, EndSeq: 2, Recorded: true, Instrumented: true},
		{Step: 1, BeginSeq: 2, EndSeq: 6, Recorded: true, Instrumented: true}}
	in.Phases = []schemas.Phase{{Step: 0, Phase: schemas.PhaseForward, EndSeq: 2},
		{Step: 1, Phase: schemas.PhaseForward, BeginSeq: 2, EndSeq: 4},
		{Step: 1, Phase: schemas.PhaseBackward, BeginSeq: 4, EndSeq: 6}}
	tl, _ := mainTimeline(in)
	first := func(list []CategoryMaximum, c schemas.Category) CategoryMaximum {
		i := slices.IndexFunc(list, func(m CategoryMaximum) bool { return m.Category == c })
		if i < 0 {
			t.Fatalf("%s has no maximum in %+v", c, list)
		}
		return list[i]
	}
	if m := first(tl.Maxima, schemas.Parameters); m.At.Event != 1 || m.MaxBytes != 1000 || *m.At.Step != 0 {
		t.Errorf("of the run: %+v", m)
	}
	if m := first(tl.StepMaxima, schemas.Parameters); m.At.Event != 3 || m.MaxBytes != 1000 ||
		*m.At.Step != 1 || m.AtPeakBytes != 1000 {
		t.Errorf("of the step of the peak: %+v", m)
	}
	if m := first(tl.StepMaxima, schemas.Activations); m.At.Event != 3 || m.MaxBytes != 2048 ||
		Total(m.Parts) != m.AllocatedBytes {
		t.Errorf("of the step of the peak: %+v", m)
	}
}

// If a requested range does not exist, CategoryTimeline returns an error that names the range.
func TestCategoryTimelineRefuses(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	for _, r := range []EventRange{{Step: n(1), From: n(2)}, {Step: n(-1)}, {From: n(-1)}, {To: n(-2)},
		{From: n(3), To: n(2)}} {
		if r.Check() == nil {
			t.Errorf("%+v is taken", r)
		}
	}
	in := fixture.Hooked()
	in.Steps = []schemas.Step{{Step: 0, EndSeq: 4, Recorded: true}, {Step: 1}}
	for want, r := range map[string]EventRange{
		"6 events, not 7":                          {To: n(7)},
		"6 events, not 9":                          {From: n(9)},
		"steps go from 0 to 1":                     {Step: n(5)},
		"was not recorded":                         {Step: n(1)},
		`no device "cuda:3" with allocator events`: {Device: "cuda:3"},
		"it has cuda:0":                            {Device: "3"},
	} {
		if _, err := CategoryTimeline(in, r, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
	run, err := CategoryTimeline(in, EventRange{Step: n(0)}, 0)
	if err != nil || len(run.Devices[0].Untagged) != 1 || run.Devices[0].Untagged[0].Step != 0 ||
		run.Devices[0].FromEvent != 1 || run.Devices[0].ToEvent != 4 {
		t.Errorf("%+v, %v", run, err)
	}
	// If a request failed in a step, the step has phases but may have no row in the table of steps. A user can still
	// request this step, as for a breakdown.
	in.Phases = []schemas.Phase{{Step: -1, Phase: schemas.PhaseSetupModel, EndSeq: 1},
		{Step: 0, Phase: schemas.PhaseForward, BeginSeq: 1, EndSeq: 2},
		{Step: 2, Phase: schemas.PhaseForward, BeginSeq: 3, EndSeq: 4}, {Step: 2, Phase: schemas.PhaseBackward,
			BeginSeq: 4, EndSeq: 6}}
	run, err = CategoryTimeline(in, EventRange{Step: n(2)}, 0)
	if err != nil || len(run.Devices[0].Warnings) != 0 || run.Devices[0].FromEvent != 4 || run.Devices[0].ToEvent != 6 {
		t.Errorf("%+v, %v", run, err)
	}
	if _, err = CategoryTimeline(in, EventRange{Step: n(5)}, 0); err == nil ||
		!strings.HasSuffix(err.Error(), "steps go from 0 to 1; 2 is what came after") {
		t.Error(err)
	}
	var none *memory.NoEventsError
	bare := schemas.Tables{Manifest: &schemas.Manifest{RunID: "bare", Bare: true}}
	if _, err := CategoryTimeline(bare, EventRange{}, 0); !errors.As(err, &none) {
		t.Errorf("a bare run: %v", err)
	}
}
