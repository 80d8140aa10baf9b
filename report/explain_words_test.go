package report_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/analyze/fixture"
	runs "github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

func explained(t *testing.T, from, to schemas.Tables) explain.Explanation {
	t.Helper()
	doc, err := explain.Explain(explain.NewInput(from), explain.NewInput(to))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// told returns the sentences that explain the difference between two runs.
func told(doc explain.Explanation) []string { return report.NewExplainDocument(doc).Sentences }

// The sentences state both runs' figures, the largest parts of the difference, and the remaining difference.
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
				in.Phases = append(in.Phases, schemas.Phase{Step: int64(i), Phase: phase, GPUNS: new(v * 1e6),
					EndNS: v * 1e6})
			}
		}
		return in
	}
	plain = phases(plain, map[string]int64{"forward": 10, "backward": 20}, 30, 30)
	ghost = phases(ghost, map[string]int64{"forward": 10, "backward.norm": 70, "backward.grad": 20}, 103, 103)
	doc, err := explain.Explain(explain.NewInput(plain), explain.NewInput(ghost))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(told(doc), "\n")
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
		"The phases' medians do not sum to the steps' medians: +3.000 ms are in no phase.",
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
	}{{plain, early, "The peak of ghost is 164.00 MiB, 24.00 MiB (17 %) more than that of plain (140.00 MiB); " +
		"ghost ended early (oom): its peak is of what it did until then."},
		{early, plain, "The peak of plain is 140.00 MiB, 24.00 MiB (15 %) less than that of ghost (164.00 MiB); " +
			"ghost ended early (oom): its peak is of what it did until then."}} {
		if got := told(explained(t, c.from, c.to)); got[0] != c.want {
			t.Errorf("%q", got)
		}
	}

	back, err := explain.Explain(explain.NewInput(ghost), explain.NewInput(plain))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"by which plain's peak is below ghost's, 60.00 MiB (250 %) are gradients (plain's " +
		"peak has none)", "40.00 MiB (167 %) more of activation gradients"} {
		if !strings.Contains(strings.Join(told(back), "\n"), want) {
			t.Errorf("no %q in %q", want, told(back))
		}
	}
}

// If the parts of a difference nearly cancel out, the sentences give no shares of the remaining difference, since they
// would mean nothing.
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
		doc, err := explain.Explain(explain.NewInput(a),
			explain.NewInput(fixture.Sized("b", map[schemas.Category]int64{schemas.HookActivations: c.bytes})))
		if err != nil || !slices.Contains(told(doc), c.want) {
			t.Errorf("%v, no %q in %q", err, c.want, told(doc))
		}
	}
}

// The sentences name the phase in which blocks were allocated, whichever step it was in.
func TestExplainedBirthsAreTold(t *testing.T) {
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
	text := strings.Join(told(explained(t, plain, ghost)), "\n")
	if !strings.Contains(text, "Of the 32.00 MiB by which ghost's peak "+
		"exceeds plain's, 60.00 MiB (188 %) are of blocks born in backward.grad (plain's peak has none), "+
		"8.00 MiB (25 %) blocks born between windows (plain's peak has none) and 4.00 MiB (13 %) blocks born in "+
		"backward.norm (plain's peak has none); "+
		"against them stand 40.00 MiB (125 %) less of blocks born in backward (ghost's peak has none).") {
		t.Error(text)
	}
	ghost.Phases = []schemas.Phase{{Phase: schemas.PhaseBetween}} // an imported file may have only these phases
	if text := strings.Join(told(explained(t, plain, ghost)), " "); strings.Contains(text, "born") {
		t.Error(text)
	}
}

// If workspaces differ, the sentences attribute the difference to no single module.
func TestExplainedWorkspacesAreTold(t *testing.T) {
	from, to := fixture.Hooked(), fixture.Hooked()
	for _, in := range []*schemas.Tables{&from, &to} {
		in.Modules = []schemas.Module{{ID: 1, Path: "first", Class: "Linear", Role: "mlp"}}
		for k := range in.Allocations {
			in.Allocations[k].Module = 1
		}
	}
	to.Owners[0] = schemas.Owner{AllocID: 1, Category: schemas.Workspace, BeginSeq: 1, Evidence: schemas.Lifetime,
		Module: 1}
	text := strings.Join(told(explained(t, from, to)), " ")
	if !strings.Contains(text, "of workspace at ") || !strings.Contains(text, "belong to all modules together") {
		t.Errorf("%s", text)
	}
}

// If a run has no breakdown, a note says so.
func TestExplainedWithoutBreakdownIsTold(t *testing.T) {
	bare := schemas.Tables{Manifest: &schemas.Manifest{RunID: "bare", Bare: true, Status: schemas.StatusOK,
		Source: schemas.Measured}, Report: &schemas.IngestReport{}}
	bare.Report.Devices = []schemas.DeviceVerdict{{TorchPeakAllocatedBytes: new(int64(8192))}}
	got := told(explained(t, fixture.Sized("full", map[schemas.Category]int64{schemas.Parameters: 4096}), bare))
	if len(got) != 2 ||
		got[1] != "The difference is not broken down: there is no breakdown of the peak of bare." {
		t.Errorf("%q", got)
	}
}

// The sentences mention kept gradients if the run keeps them at the peak, and otherwise not.
func TestKeptGradientsAreExplained(t *testing.T) {
	from, to := explain.NewInput(fixture.KeptRun(true)), explain.NewInput(fixture.KeptRun(false))
	from.RunID = "fresh"
	words := func() string {
		doc, err := explain.Explain(from, to)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(append(told(doc), report.NewExplainDocument(doc).Warnings...), " ")
	}
	if got := words(); !strings.Contains(got, ".grad") {
		t.Error(got)
	}
	to.Kept = &memory.KeptGradients{FreedPeakBytes: *to.PeakBytes}
	if got := words(); strings.Contains(got, ".grad") {
		t.Error(got)
	}
}

