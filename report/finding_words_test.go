package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/clipping"
	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/fixture"
	runs "github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/growth"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

// saidOf returns the findings of a single run, in words, by their ids.
func saidOf(in schemas.Tables) map[string]report.Finding1 {
	return saidIn(findings.Find([]findings.Checked{findings.CheckRun(in)}, nil))
}

// saidIn returns the findings of the first run, in words, by their ids.
func saidIn(found findings.Found) map[string]report.Finding1 {
	said := map[string]report.Finding1{}
	doc := (report.FindingsView{Schema: 1}).Tables(found)[0].Document.(report.FindingsDocument1)
	for _, f := range doc.Runs[0].Findings {
		said[f.ID] = f
	}
	return said
}

// saidBy returns a finding in words.
func saidBy(f findings.Finding) report.Finding1 {
	return saidIn(findings.Found{Runs: []findings.Run{{Findings: []findings.Finding{f}}}})[f.ID]
}

// manyParts returns a run with data for every finding about memory that is held.
func manyParts() schemas.Tables {
	const mib = 1 << 20
	part := func(c schemas.Category, mibs int64) fixture.Part { return fixture.Part{Category: c, Bytes: mibs * mib} }
	embedding, clip, outputs := part(schemas.PerSampleGradients, 400), part(schemas.ClipTemporaries, 200),
		part(schemas.Outputs, 100)
	embedding.Module, clip.Module, outputs.Module = 1, 2, 2
	optimizer, shared := part(schemas.OptimizerTemporaries, 100), part(schemas.Activations, 200)
	optimizer.Phase, shared.More = schemas.PhaseOptimizer, schemas.HookActivations
	slack, second := part(schemas.ActivationGradients, 100), part(schemas.Workspace, 64)
	slack.Slack, second.Stream = 100*mib, 7
	in := fixture.PeakOf(part(schemas.Parameters, 300), embedding, clip, optimizer, shared,
		part(schemas.HookActivations, 100), outputs, slack, part(schemas.Other, 100), part(schemas.Workspace, 64),
		part(schemas.Workspace, 64), second)
	in.Report.Devices[0].AmbiguousTags = 3
	in.Report.Devices[0].Verdict, in.Report.Devices[0].ResidueBytes = schemas.Lossy, 512
	for i := range in.Owners {
		if in.Owners[i].Category == schemas.Other {
			in.Owners[i].Evidence = schemas.ByPhase
		}
	}
	return in
}

// Every finding about memory that is held has its words, and states the assumption of its saving. If torch counted a
// higher peak than was recorded, no sentence and no figure mentions the peak.
func TestWordsOfWhatIsHeld(t *testing.T) {
	in := manyParts()
	held := []string{findings.PerSample, findings.PerSampleEmbedding, findings.ClipTemporaries, findings.OptimizerPeak,
		findings.SharedHooks, findings.OwnHooks, findings.OutputCopies, findings.Slack, findings.StreamWorkspaces,
		findings.ThreadWorkspaces, findings.PhaseOnly, findings.Unattributed, findings.RuleOfThumb,
		findings.AmbiguousTags, findings.NotConserved}
	said := saidOf(in)
	for _, id := range held {
		f, is := said[id]
		if !is || !strings.HasSuffix(f.Sentence, ".") || len(f.Figures) == 0 ||
			(f.SavesBytes != nil) != (f.Assumption != "") {
			t.Errorf("%s: %+v", id, f)
		}
	}
	in.Report.Devices[0].TorchPeakAllocatedBytes = new(int64(5000 << 20))
	said = saidOf(in)
	if f := said[findings.PeakNotBrokenDown]; !strings.HasPrefix(f.Sentence, "The peak, 5,000.00 MiB, came while no "+
		"events were recorded. The breakdown shows ") {
		t.Errorf("%+v", f)
	}
	delete(said, findings.PeakNotBrokenDown)
	for _, id := range held {
		f, is := said[id]
		if !is || strings.Contains(strings.ToLower(f.Sentence), "the peak") || f.Assumption != "" {
			t.Errorf("%s of a peak that was not recorded: %+v", id, f)
		}
		for _, g := range f.Figures {
			if strings.Contains(g.What, "peak") {
				t.Errorf("%s: %s", id, g.What)
			}
		}
	}
}

