package explain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/schemas"
)

// layered gives modules to a run's blocks in different ways. A block gets its module from its owner, from the parameter
// that its owner names, from its birth, or not at all.
func layered(in schemas.Tables, r *rand.Rand) schemas.Tables {
	in.Modules = []schemas.Module{{ID: 1, Class: "Net", ParameterBytes: 4},
		{ID: 2, Path: "layers", Class: "ModuleList"}, {ID: 3, Path: "head", Class: "Linear", Role: "head"}}
	for i := range 4 {
		in.Modules = append(in.Modules, schemas.Module{ID: int64(10 + i), Path: fmt.Sprintf("layers.%d", i),
			Class: "Block", Role: "mlp"})
	}
	any := func() int64 { return in.Modules[r.IntN(len(in.Modules))].ID }
	for i := range in.Owners {
		switch o := &in.Owners[i]; r.IntN(3) {
		case 0:
			o.Module = any()
		case 1:
			// of layers 4 and 5, only the container is in the table of modules
			o.Name = fmt.Sprintf("layers.%d.weight", r.IntN(6))
		}
	}
	for i := range in.Allocations {
		if r.IntN(2) == 0 {
			in.Allocations[i].Module = any()
		}
		in.Allocations[i].Phase = []string{schemas.PhaseSetupModel, schemas.PhaseForward, schemas.PhaseBackward,
			""}[r.IntN(4)]
	}
	for device := range int32(2) {
		in.Phases = append(in.Phases, schemas.Phase{Device: device, Phase: schemas.PhaseForward})
	}
	return in
}

// checkExplained checks that the parts of an explanation sum to the differences that it states.
func checkExplained(t *testing.T, doc *Explanation, from, to *analyze.Summary) {
	t.Helper()
	var a, b, delta int64
	for _, c := range doc.Categories {
		var ma, mb, mdelta int64
		for _, m := range c.Modules {
			ma, mb, mdelta = ma+m.FromBytes, mb+m.ToBytes, mdelta+m.DeltaBytes
			if m.DeltaBytes != m.ToBytes-m.FromBytes ||
				(m.Module == nil || *m.Module == schemas.SharedByModules) != (m.Modules == 0) {
				t.Errorf("%s: %+v", c.Category, m)
			}
		}
		if e, f := c.FromEvidence, c.ToEvidence; e.TaggedBytes+e.LifetimeBytes+e.PhaseOnlyBytes != c.FromBytes ||
			f.TaggedBytes+f.LifetimeBytes+f.PhaseOnlyBytes != c.ToBytes {
			t.Errorf("%s: evidence %+v and %+v of %+v", c.Category, e, f, c)
		}
		if births := sumBirths(t, c.Phases); births.FromBytes != c.FromBytes || births.ToBytes != c.ToBytes {
			t.Errorf("%s: phases sum to %+v of %+v", c.Category, births, c)
		}
		if ma != c.FromBytes || mb != c.ToBytes || mdelta != c.DeltaBytes {
			t.Errorf("%s: modules sum to %d, %d, %d of %+v", c.Category, ma, mb, mdelta, c)
		}
		if c.FromBytes != from.Main().Category(c.Category).Bytes || c.ToBytes != to.Main().Category(c.Category).Bytes {
			t.Errorf("%s: %d and %d differ from the breakdowns", c.Category, c.FromBytes, c.ToBytes)
		}
		a, b, delta = a+c.FromBytes, b+c.ToBytes, delta+c.DeltaBytes
	}
	if a != *from.PeakBytes || b != *to.PeakBytes || delta != *doc.PeakDeltaBytes || delta != b-a {
		t.Errorf("categories sum to %d, %d, %d; the peaks are %d and %d, their difference %d", a, b, delta,
			*from.PeakBytes, *to.PeakBytes, *doc.PeakDeltaBytes)
	}
	if births := sumBirths(t, doc.MemoryPhases); births.FromBytes != a || births.ToBytes != b ||
		births.DeltaBytes != delta {
		t.Errorf("phases of birth sum to %+v; the peaks are %d and %d, their difference %d", births, a, b, delta)
	}
	for _, r := range doc.Runs {
		if m := r.Modules; m.OwnerBytes+m.NameBytes+m.BirthBytes+m.NoneBytes+m.SharedBytes != *r.PeakBytes {
			t.Errorf("%s: %+v does not sum to %d", r.RunID, m, *r.PeakBytes)
		}
	}
}

// sumBirths sums the differences by phase of birth, and checks that each phase occurs only once.
func sumBirths(t *testing.T, list []BirthPart) (sum BirthPart) {
	t.Helper()
	seen := map[string]bool{}
	for _, b := range list {
		if b.DeltaBytes != b.ToBytes-b.FromBytes || seen[b.Title()] {
			t.Errorf("%s: %+v", b.Title(), b)
		}
		seen[b.Title()] = true
		sum.FromBytes, sum.ToBytes, sum.DeltaBytes = sum.FromBytes+b.FromBytes, sum.ToBytes+b.ToBytes,
			sum.DeltaBytes+b.DeltaBytes
	}
	return sum
}