// If a peak has no breakdown, the sentences do not claim what the peak holds.
func TestLatePeakIsNotExplained(t *testing.T) {
	in := fixture.LateInput(100)
	in.Owners = append(in.Owners, schemas.Owner{AllocID: 1, Category: schemas.HookActivations, BeginSeq: 1, EndSeq: 2,
		Evidence: schemas.Tagged})
	held := func(in schemas.Tables) string {
		return strings.Join(told(explained(t, in, fixture.LateInput(100))), "\n")
	}
	const hooks = "that DP hooks hold for backward"
	if text := held(in); !strings.Contains(text, hooks) {
		t.Errorf("%s", text)
	}
	in.Report.Devices[0].TorchPeakAllocatedBytes = new(int64(150))
	if text := held(in); !strings.Contains(text, "there is no breakdown of the peak") || strings.Contains(text, hooks) {
		t.Errorf("%s", text)
	}
}

// The sentences on times by module say which modules take more time, and how much of it is in DP hooks.
func TestExplainedModuleTimesAreTold(t *testing.T) {
	for _, c := range []struct {
		doc  explain.Explanation
		want []string
	}{
		{explained(t, fixture.PlainTimes(), fixture.GhostTimes()), []string{"Of the 11,396.0 ms that " +
			"ghost's step takes longer than plain's, 9,400.0 ms (82 %) lie in the backward of head and " +
			"2,000.0 ms (18 %) the backward of blocks.*.up (2 modules); 2 other parts come to " +
			"−4.000 ms.",
			"In ghost's step, 10,000.0 ms (72 %) are of norms and per-sample gradients in DP hooks, 9,000.0 ms of " +
				"them for head."}},
		{explained(t, fixture.GhostTimes(), fixture.PlainTimes()), []string{"Of the 11,396.0 ms that " +
			"plain's step takes less than " +
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
		got := strings.Join(told(c.doc), "\n")
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	}
}

// If the time of no module is known, the last sentence gives the reason.
func TestUnexplainedModuleTimesAreTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(from, to *schemas.Tables)
		want   string
	}{
		{"older", func(from, _ *schemas.Tables) { from.ModuleTimes = nil },
			"The difference of the steps is not known by module: there are no times of modules of plain."},
		{"bare", func(from, to *schemas.Tables) {
			from.Manifest.Bare, to.Manifest.Bare = true, true
		}, "there are no times of modules of plain and ghost."},
		{"wall", func(from, to *schemas.Tables) {
			from.Steps[1].GPUNS, to.Steps[1].GPUNS = 0, 0
		}, "steps are compared in wall time, and modules are timed on the GPU."},
	} {
		from, to := fixture.PlainTimes(), fixture.GhostTimes()
		c.change(&from, &to)
		if got := told(explained(t, from, to)); !strings.HasSuffix(got[len(got)-1], c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// If times are medians over repeats, a warning says so, with the range of the repeats and the run's own value.
func TestExplainedRepeatsAreTold(t *testing.T) {
	from, to := fixture.PlainTimes(), fixture.GhostTimes()
	around := append(runs.Repeats(from, 0.75, 0.6), runs.Repeats(to, 0.5, 0.3, 0.15)...)
	a, b := explain.NewInput(from), explain.NewInput(to)
	explain.NoteRepeats(explain.TakeRepeats([2]*explain.Input{&a, &b}, around))
	doc, err := explain.Explain(a, b)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(told(doc), "\n")
	for _, want := range []string{"A step of ghost takes 5,558.4 ms, 3,683.4 ms (196 %) more than one of plain " +
		"(1,875.0 ms): medians of 4 repeats (2,084.4 ms to 13,896.0 ms) and of 3 repeats (1,500.0 ms to 2,500.0 ms), " +
		"in GPU time.",
		"The ranges of the repeats overlap: which of the two is faster depends on the repeat."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if want := "plain: times are medians over 3 repeats in the store (1,500.0 ms to 2,500.0 ms a step); run plain " +
		"itself takes 2,500.0 ms"; !slices.Contains(report.NewExplainDocument(doc).Warnings, want) {
		t.Errorf("no %q in %q", want, report.NewExplainDocument(doc).Warnings)
	}
}

// If a run is one of several repeats, a note says so.
func TestRepeatsAreNoted(t *testing.T) {
	repeat := func(id string, ms float64) analyze.Summary {
		s := runs.Private(id, "ghost", 1000, ms)
		s.Name = "ghost"
		return s
	}
	around := []analyze.Summary{repeat("c", 30), repeat("b", 20)}
	a, b := repeat("a", 10), repeat("d", 5)
	before := []analyze.Remark{{Kind: analyze.RemarkNotIngested}}
	a.Remarks = before
	explain.NoteRepeats(explain.OtherRepeats([]*analyze.Summary{&a}, around))
	if want := []string{"not ingested yet", "one of 3 repeats in the store: their medians range from 10.0 ms to " +
		"30.0 ms, median 20.0 ms"}; !slices.Equal(report.RunWords(a.Remarks), want) || len(before) != 1 {
		t.Errorf("%+v", a.Remarks)
	}
	a.Remarks = nil
	explain.NoteRepeats(explain.OtherRepeats([]*analyze.Summary{&a, &b}, around))
	want := []string{"2 of 4 repeats in the store: their medians range from 5.000 ms to 30.0 ms, median 15.0 ms"}
	if !slices.Equal(report.RunWords(a.Remarks), want) || !slices.Equal(report.RunWords(b.Remarks), want) {
		t.Errorf("%+v, %+v", a.Remarks, b.Remarks)
	}
}