func TestWordsOfKeptGradients(t *testing.T) {
	in := fixture.KeptRun(false)
	for i := range in.Owners {
		if in.Owners[i].Category == schemas.Gradients {
			in.Allocations[in.Owners[i].AllocID-1].BlockBytes += 12
		}
	}
	said := saidOf(in)
	f := said[findings.KeptGradients]
	if len(f.Figures) != 3 || f.Figures[1].Value != 112 || f.Figures[1].What != "blocks of them unused at the peak" ||
		!strings.Contains(f.Sentence, "Blocks of such gradients are <0.01 MiB of the peak") {
		t.Errorf("%+v", f)
	}
	if f := said[findings.RuleOfThumb]; !strings.Contains(f.Sentence, "the optimizer's state") {
		t.Errorf("%+v", f)
	}
	in.Report.Devices[0].TorchPeakAllocatedBytes = new(int64(100000))
	if f := saidOf(in)[findings.KeptGradients]; f.Sentence == "" || strings.Contains(f.Sentence, "the peak") {
		t.Errorf("%+v", f)
	}
}

func TestWordsOfReserved(t *testing.T) {
	in := fixture.Pieces(6, 2, 6*64<<20)
	if f := saidOf(in)[findings.Fragmentation]; !strings.Contains(f.Sentence,
		"pool. This happened once, outside the steps, with 128.00 MiB free.") {
		t.Errorf("%+v", f)
	}
	if f := saidOf(in)[findings.Cached]; len(f.Figures) != 5 || f.Figures[1].Value != 128<<20 ||
		f.Figures[2].Value != 0 || !strings.HasPrefix(f.Sentence, "Reserved memory was highest outside the steps: ") {
		t.Errorf("%+v", f)
	}
	in.Report.Devices[0].TorchPeakReservedBytes = new(in.Report.Devices[0].PeakReservedBytes + 1000)
	for _, id := range []string{findings.Cached, findings.Fragmentation} {
		if f := saidOf(in)[id]; !strings.Contains(f.Sentence, "the highest recorded") {
			t.Errorf("%s: %+v", id, f)
		}
	}
}

// If expandable segments are already on, no finding advises them. dpsight knows this from the settings that the agent
// read, or because torch maps memory into segments.
func TestExpandableSegmentsAreNotAdvisedTwice(t *testing.T) {
	on := func(in schemas.Tables, settings map[string]any) schemas.Tables {
		in.Manifest.Environment = &schemas.Environment{AllocatorSettings: settings}
		return in
	}
	mapped := fixture.Pieces(6, 2, 6*64<<20)
	for i := range mapped.Events {
		if schemas.Action(mapped.Events[i].Action) == schemas.ActionSegmentAlloc {
			mapped.Events[i].Action = int32(schemas.ActionSegmentMap)
		}
	}
	setting := map[string]any{"expandable_segments": true}
	for what, in := range map[string]schemas.Tables{"set": on(fixture.Pieces(6, 2, 6*64<<20), setting), "mapped": mapped} {
		said := saidOf(in)
		for _, id := range []string{findings.Cached, findings.Fragmentation} {
			if f := said[id]; f.ID != id || f.Change != "" || f.SavesBytes != nil || f.Assumption != "" ||
				!strings.Contains(f.Sentence, " Expandable segments are already on.") {
				t.Errorf("%s: %+v", what, f)
			}
		}
	}
	off := saidOf(on(fixture.Pieces(6, 2, 6*64<<20), map[string]any{"expandable_segments": false}))
	if f := off[findings.Cached]; f.Change == "" || strings.Contains(f.Sentence, "already on") {
		t.Errorf("%+v", f)
	}
	slack := func(settings map[string]any) string {
		return saidOf(on(fixture.PeakOf(fixture.Part{Category: schemas.Parameters, Bytes: 900, Slack: 100}),
			settings))[findings.Slack].Change
	}
	rounds := map[string]any{"1": 4.0, "2": 0.0}
	for _, c := range []struct {
		settings map[string]any
		set, cut bool
	}{
		{nil, true, false},
		{setting, false, false},
		{map[string]any{"expandable_segments": true, "roundup_power2_divisions": rounds}, false, true},
		{map[string]any{"expandable_segments": false, "roundup_power2_divisions": rounds}, true, true},
		{map[string]any{"roundup_power2_divisions": map[string]any{"1": 0.0}}, true, false},
	} {
		got := slack(c.settings)
		if strings.Contains(got, "expandable_segments:True") != c.set || strings.Contains(got, "roundup_power2") != c.cut {
			t.Errorf("%v: %q", c.settings, got)
		}
	}
}