// Each block that is live at the peak counts under the phase in which it was allocated, in whichever step. A block
// without an allocation event counts separately.
func TestExplainedBirths(t *testing.T) {
	const m = 1 << 20
	plain := fixture.Sized("plain", map[schemas.Category]int64{schemas.Parameters: 100 * m,
		schemas.ActivationGradients: 40 * m})
	ghost := fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: 100 * m, schemas.Gradients: 60 * m,
		schemas.Activations: 8 * m, schemas.ClipTemporaries: 4 * m})
	born := func(in *schemas.Tables, phases ...string) {
		in.Phases = []schemas.Phase{{Phase: schemas.PhaseSetupModel}}
		for i, phase := range phases {
			in.Allocations[i].Phase = phase
		}
	}
	born(&plain, schemas.PhaseSetupModel, schemas.PhaseBackward)
	born(&ghost, schemas.PhaseSetupModel, schemas.PhaseBackwardGrad, "", schemas.PhaseBackwardNorm)
	ghost.Allocations[0].RequestedBytes -= 2 * m // slack counts in the phase in which its block was allocated
	doc, err := Explain(NewInput(plain), NewInput(ghost))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range doc.MemoryPhases {
		got = append(got, fmt.Sprintf("%s %d", b.Title(), b.DeltaBytes/m))
	}
	if want := []string{"backward.grad 60", "backward -40", "between windows 8", "backward.norm 4",
		"setup.model 0"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	ghost.Phases = []schemas.Phase{{Phase: schemas.PhaseBetween}} // an imported file may have only these phases
	if doc, err = Explain(NewInput(plain), NewInput(ghost)); err != nil || len(doc.MemoryPhases) != 0 ||
		len(doc.Categories) == 0 || len(doc.Categories[0].Phases) != 0 {
		t.Errorf("%+v, %v", doc, err)
	}
}

func TestExplainedDifferencesSum(t *testing.T) {
	var runs []Input
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 7))
		in, _ := fixture.RandomRun(r)
		in.Manifest.RunID = string(rune('a' + seed))
		runs = append(runs, NewInput(layered(in, r)))
	}
	for i := range runs {
		for j := range runs {
			doc, err := Explain(runs[i], runs[j])
			if err != nil || doc.From != runs[i].RunID || doc.To != runs[j].RunID {
				t.Fatalf("%+v, %v", doc, err)
			}
			checkExplained(t, &doc, &runs[i].Summary, &runs[j].Summary)
			if i == j && *doc.PeakDeltaBytes != 0 {
				t.Errorf("%s differs from itself", doc.From)
			}
		}
	}
}

// If the workspaces of two runs differ, the difference belongs to no single module.
func TestExplainedWorkspaces(t *testing.T) {
	var d [2]Input
	for i := range d {
		in := fixture.Hooked()
		in.Modules = []schemas.Module{{ID: 1, Path: "first", Class: "Linear", Role: "mlp"}}
		for k := range in.Allocations {
			in.Allocations[k].Module = 1
		}
		if i == 1 {
			in.Owners[0] = schemas.Owner{AllocID: 1, Category: schemas.Workspace, BeginSeq: 1,
				Evidence: schemas.Lifetime, Module: 1}
		}
		d[i] = NewInput(in)
	}
	doc, err := Explain(d[0], d[1])
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(doc.Categories, func(c CategoryPart) bool { return c.Category == schemas.Workspace })
	if m := doc.Categories[at].Modules; len(m) != 1 || *m[0].Module != schemas.SharedByModules || m[0].Modules != 0 ||
		m[0].Role != nil || m[0].DeltaBytes != 1000 {
		t.Errorf("%+v", m)
	}
}

// Explain compares runs without a breakdown by the values that they have. All other values stay unknown.
func TestExplainWithoutBreakdown(t *testing.T) {
	bare := schemas.Tables{Manifest: &schemas.Manifest{RunID: "bare", Bare: true, Status: schemas.StatusOK,
		Source: schemas.Measured}, Report: &schemas.IngestReport{}}
	full := fixture.Sized("full", map[schemas.Category]int64{schemas.Parameters: 4096})
	if _, err := Explain(NewInput(full), NewInput(bare)); err == nil {
		t.Error("there is nothing to compare")
	}
	peak := int64(8192)
	bare.Report.Devices = []schemas.DeviceVerdict{{TorchPeakAllocatedBytes: &peak}}
	doc, err := Explain(NewInput(full), NewInput(bare))
	if err != nil || len(doc.Categories) != 0 || *doc.PeakDeltaBytes != 4096 || doc.StepDeltaMS != nil ||
		doc.PhaseResidueMS != nil || len(doc.Said) == 0 {
		t.Errorf("%+v, %v", doc, err)
	}
}

func TestFolds(t *testing.T) {
	mods := func(pairs ...string) (out []schemas.Module) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, schemas.Module{Path: pairs[i], Class: pairs[i+1]})
		}
		return out
	}
	one := mods("h", "ModuleList", "h.0", "Block", "h.1", "Block", "h.1.seq", "Sequential", "h.1.seq.0", "Linear",
		"h.1.seq.1", "ReLU", "solo", "ModuleList", "solo.0", "Block",
		"e.0", "Expert", "e.1", "Expert", "0", "Linear", "1", "Linear")
	other := mods("e.0", "Expert", "e.1", "Router", "solo.0", "Block")
	f := grouping.FoldsOf(one, other)
	for path, want := range map[string]string{"h.1": "h.*", "h.1.seq.0": "h.*.seq.0", "solo.0": "solo.0", "e.1": "e.1",
		"1": "*", "": "", "head": "head"} {
		if got := f.Fold(path); got != want {
			t.Errorf("%q folds to %q, want %q", path, got, want)
		}
	}
}

// In an nn.Sequential, a module's path is only a number. Sentences then say "module 3 (Conv2d)", and not only "3".
func TestSentencesNameNumberedModules(t *testing.T) {
	for path, want := range map[string]string{"3": "module 3 (Conv2d)", "0.1": "module 0.1 (Conv2d)",
		"blocks.3": "blocks.3", "": "(Conv2d)"} {
		if got := grouping.ModuleWords(&schemas.Module{Path: path, Class: "Conv2d"}); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
