package explain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

// layered gives a run's blocks modules: of their owner, of the parameter that it names, of their birth, or none.
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
			o.Name = fmt.Sprintf("layers.%d.weight", r.IntN(6)) // of layers 4 and 5 only the container is known
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

// checkExplained holds a document to its sums.
func checkExplained(t *testing.T, doc *Document, from, to *analyze.Summary) {
	t.Helper()
	var a, b, delta int64
	for _, c := range doc.Categories {
		var ma, mb, mdelta int64
		for _, m := range c.Modules {
			ma, mb, mdelta = ma+m.FromBytes, mb+m.ToBytes, mdelta+m.DeltaBytes
			if m.DeltaBytes != m.ToBytes-m.FromBytes ||
				(m.Module == nil || *m.Module == memory.SharedByModules) != (m.Modules == 0) {
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
	if got := slices.Concat(doc.MemorySentences(), doc.TimeSentences(), doc.ModuleTimeSentences()); !slices.Equal(got,
		doc.Sentences) || len(doc.MemorySentences()) == 0 {
		t.Errorf("sentences %q are not %q", got, doc.Sentences)
	}
}

// sumBirths adds up phases of birth; each is there once.
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

// Blocks alive at the peak count under the phase that they were born in, whatever the step; what no event saw the birth
// of, by itself.
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
	ghost.Allocations[0].RequestedBytes -= 2 * m // slack is born with its block
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
	if text := strings.Join(doc.MemorySentences(), "\n"); !strings.Contains(text, "Of the 32.00 MiB by which ghost's "+
		"peak exceeds plain's, 60.00 MiB (188 %) are of blocks born in backward.grad (plain's peak has none), "+
		"8.00 MiB (25 %) blocks born between windows (plain's peak has none) and 4.00 MiB (13 %) blocks born in "+
		"backward.norm (plain's peak has none); "+
		"against them stand 40.00 MiB (125 %) less of blocks born in backward (ghost's peak has none).") {
		t.Error(text)
	}
	ghost.Phases = []schemas.Phase{{Phase: schemas.PhaseBetween}} // as of an imported file
	if doc, err = Explain(NewInput(plain), NewInput(ghost)); err != nil || len(doc.MemoryPhases) != 0 ||
		len(doc.Categories) == 0 || len(doc.Categories[0].Phases) != 0 ||
		strings.Contains(strings.Join(doc.Sentences, " "), "born") {
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

// A difference of workspaces is no single module's.
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
	if m := doc.Categories[at].Modules; len(m) != 1 || *m[0].Module != memory.SharedByModules || m[0].Modules != 0 ||
		m[0].Role != nil || m[0].DeltaBytes != 1000 {
		t.Errorf("%+v", m)
	}
	if text := strings.Join(doc.Sentences, " "); !strings.Contains(text, "of workspace at ") ||
		!strings.Contains(text, "belong to all modules together") {
		t.Errorf("%s", text)
	}
}

// The sentences state the figures, what stands against them, and what is left.
func TestExplainedSentences(t *testing.T) {
	const m = 1 << 20
	plain := fixture.Sized("plain", map[schemas.Category]int64{schemas.Parameters: 100 * m,
		schemas.ActivationGradients: 40 * m})
	ghost := fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: 100 * m, schemas.Gradients: 60 * m,
		schemas.ClipTemporaries: 4 * m, schemas.NormSamples: 1024})
	ghost.Modules = []schemas.Module{{ID: 7, Path: "head", Class: "Linear"}}
	for i := range ghost.Owners {
		if ghost.Owners[i].Category == schemas.Gradients {
			ghost.Owners[i].Name = "head.weight"
		}
	}
	phases := func(in schemas.Tables, ms map[string]int64, step ...int64) schemas.Tables {
		in = fixture.Slow(in, step...)
		for i := range step {
			for phase, v := range ms {
				in.Phases = append(in.Phases, schemas.Phase{Step: int64(i), Phase: phase, GPUNS: v * 1e6,
					EndNS: v * 1e6})
			}
		}
		return in
	}
	plain = phases(plain, map[string]int64{"forward": 10, "backward": 20}, 30, 30)
	ghost = phases(ghost, map[string]int64{"forward": 10, "backward.norm": 70, "backward.grad": 20}, 103, 103)
	doc, err := Explain(NewInput(plain), NewInput(ghost))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(doc.Sentences, "\n")
	for _, want := range []string{
		"The peak of ghost is 164.00 MiB, 24.00 MiB (17 %) more than that of plain (140.00 MiB).",
		"Of the 24.00 MiB by which ghost's peak exceeds plain's, 60.00 MiB (250 %) are gradients (plain's peak has " +
			"none) and 4.00 MiB (17 %) clip temporaries (plain's peak has none); " +
			"against them stand 40.00 MiB (167 %) less of activation gradients (ghost's peak has none); one other of " +
			"the categories comes to <0.01 MiB.",
		"Of the 60.00 MiB more of gradients at ghost's peak, 60.00 MiB (100 %) belong to head.",
		"Of the 40.00 MiB less of activation gradients at ghost's peak, 40.00 MiB (100 %) belong to no known module.",
		"A step of ghost takes 103.0 ms, 73.0 ms (243 %) more than one of plain (30.0 ms): medians of 2 steps each, " +
			"in GPU time.",
		"70.0 ms (96 %) are backward.norm (plain has none) and 20.0 ms (27 %) backward.grad (plain has none); " +
			"against them stand 20.0 ms (27 %) less of backward (ghost has none).",
		" of ghost take 90.0 ms, 70.0 ms (350 %) more than those of plain (20.0 ms).",
		"The medians of the phases do not add up to those of the steps: +3.000 ms are of no phase.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	var sum float64
	for _, p := range doc.Phases {
		sum += *p.DeltaMS
	}
	if math.Abs(sum+*doc.PhaseResidueMS-*doc.StepDeltaMS) > 1e-9 || math.Abs(*doc.PhaseResidueMS-3) > 1e-9 {
		t.Errorf("phases sum to %g, residue %g, step %g", sum, *doc.PhaseResidueMS, *doc.StepDeltaMS)
	}

	early := ghost
	early.Manifest = new(*ghost.Manifest)
	early.Manifest.Status = schemas.StatusOOM
	for _, c := range []struct {
		from, to schemas.Tables
		want     string
	}{{plain, early, "The peak of ghost is 164.00 MiB, 24.00 MiB (17 %) more than that of plain (140.00 MiB); ghost " +
		"ended early (oom): its peak is of what it did until then."},
		{early, plain, "The peak of plain is 140.00 MiB, 24.00 MiB (15 %) less than that of ghost (164.00 MiB); " +
			"ghost ended early (oom): its peak is of what it did until then."}} {
		if doc, err := Explain(NewInput(c.from), NewInput(c.to)); err != nil || doc.Sentences[0] != c.want {
			t.Errorf("%v: %q", err, doc.Sentences)
		}
	}

	back, err := Explain(NewInput(ghost), NewInput(plain))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"by which plain's peak is below ghost's, 60.00 MiB (250 %) are gradients (plain's " +
		"peak has none)", "40.00 MiB (167 %) more of activation gradients"} {
		if !strings.Contains(strings.Join(back.Sentences, "\n"), want) {
			t.Errorf("no %q in %q", want, back.Sentences)
		}
	}
}

// Where parts cancel, shares of what is left would say nothing.
func TestExplainedPartsThatCancel(t *testing.T) {
	const m = 1 << 20
	a := fixture.Sized("a", map[schemas.Category]int64{schemas.Activations: 500 * m})
	for _, c := range []struct {
		bytes int64
		want  string
	}{
		{500 * m, "That b's peak equals a's is the sum of 500.00 MiB less of activations (b's peak has none) and " +
			"500.00 MiB more of hook activations (a's peak has none)."},
		{501 * m, "That b's peak exceeds a's by 1.00 MiB is the sum of 501.00 MiB more of hook activations (a's peak " +
			"has none) and 500.00 MiB less of activations (b's peak has none)."},
	} {
		doc, err := Explain(NewInput(a),
			NewInput(fixture.Sized("b", map[schemas.Category]int64{schemas.HookActivations: c.bytes})))
		if err != nil || !slices.Contains(doc.Sentences, c.want) {
			t.Errorf("%v, no %q in %q", err, c.want, doc.Sentences)
		}
	}
}

// Runs without a breakdown are compared by what they have, and nothing is made up.
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
		doc.PhaseResidueMS != nil || len(doc.TimeSentences()) != 0 ||
		!slices.Contains(doc.Sentences,
			"The difference is not broken down: there is no breakdown of the peak of bare.") || len(doc.Warnings) == 0 {
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

func TestShareText(t *testing.T) {
	for _, c := range []struct {
		part, whole float64
		want        string
	}{{1, 2, "50 %"}, {3, 3, "100 %"}, {0, 3, "0 %"}, {9999, 10000, ">99.9 %"}, {9973, 10000, "99.7 %"},
		{3, 1000, "0.3 %"}, {1, 1e6, "<0.1 %"}, {100001, 1e5, "100.1 %"}, {15, 1, "1,500 %"}} {
		if got := prose.Share(c.part, c.whole); got != c.want {
			t.Errorf("%g of %g is %q, want %q", c.part, c.whole, got, c.want)
		}
	}
}

// Sentences call categories what papers do.
func TestCategoriesInProse(t *testing.T) {
	for c, want := range map[schemas.Category]string{schemas.PerSampleGradients: "per-sample gradients",
		schemas.ClipTemporaries: "clip temporaries", schemas.Noise: "noise"} {
		if got := prose.Words(c); got != want {
			t.Errorf("%s in prose is %q, want %q", c, got, want)
		}
	}
}

// A module that has no name of its own, in an nn.Sequential say, is not a bare digit in a sentence.
func TestSentencesNameNumberedModules(t *testing.T) {
	for path, want := range map[string]string{"3": "module 3 (Conv2d)", "0.1": "module 0.1 (Conv2d)",
		"blocks.3": "blocks.3", "": "(Conv2d)"} {
		if got := grouping.ModuleWords(&schemas.Module{Path: path, Class: "Conv2d"}); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	for title, want := range map[string]string{"3": "module 3", "blocks.*.mlp": "blocks.*.mlp", "(GAN)": "GAN"} {
		if got := (&ModulePart{Module: &title, Modules: 1}).prose(); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}