func TestWordsOfTimes(t *testing.T) {
	f := saidOf(fixture.Sampled("slow", 3, 0))[findings.Throttled]
	if f.Sentence != "The GPU ran below its set clock in 3 of 6 sampled timed steps (power cap). Their median is 14.0 "+
		"ms, the others' is 10.0 ms." || len(f.Figures) != 4 || f.Figures[2].Value != 14 ||
		f.Assumption != "all else is equal in the steps not slowed down" {
		t.Errorf("%+v", f)
	}
	for id, in := range map[string]schemas.Tables{findings.Throttled: fixture.Sampled("all", 6, 0),
		findings.OtherProcess: fixture.Sampled("shared", 0, 1)} {
		f := saidOf(in)[id]
		if !strings.Contains(f.Sentence, "in 6 of 6 sampled timed steps") || f.Assumption != "" ||
			!strings.HasSuffix(f.Sentence, " This holds for all timed steps, so its cost is unknown.") {
			t.Errorf("%+v", f)
		}
	}
	f = saidOf(fixture.Sampled("slow", 3, 0))[findings.UnsteadySteps]
	if !strings.HasPrefix(f.Sentence, "Of 6 timed steps, the middle 80 % take 10.0 ms to 14.0 ms. ") ||
		f.Figures[0].From != "steps.parquet: gpu_ns of the timed steps" {
		t.Errorf("%+v", f)
	}
	in := fixture.Sampled("busy", 0, 0)
	in.Manifest.Isolation = &schemas.Isolation{Reason: "another process was there", OtherProcesses: new(2)}
	if f := saidOf(in)[findings.NotIsolated]; len(f.Figures) != 1 || f.Figures[0].Value != 2 ||
		f.Sentence != "The GPU may not have been free when the run began: another process was there." {
		t.Errorf("%+v", f)
	}
}

func TestWordsOfGrowth(t *testing.T) {
	grown := func() schemas.Tables { return fixture.Growing(0, slices.Repeat([]int64{100}, 10)...) }
	f := saidOf(grown())[findings.KeptGraphs]
	if f.Sentence != "Memory grows by 100 B a step: 900 B in 9 steps (36 % of the peak). This "+
		"includes 900 B activations; "+
		"by module, 900 B of module mlp. The lowest allocated memory rises from step 0 to step 9, so "+
		"something keeps tensors or graphs of earlier steps alive." || !strings.Contains(f.Change, "loss.item()") {
		t.Errorf("%+v", f)
	}
	g := f.Growth
	if g == nil || g.Unit != "step" || g.Steps != 9 || g.SlopeBytes != 100 || g.Tau != 1 || !g.Steady ||
		g.Probability > 1e-6 || g.ExhaustedStep != nil {
		t.Errorf("%+v", g)
	}
	in := grown()
	for i := range in.Steps {
		in.Steps[i].Step *= 10
	}
	f = saidOf(in)[findings.KeptGraphs]
	if f.Figures[3].Value != 10 || !strings.Contains(f.Sentence, " to step 90, in the recorded steps, ") {
		t.Errorf("%+v", f)
	}
	in = grown()
	in.Manifest.Phantom = &schemas.Phantom{MemoryBytes: 524_288}
	f = saidOf(in)[findings.KeptGraphs]
	if !strings.HasSuffix(f.Sentence, " At this rate the process reaches its limit of 512.00 KiB at about step "+
		"5,200, or earlier because of cached memory.") || *f.Growth.ExhaustedStep != 5227 ||
		*f.Growth.LimitBytes != 524_288 {
		t.Errorf("%+v", f)
	}
	in = grown()
	for i, s := range in.Steps {
		in.Phases = append(in.Phases, schemas.Phase{Step: -1, Phase: schemas.PhaseEval, BeginK: int64(i),
			BeginSeq: s.BeginSeq, EndSeq: s.EndSeq})
	}
	in.Steps = nil
	f = saidOf(in)[findings.EvaluationGraphs]
	if !strings.HasPrefix(f.Sentence, "Memory grows by 100 B an evaluation pass: 900 B in 9 passes (36 % of the peak)") ||
		!strings.Contains(f.Change, "torch.no_grad()") || f.Growth.Unit != "evaluation_pass" {
		t.Errorf("%+v", f)
	}
	for i := range in.Owners {
		in.Owners[i].Category = schemas.Outputs
	}
	if f = saidOf(in)[findings.Growth]; strings.Contains(f.Change, "no_grad") || !strings.Contains(f.Change, ".cpu()") {
		t.Errorf("no graph is kept: %q", f.Change)
	}
}

// A block that was allocated between two windows does not count as a block from before recording.
func TestWordsOfUnattributed(t *testing.T) {
	in := fixture.Windowed()
	f := saidOf(in)[findings.Unattributed]
	if !strings.Contains(f.Sentence, "were made in steps that were not recorded") ||
		strings.Contains(f.Sentence, "before recording") || strings.Contains(f.Sentence, "fit no rule") ||
		!strings.Contains(f.Change, "--window-steps") || strings.Contains(f.Change, "under dpsight collect") ||
		!slices.ContainsFunc(f.Figures, func(g report.FindingFigure) bool {
			return g.What == "of it made between windows" && g.Value == 300
		}) {
		t.Errorf("%+v", f)
	}
	in.Allocations[1].AllocSeq, in.Owners[1].BeginSeq = 0, 0
	f = saidOf(in)[findings.Unattributed]
	if !strings.Contains(f.Sentence, "were live before recording began") ||
		strings.Contains(f.Change, "--window-steps") {
		t.Errorf("%+v", f)
	}
}

// If a check was not possible for a run, the document names the check and gives the reason.
func TestWordsOfNotLooked(t *testing.T) {
	said := func(in schemas.Tables) []string {
		found := findings.Find([]findings.Checked{findings.CheckRun(in)}, nil)
		return report.NewFindingsDocument(found).Runs[0].NotLooked
	}
	in := fixture.Windowed()
	in.Segments = nil
	if got := said(in); !slices.Contains(got, "cached bytes: at the highest reserved, some segments are unknown") {
		t.Errorf("%q", got)
	}
	in = fixture.Sampled("times", 0, 0)
	in.Manifest.Source = schemas.Predicted
	if got := said(in); !slices.Contains(got, "times: predicted runs have none") || len(got) != 2 ||
		!strings.HasPrefix(got[0], "bytes: ") {
		t.Errorf("%q", got)
	}
	in.Report = nil
	if got := said(in); !slices.Equal(got, []string{"everything: the run has not been ingested"}) {
		t.Errorf("%q", got)
	}
}

// The finding on a failed request states the limit, and by how much the limit exceeds the memory that was left for
// tensors.
func TestWordsOfFailures(t *testing.T) {
	in := fixture.Pieces(4, 2, 320<<20)
	seq := in.Report.Devices[0].Events
	in.Manifest.Status = schemas.StatusOOM
	in.Manifest.Phantom, in.Manifest.GPUs = &schemas.Phantom{MemoryBytes: 512 << 20},
		[]schemas.GPU{{TotalBytes: 600 << 20}}
	reserved := *memory.ReservedAt(&in, identity.Place{}, seq)
	in.Report.OOMs = []schemas.OOM{{Seq: seq, RequestedBytes: 1 << 30, DeviceFreeBytes: 512<<20 - reserved, Step: -1,
		Fatal: true}}
	for _, c := range []struct {
		limit       int64
		words       string
		left, taken bool
	}{
		{600 << 20, ". The limit is 600.00 MiB; the CUDA context, the driver and other processes took 88.00 MiB, " +
			"leaving 512.00 MiB for tensors: ", true, true},
		// the script has set this limit, so other memory took nothing of it
		{400 << 20, ". The limit is 400.00 MiB: ", false, false},
		// A limit of 550 MiB is above the free memory and below the whole device, so the sentence does not say what
		// took the rest.
		{550 << 20, ". The limit is 550.00 MiB; 512.00 MiB were left for tensors: ", true, false},
	} {
		in.Report.OOMs[0].LimitBytes = c.limit
		f := saidOf(in)[findings.OOM]
		has := func(what string) bool {
			return slices.ContainsFunc(f.Figures, func(g report.FindingFigure) bool { return g.What == what })
		}
		if !strings.Contains(f.Sentence, c.words) || has("limit left for tensors") != c.left ||
			has("limit taken by contexts, driver and others") != c.taken || f.Change == "" {
			t.Errorf("%+v", f)
		}
	}
	in.Report.OOMs[0].LimitBytes = 600 << 20
	in.Events, in.Reserved = nil, nil // without these tables, the reserved bytes are unknown
	if f := saidOf(in)[findings.OOM]; !strings.Contains(f.Sentence, ". The limit is 600.00 MiB, which includes "+
		"what the CUDA context and others take: ") {
		t.Errorf("%+v", f)
	}
	lost := fixture.KeptRun(false)
	lost.Report.OOMs = []schemas.OOM{{RequestedBytes: 1 << 30, LimitBytes: 2 << 30, Step: 2,
		Phase: schemas.PhaseForward, Module: "head", Fatal: true}}
	if f := saidOf(lost)[findings.OOM]; !strings.Contains(f.Sentence, "1,024.00 MiB by module head failed in "+
		"forward of step 2, and this ended the run") {
		t.Errorf("%+v", f)
	}
}

// A finding lists the ways to smaller clipping temporaries as alternatives. The finding says which of these ways the
// run already uses.
func TestWordsOfClipAdvice(t *testing.T) {
	for want, ways := range map[string][]clipping.Advice{
		"compute norms by tiles, which hold neither a T×T matrix nor a whole per-sample gradient; " +
			"or compute this layer's norm from Gram matrices (ghost clipping) if 2T² is below the product of its " +
			"dimensions": {clipping.Tiles, clipping.Gram},
		`set loss_reduction="sum": Opacus then copies no output gradients to scale them` +
			"; norms are computed by tiles already": {clipping.Sum},
		"use smaller physical batches; norms are computed by tiles already": nil,
	} {
		f := saidBy(findings.Finding{ID: findings.ClipTemporaries, Bytes: new(int64(1)),
			Facts: findings.ClipTemporariesFacts{Advice: ways}})
		if f.Change != want {
			t.Errorf("%q, want %q", f.Change, want)
		}
	}
}

// If following a finding would save nothing, the finding gives no advice, and its sentence gives the reason.
func TestWordsOfIdleAdvice(t *testing.T) {
	clip := findings.Finding{ID: findings.ClipTemporaries, Bytes: new(int64(1)), SavesBytes: new(int64(0)), Idle: true,
		Facts: findings.ClipTemporariesFacts{Advice: []clipping.Advice{clipping.Tiles, clipping.Sum}}}
	if f := saidBy(clip); f.Change != "" || !strings.HasSuffix(f.Sentence,
		". Without this memory the peak would be the same: another moment allocates as much.") {
		t.Errorf("%+v", f)
	}
	// If no other method has a lower peak, the finding does not advise another method. The finding's other advice
	// stays.
	clip.Idle, clip.SavesBytes = false, nil
	clip.Methods = &findings.Methods{Own: trial("g", "ghost", 1000<<20, 100),
		Lowest: trial("f", "flash", 1010<<20, 120)}
	f := saidBy(clip)
	if !strings.HasPrefix(f.Change, `set loss_reduction="sum"`) || f.Assumption != "" ||
		!strings.HasSuffix(f.Sentence, " Another method would save nothing: of the methods without this memory, "+
			"the lowest recorded peak is 1,010.00 MiB, of run f (method flash) with the same parameters.") {
		t.Errorf("%+v", f)
	}
	clip.SavesBytes = new(int64(0))
	clip.Facts = findings.ClipTemporariesFacts{Advice: []clipping.Advice{clipping.Tiles}}
	if f := saidBy(clip); f.Change != "" || strings.Contains(f.Sentence, "another moment") || f.Assumption !=
		"no recorded method of the same parameters peaks lower: the lowest is 1,010.00 MiB, run f (method flash)" {
		t.Errorf("%+v", f)
	}
}

func trial(id, method string, peak int64, ms float64) findings.Trial {
	s := runs.Private(id, method, peak, ms)
	return findings.Trial{Run: &s, Runs: 1, PeakBytes: peak, Step: s.StepMS}
}

// If a finding compares runs of other methods, it states their figures, and whether these were measured or predicted.
func TestWordsOfMethods(t *testing.T) {
	best := trial("run-bk", "bk", 1200<<20, 60)
	clip := findings.Finding{ID: findings.ClipTemporaries, Bytes: new(int64(1)), SavesBytes: new(int64(0)),
		SavesMS: new(40.0), Facts: findings.ClipTemporariesFacts{},
		Methods: &findings.Methods{Own: trial("g", "ghost", 1000<<20, 100),
			Lowest: trial("run-flash", "flash", 1010<<20, 120), Best: &best}}
	const want = "no recorded method of the same parameters peaks lower: the lowest is 1,010.00 MiB, run run-flash " +
		"(method flash); method bk (a peak of 1,200.00 MiB, run run-bk) takes 60.0 ms a step, this one 100.0 ms a step"
	if f := saidBy(clip); f.Assumption != want || len(f.Figures) != 4 {
		t.Errorf("%+v", f)
	}
	for _, source := range []string{schemas.Measured, schemas.Predicted} {
		lower := trial("f", "flash", 900<<20, 50)
		lower.Run.Source, lower.Step = source, nil
		clip.Methods = &findings.Methods{Own: trial("g", "ghost", 1000<<20, 100), Lowest: lower, Best: &lower,
			Lower: true}
		if f := saidBy(clip); f.Assumption != source+": a peak of 900.00 MiB, run f (method flash) of the same "+
			"parameters" {
			t.Errorf("%s: %+v", source, f)
		}
	}
}

// The finding on a cheaper method names a run of this method, and gives the range of the step times.
func TestWordsOfCheaperMethod(t *testing.T) {
	said := func(best findings.Trial, overlap bool) report.Finding1 {
		return saidBy(findings.Finding{ID: findings.CheaperMethod, SavesBytes: new(int64(1)),
			Facts: findings.CheaperMethodFacts{Own: trial("g", "ghost", 1000, 100), Best: best, Overlap: overlap}})
	}
	f := said(trial("bk-bare", "bk", 900, 10), false)
	if f.Assumption != "measured: run bk-bare of the same parameters" || strings.Contains(f.Sentence, "overlap") {
		t.Errorf("%+v", f)
	}
	many := trial("bk", "bk", 900, 12)
	many.Runs = 3
	if f := said(many, false); f.Assumption != "measured: medians of 3 runs of the same parameters, bk among them" {
		t.Errorf("%+v", f)
	}
	for want, step := range map[string]timing.Interval{
		"takes 26.2 ms a step (25.4 ms to 31.3 ms in 5 runs)": {Median: 26.2, Low: 25.4, High: 31.3, N: 5,
			Over: timing.OverRepeats, Of: timing.OfRange},
		"takes 4.000 ms a step (3.400 ms to 7.200 ms with 95 % confidence)": {Median: 4, Low: 3.4, High: 7.2, N: 10,
			Of: timing.OfMedian, Over: timing.OverSteps},
		"takes 4.000 ms a step (3.400 ms to 5.000 ms in 10 steps)": {Median: 4, Low: 3.4, High: 5, N: 10,
			Of: timing.OfRange, Over: timing.OverSteps},
	} {
		many.Step = &step
		f := said(many, true)
		if !strings.Contains(f.Sentence, want) || !strings.HasSuffix(f.Sentence,
			" The ranges of their steps overlap, so a saving of time is not certain.") {
			t.Errorf("%q, want %q", f.Sentence, want)
		}
	}
}

func TestWordsOfRepeats(t *testing.T) {
	repeat := func(id string, peak int64, ms float64) findings.Checked {
		return findings.Checked{Summary: runs.Private(id, "ghost", peak, ms)}
	}
	said := saidIn(findings.Find([]findings.Checked{repeat("a", 100<<20, 100), repeat("b", 101<<20, 100), repeat("c",
		100<<20, 106)}, []analyze.Summary{}))
	if f := said[findings.RepeatsPeak]; f.Sentence != "The peaks of 3 repeats differ: 100.00 MiB to 101.00 MiB. "+
		"Repeats should have the same peak." || !strings.Contains(f.Change, "dpsight explain a b ") {
		t.Errorf("%+v", f)
	}
	if f := said[findings.RepeatsTime]; !strings.HasPrefix(f.Sentence, "The step times of 3 repeats disagree: their "+
		"medians range from 100.0 ms to 106.0 ms, which is 6 % of the overall median (100.0 ms).") {
		t.Errorf("%+v", f)
	}
}

// Each finding about memory that is kept alive has its own title, and says which change releases the memory.
func TestWordsOfWhatIsKept(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		id            string
		facts         any
		title, change string
	}{
		{findings.EarlierGraph, findings.HeldFacts{Blocks: 2},
			"The graph of an earlier step is alive at the peak: 84.00 MiB", "loss.item()"},
		{findings.ViewKeepsBase, findings.ViewFacts{Blocks: 2, BaseBytes: 90 * mib, ViewBytes: 6 * mib},
			"Views of 6.00 MiB keep 90.00 MiB alive", ".clone()"},
		{findings.KeptException, findings.HeldFacts{Blocks: 2},
			"A caught exception keeps the variables of its functions: 84.00 MiB", "str(error)"},
		{findings.RetainedGraph, findings.HeldFacts{Blocks: 2},
			"Backward builds a graph that nothing uses: 84.00 MiB", "create_graph=True"},
		{findings.FrozenActivations, findings.HeldFacts{Blocks: 2},
			"Autograd holds activations of frozen layers: 84.00 MiB", "torch.no_grad()"},
		{findings.WholeCheckpoint, findings.WholeCheckpointFacts{Blocks: 12, Parts: 4},
			"One checkpoint recomputes all its activations at once: 84.00 MiB", "each layer"},
		{findings.AdapterDropout, findings.HeldFacts{Blocks: 2},
			"The dropout of LoRA adapters makes copies: 84.00 MiB", "lora_dropout=0"},
		{findings.BucketCopies, findings.BucketCopiesFacts{BucketBytes: 90 * mib},
			"DDP holds the gradients twice, in .grad and in its buckets: 84.00 MiB", "gradient_as_bucket_view=True"},
		{findings.AutocastCache, findings.HeldFacts{Blocks: 24},
			"Autocast keeps 24 copies of weights: 84.00 MiB", "cache_enabled=False"},
		{findings.IdleModels, findings.IdleModelsFacts{Idle: []findings.NamedBytes{{Name: "Net#1", Bytes: 84 * mib}}},
			"Models that do not run are on the GPU: 84.00 MiB, of Net#1", "process of its own"},
		{findings.PreviousValue, findings.HeldFacts{Blocks: 1},
			"A variable keeps its old value while the next one is computed: 84.00 MiB", "loop's body"},
		{findings.ScriptTensors, findings.ScriptTensorsFacts{Names: []findings.NamedBytes{{Name: "global data", Bytes: mib}}},
			"The script keeps tensors through all steps: 84.00 MiB, by data", "host memory"},
		{findings.UntrainedGradients, findings.HeldFacts{Blocks: 2},
			"Parameters that no optimizer updates get gradients: 84.00 MiB", "requires_grad_(False)"},
	} {
		f := findings.Finding{ID: c.id, Bytes: new(int64(84 * mib)), Facts: c.facts, SavesBytes: new(int64(80 * mib)),
			Confidence: findings.Replayed, At: &memory.Moment{},
			Highest: findings.Highest{AllocatedBytes: 840 * mib, IsPeak: true}}
		told := report.NewFindingsDocument(findings.Found{Runs: []findings.Run{{Findings: []findings.Finding{f}}}}).
			Runs[0].Findings[0]
		if told.Title != c.title || !strings.Contains(told.Change, c.change) || told.Saving.Assumption == "" ||
			len(told.Figures) < 2 || !strings.HasSuffix(told.Sentence, ".") {
			t.Errorf("%+v", told)
		}
	}
}

// A finding on kept memory states three places: the line that allocated the memory, the holder of the block, and the
// line to edit.
func TestFindingNamesTheLineToEdit(t *testing.T) {
	f := findings.Finding{ID: findings.KeptException, Bytes: new(int64(84 << 20)), Facts: findings.HeldFacts{Blocks: 2},
		At: &memory.Moment{}, Highest: findings.Highest{AllocatedBytes: 840 << 20, IsPeak: true},
		Holder: "global errors[*] → exception caught at train.py:30 → frame of attempt() → local x",
		Line:   &findings.LinePart{Line: &schemas.Line{File: "src/train.py", Number: 21}, Bytes: 84 << 20},
		Edits:  []schemas.Line{{File: "src/train.py", Number: 33, Text: "errors.append(e)"}},
		Caught: &schemas.Line{File: "src/train.py", Number: 31}}
	parts := func() map[string]string {
		out := map[string]string{}
		found := findings.Found{Runs: []findings.Run{{Findings: []findings.Finding{f}}}}
		for _, p := range (report.FindingsView{}).Tables(found)[0].Blocks[0].Parts {
			out[p.Label] = p.Text
		}
		return out
	}
	got := parts()
	if got["where"] != "allocated at src/train.py:21" || got["edit"] != "src/train.py:33: errors.append(e)" ||
		got["holder"] != "global errors[*] → exception caught at train.py:31, from the call at train.py:30 → frame of "+
			"attempt() → local x" {
		t.Errorf("%q", got)
	}
	f.Caught, f.Edits = nil, nil
	got = parts()
	if _, has := got["edit"]; has || !strings.HasPrefix(got["holder"], "global errors[*] → exception from the call at "+
		"train.py:30 → frame") {
		t.Errorf("%q", got)
	}
}

// If the memory of one of several ranks grows, the finding names the rank. The finding says that the saving does not
// apply to the run's highest peak.
func TestWordsOfGrowthOfARank(t *testing.T) {
	none := make([]int64, 11)
	in := fixture.Ranks(fixture.Growing(0, append([]int64{3000}, none...)...),
		fixture.Growing(0, slices.Repeat([]int64{100}, 12)...), fixture.Growing(0, slices.Repeat([]int64{100}, 12)...))
	f := saidOf(in)[findings.KeptGraphs]
	if !strings.HasPrefix(f.Sentence, "On cuda:0 of rank 1: ") ||
		!strings.Contains(f.Sentence, " 1 other device grows in the same way, and no faster.") ||
		!strings.HasSuffix(f.Assumption, "another device has the highest of the run") {
		t.Errorf("%+v", f)
	}
}

// A finding shows the number of steps and the growth of each step only if their product is the whole growth.
func TestGrowthFiguresAgree(t *testing.T) {
	const mib = 1 << 20
	for bytes, want := range map[int64]string{
		112 * mib: "7 steps keep memory: 112.00 MiB, 16.00 MiB a step",
		80 * mib:  "Steps keep memory: 80.00 MiB in total, 16.00 MiB in the median one",
	} {
		g := &growth.Growth{Unit: growth.Step, Trend: growth.Trend{First: growth.Low{At: 4}, Last: growth.Low{At: 11},
			Slope: 16 * mib}}
		f := findings.Finding{ID: findings.Growth, Bytes: &bytes, Facts: findings.GrowthFacts{Growth: g},
			At: &memory.Moment{}, Highest: findings.Highest{AllocatedBytes: 840 * mib, IsPeak: true}}
		told := report.NewFindingsDocument(findings.Found{Runs: []findings.Run{{Findings: []findings.Finding{f}}}}).
			Runs[0].Findings[0]
		if told.Title != want || strings.Contains(told.Sentence, "80.00 MiB in 7 steps") {
			t.Errorf("%s: %s", told.Title, told.Sentence)
		}
	}
}
