package findings

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// A life describes a block of a test's run, with the block's owner.
type life struct {
	bytes    int64
	from, to int64 // event numbers; if to is 0, the block lives to the end
	category schemas.Category
	evidence string
	name     string
	module   int64
}

// livesOf returns a run with the given blocks. The run has 100 events of set-up, and then three steps of 100 events
// each.
func livesOf(lives ...life) schemas.Tables {
	in := fixture.PeakOf()
	in.Modules = []schemas.Module{{ID: 1, Path: "Net#1.0"}, {ID: 2, Path: "Net#2.0"}}
	in.Steps = nil
	for i := range int64(3) {
		in.Steps = append(in.Steps, schemas.Step{Step: i, Instrumented: true, Recorded: true, BeginSeq: 100 * (i + 1),
			EndSeq: 100 * (i + 2)})
	}
	slices.SortStableFunc(lives, func(a, b life) int { return int(a.from - b.from) })
	for i, x := range lives {
		id := int64(i + 1)
		in.Allocations = append(in.Allocations, schemas.Allocation{AllocID: id, Address: uint64(id) << 20,
			RequestedBytes: x.bytes, BlockBytes: x.bytes, AllocSeq: x.from, FreeRequestedSeq: x.to, Module: x.module})
		in.Owners = append(in.Owners, schemas.Owner{AllocID: id, Category: x.category, BeginSeq: x.from, EndSeq: x.to,
			Evidence: x.evidence, Name: x.name, Module: x.module})
	}
	peak, at := int64(0), int64(0)
	for seq := int64(1); seq <= 400; seq++ {
		var now int64
		for i := range in.Allocations {
			if in.Allocations[i].LiveAt(seq) {
				now += in.Allocations[i].BlockBytes
			}
		}
		if now > peak {
			peak, at = now, seq
		}
	}
	v := &in.Report.Devices[0]
	v.Events, v.PeakSeq, v.InstrumentedPeakSeq, v.PeakAllocatedBytes = 400, at, &at, peak
	return in
}

// found checks that a run with the given blocks has a certain finding, with the given size and saving.
func found(t *testing.T, id string, bytes, saves int64, known Confidence, lives ...life) *Finding {
	t.Helper()
	f := theFinding(t, inspected(livesOf(lives...)), id)
	if f == nil || *f.Bytes != bytes || f.SavesBytes == nil || *f.SavesBytes != saves || f.Confidence != known {
		t.Fatalf("%s: %+v", id, f)
	}
	return f
}

// absent checks that a run with the given blocks does not have a certain finding.
func absent(t *testing.T, id, why string, lives ...life) {
	t.Helper()
	if f := theFinding(t, inspected(livesOf(lives...)), id); f != nil {
		t.Errorf("%s, %s: %+v", id, why, f)
	}
}

var (
	weights    = life{bytes: 800, from: 1, category: schemas.Parameters, evidence: schemas.Tagged, name: "w"}
	activation = life{bytes: 200, from: 120, to: 190, category: schemas.Activations, evidence: schemas.Tagged}
)

// at returns a copy of the life that begins and ends at other events.
func (x life) at(from, to int64) life { x.from, x.to = from, to; return x }

func (x life) named(name string, module int64) life { x.name, x.module = name, module; return x }

func TestEarlierGraphIsFound(t *testing.T) {
	f := found(t, EarlierGraph, 200, 200, AtLeast, weights, activation.at(120, 290), activation.at(220, 280))
	if factsOf[HeldFacts](t, f).Blocks != 1 {
		t.Errorf("%+v", f.Facts)
	}
	absent(t, EarlierGraph, "each step frees its own", weights, activation, activation.at(220, 280))
	small := activation.at(120, 290)
	small.bytes = 50
	absent(t, EarlierGraph, "below 5 %", weights, small, activation.at(220, 280))
}

// heldBy adds holders to the blocks of a run. Each holder gives the number of its block in livesOf.
func heldBy(in schemas.Tables, holders ...schemas.Holder) schemas.Tables {
	in.Holders = holders
	return in
}

// If a view keeps a block alive, the part of the block that no view shows is wasted. The finding is left out if a
// search for holders has found another holder of the block.
func TestViewsAreFound(t *testing.T) {
	base := life{bytes: 8192, from: 20, category: schemas.Script, evidence: schemas.Tagged}
	work := life{bytes: 4096, from: 220, to: 280, category: schemas.Activations, evidence: schemas.Tagged}
	view := schemas.Holder{AllocID: 2, Seq: 150, Kind: schemas.HeldByPython, Path: "global part", ViewBytes: 700}
	run := func(h schemas.Holder) schemas.Tables { return heldBy(livesOf(weights, base, work), h) }
	f := theFinding(t, inspected(run(view)), ViewKeepsBase)
	if f == nil || *f.Bytes != 8192-1024 || f.Holder != "global part" || f.Confidence != AtLeast {
		t.Fatalf("%+v", f)
	}
	// Before the search that found the view, the finding claims no saving. The highest moment before that search limits
	// the saving.
	if *f.SavesBytes != 4096 || factsOf[ViewFacts](t, f) != (ViewFacts{1, 8192, 1024}) {
		t.Errorf("%d, %+v", *f.SavesBytes, f.Facts)
	}
	later, whole := view, view
	later.Seq, whole.ViewBytes = 250, 0
	for why, h := range map[string]schemas.Holder{"found after the peak": later, "shows all": whole} {
		if f := theFinding(t, inspected(run(h)), ViewKeepsBase); f != nil {
			t.Errorf("%s: %+v", why, f)
		}
	}
}

// If an exception keeps the memory of a failed try, this memory counts as kept from the failed request on.
func TestKeptExceptionsAreFound(t *testing.T) {
	try := life{bytes: 400, from: 20, category: schemas.Parameters, evidence: schemas.Tagged}
	retry := life{bytes: 600, from: 220, to: 280, category: schemas.Activations, evidence: schemas.Tagged}
	held := schemas.Holder{AllocID: 2, Seq: 200, Kind: schemas.HeldByException,
		Path: "global errors[0] → exception caught at train.py:31 → frame of fit() → local model.weight"}
	run := func(failed int64, more ...life) schemas.Tables {
		in := heldBy(livesOf(append([]life{weights, try, retry}, more...)...), held)
		in.Report.OOMs = []schemas.OOM{{Seq: failed, RequestedBytes: 1, LimitBytes: 1800}}
		return in
	}
	f := theFinding(t, inspected(run(120)), KeptException)
	if f == nil || *f.Bytes != 400 || f.At.Event != 200 || f.SavesBytes == nil || *f.SavesBytes != 400 ||
		f.Holder != "global errors[*] → exception caught at train.py:31 → frame of fit() → local model.weight" {
		t.Fatalf("%+v", f)
	}
	// The failed request itself was at the peak, so the finding states no saving.
	f = theFinding(t, inspected(run(150, activation.at(130, 190), activation.at(131, 190), activation.at(132, 190),
		activation.at(133, 190))), KeptException)
	if f == nil || f.SavesBytes != nil || f.Idle {
		t.Errorf("%+v", f)
	}
}

// A backward pass can itself record a graph. If no other backward pass comes before this graph is freed, the graph is
// kept for nothing.
func TestRetainedGraphsAreFound(t *testing.T) {
	forward, backward := activation.at(120, 190), activation.at(150, 185)
	run := func(second bool, lives ...life) schemas.Tables {
		in := livesOf(append([]life{weights}, lives...)...)
		in.Phases = []schemas.Phase{{Step: 0, Phase: schemas.PhaseBackward, BeginSeq: 140, EndSeq: 170}}
		if second {
			in.Phases = append(in.Phases, schemas.Phase{Step: 0, Phase: schemas.PhaseBackward, BeginSeq: 175, EndSeq: 180})
		}
		return in
	}
	f := theFinding(t, inspected(run(false, forward, backward)), RetainedGraph)
	if f == nil || *f.Bytes != 200 || f.SavesBytes == nil || *f.SavesBytes != 200 || f.Confidence != AtMost {
		t.Fatalf("%+v", f)
	}
	for why, in := range map[string]schemas.Tables{
		"a second pass uses it":       run(true, forward, backward),
		"freed before backward ends":  run(false, forward, activation.at(150, 165)),
		"backward made none of it":    run(false, forward, activation.at(125, 185)),
		"never freed, as in a growth": run(false, forward, activation.at(150, 0)),
		"it is less than the threshold": run(false, forward, life{bytes: 50, from: 150, to: 185,
			category: schemas.Activations, evidence: schemas.Tagged}),
	} {
		if f := theFinding(t, inspected(in), RetainedGraph); f != nil {
			t.Errorf("%s: %+v", why, f)
		}
	}
}

// dpsight finds a checkpoint around the whole model by a recomputation that makes eight blocks at once. A recomputation
// of fewer blocks is no checkpoint around the whole model.
func TestWholeCheckpointIsFound(t *testing.T) {
	var lives []life
	for i := range int64(8) {
		lives = append(lives, activation.at(150+i, 180))
	}
	run := func(ends ...int64) schemas.Tables {
		in := livesOf(append([]life{weights}, lives...)...)
		begin := int64(145)
		for _, end := range ends {
			in.Phases = append(in.Phases, schemas.Phase{Phase: schemas.PhaseRecompute, BeginSeq: begin, EndSeq: end})
			begin = end
		}
		return in
	}
	f := theFinding(t, inspected(run(170)), WholeCheckpoint)
	if f == nil || *f.Bytes != 1600 || f.SavesBytes == nil || *f.SavesBytes != 600 ||
		factsOf[WholeCheckpointFacts](t, f) != (WholeCheckpointFacts{Blocks: 8, Parts: 3}) {
		t.Fatalf("%+v", f)
	}
	for why, in := range map[string]schemas.Tables{"two parts": run(153, 170), "seven blocks": run(156)} {
		if f := theFinding(t, inspected(in), WholeCheckpoint); f != nil {
			t.Errorf("%s: %+v", why, f)
		}
	}
}

// layered returns a run with a layer "body" and a layer "head". Each layer has a forward pass with an activation, and a
// backward pass follows. Only the trained layers have gradients.
func layered(trained ...string) schemas.Tables {
	of := func(module int64, from, to int64) life {
		x := activation.at(from, to)
		x.module = module
		return x
	}
	lives := []life{weights, of(1, 120, 180), of(2, 130, 170), of(1, 220, 280), of(2, 230, 270)}
	for _, name := range trained {
		lives = append(lives, life{bytes: 8, from: 160, to: 190, category: schemas.Gradients, evidence: schemas.Tagged,
			name: name + ".weight"})
	}
	in := livesOf(lives...)
	in.Modules = []schemas.Module{{ID: 1, Path: "body"}, {ID: 2, Path: "head"}}
	for i := range in.Allocations {
		if in.Allocations[i].Module > 0 {
			in.Allocations[i].Phase = schemas.PhaseForward
		}
	}
	in.Phases = []schemas.Phase{{Step: 0, Phase: schemas.PhaseBackward, BeginSeq: 140, EndSeq: 195},
		{Step: 1, Phase: schemas.PhaseBackward, BeginSeq: 240, EndSeq: 295}}
	return in
}

func TestFrozenActivationsAreFound(t *testing.T) {
	f := theFinding(t, inspected(layered("head")), FrozenActivations)
	if f == nil || *f.Bytes != 200 || factsOf[HeldFacts](t, f).Blocks != 1 || f.Confidence != AtLeast {
		t.Fatalf("%+v", f)
	}
	for why, in := range map[string]schemas.Tables{"the first layer is trained": layered("body", "head"),
		"a frozen layer comes after it": layered("body"), "none is trained": layered()} {
		if f := theFinding(t, inspected(in), FrozenActivations); f != nil {
			t.Errorf("%s: %+v", why, f)
		}
	}
}

func TestAdapterDropoutIsFound(t *testing.T) {
	in := layered("body", "head")
	in.Modules[1].Path = "body.lora_dropout.default"
	f := theFinding(t, inspected(in), AdapterDropout)
	if f == nil || *f.Bytes != 200 || f.SavesBytes == nil || *f.SavesBytes != 200 || f.Confidence != AtMost {
		t.Fatalf("%+v", f)
	}
	if f := theFinding(t, inspected(layered("head")), AdapterDropout); f != nil {
		t.Errorf("%+v", f)
	}
}

func TestAutocastCacheIsFound(t *testing.T) {
	cast := life{bytes: 100, category: schemas.AutocastCache, evidence: schemas.Lifetime}
	f := found(t, AutocastCache, 300, 200, Replayed, weights, cast.at(110, 190), cast.at(120, 191), cast.at(130, 192))
	if factsOf[HeldFacts](t, f).Blocks != 3 {
		t.Errorf("%+v", f.Facts)
	}
	absent(t, AutocastCache, "below 5 %", weights, life{bytes: 40, from: 110, to: 190, category: schemas.AutocastCache,
		evidence: schemas.Lifetime})
}

func TestBucketCopiesAreFound(t *testing.T) {
	gradient := life{bytes: 100, category: schemas.Gradients, evidence: schemas.Tagged, name: "w"}
	bucket := life{bytes: 200, from: 90, category: schemas.Gradients, evidence: schemas.Lifetime, name: "DDP bucket"}
	f := found(t, BucketCopies, 200, 200, Replayed, weights, bucket, gradient.at(150, 190), gradient.at(160, 190))
	if factsOf[BucketCopiesFacts](t, f).BucketBytes != 200 {
		t.Errorf("%+v", f.Facts)
	}
	absent(t, BucketCopies, "no bucket", weights, gradient.at(150, 190))
	// If .grad is a view of a DDP bucket, the tag for .grad is on the bucket's block, and there is no copy of the
	// gradient.
	in := livesOf(weights, bucket)
	in.Owners = append(in.Owners, schemas.Owner{AllocID: 2, Category: schemas.Gradients, BeginSeq: 150,
		Evidence: schemas.Tagged, Name: "w"})
	if f := theFinding(t, inspected(in), BucketCopies); f != nil {
		t.Errorf("views: %+v", f)
	}
}

func TestIdleModelsAreFound(t *testing.T) {
	model := life{bytes: 300, from: 1, category: schemas.Parameters, evidence: schemas.Tagged}
	run := life{bytes: 100, category: schemas.ActivationGradients, evidence: schemas.Lifetime}
	first, second := model.named("Net#1.0.weight", 0), model.named("Net#2.0.weight", 0)
	f := found(t, IdleModels, 300, 300, AtLeast, first, second, run.at(120, 190).named("", 1),
		run.at(320, 390).named("", 2))
	if x := factsOf[IdleModelsFacts](t, f); !slices.Equal(x.Idle, []NamedBytes{{"Net#2", 300}}) {
		t.Errorf("%+v", x)
	}
	absent(t, IdleModels, "both run to the end", first, second, run.at(120, 190).named("", 1),
		run.at(130, 190).named("", 2), run.at(320, 390).named("", 1), run.at(330, 390).named("", 2))
	absent(t, IdleModels, "one never runs, as an average of weights", first, second, run.at(120, 190).named("", 1))
	// If two models share a name, the recording does not distinguish their parameters. Neither of two models with one
	// name counts as idle while the other model runs.
	absent(t, IdleModels, "a name that two have", first, first, run.at(120, 190).named("", 1),
		run.at(320, 390).named("", 2))
}

// If a script assigns a new value to a variable outside of passes, the variable keeps its old value until the new value
// exists.
func TestPreviousValuesAreFound(t *testing.T) {
	batch := life{bytes: 400, category: schemas.Inputs, evidence: schemas.Tagged}
	old := batch.at(105, 211)
	run := func(path string, old, next life, pass ...int64) schemas.Tables {
		in := heldBy(livesOf(weights, old, next), schemas.Holder{AllocID: 2, Seq: 200, Kind: schemas.HeldByPython,
			Path: path})
		for i := range in.Allocations[1:] {
			in.Allocations[i+1].Line, in.Allocations[i+1].Phase = 7, schemas.PhaseBetween
		}
		for _, end := range pass {
			in.Phases = append(in.Phases, schemas.Phase{Phase: schemas.PhaseEval, BeginSeq: end - 10, EndSeq: end})
		}
		return in
	}
	f := theFinding(t, inspected(run("global x", old, batch.at(210, 300), 150)), PreviousValue)
	if f == nil || *f.Bytes != 400 || f.SavesBytes == nil || *f.SavesBytes != 400 || f.Confidence != AtLeast ||
		f.Holder != "global x" {
		t.Fatalf("%+v", f)
	}
	larger := batch.at(210, 300)
	larger.bytes++
	for why, in := range map[string]schemas.Tables{
		"a list keeps it":                run("global kept[3]", old, batch.at(210, 300), 150),
		"no pass between both":           run("global x", old, batch.at(210, 300)),
		"a pass uses it after the next":  run("global x", batch.at(105, 260), batch.at(210, 300), 150, 250),
		"it is gone when the next comes": run("global x", batch.at(105, 209), batch.at(210, 300), 150),
		"the next is of another size":    run("global x", old, larger, 150),
		"it is never given up":           run("global x", batch.at(105, 0), batch.at(210, 300), 150),
	} {
		if f := theFinding(t, inspected(in), PreviousValue); f != nil {
			t.Errorf("%s: %+v", why, f)
		}
	}
}

// dpsight finds tensors that the script keeps through all steps, and names the variables that hold them.
func TestScriptTensorsAreFound(t *testing.T) {
	data := life{bytes: 400, from: 20, category: schemas.Script, evidence: schemas.Tagged, name: "global data"}
	f := found(t, ScriptTensors, 400, 400, AtMost, weights, data, activation)
	if x := factsOf[ScriptTensorsFacts](t, f); !slices.Equal(x.Names, []NamedBytes{{"global data", 400}}) ||
		f.Holder != "global data" {
		t.Errorf("%+v, %q", x, f.Holder)
	}
	// the script makes the tensor in the first step and keeps it in all other steps
	found(t, ScriptTensors, 400, 400, AtMost, weights, data.at(120, 0), activation)
	small := data
	small.bytes = 40
	for why, lives := range map[string][]life{"made in a later step": {weights, data.at(220, 0), activation},
		"freed before the last step ends": {weights, data.at(20, 390), activation},
		"nobody keeps it by a name":       {weights, data.named("", 0), activation},
		"below 5 %":                       {weights, small, activation}} {
		absent(t, ScriptTensors, why, lives...)
	}
}

// If the optimizer's state shows which parameters the optimizer updates, dpsight finds gradients of parameters without
// optimizer state.
func TestUntrainedGradientsAreFound(t *testing.T) {
	gradient := life{bytes: 100, from: 150, to: 190, category: schemas.Gradients, evidence: schemas.Tagged}
	state := life{bytes: 100, from: 160, category: schemas.OptimizerState, evidence: schemas.Tagged}
	lives := []life{weights, gradient.named("body.w", 0), gradient.named("head.w", 0), gradient.named("head.b", 0),
		state.named("head.w.exp_avg", 0), state.named("head.b.exp_avg", 0)}
	found(t, UntrainedGradients, 100, 100, AtLeast, lives...)
	absent(t, UntrainedGradients, "all have state", append(lives, state.named("body.w.exp_avg", 0))...)
	absent(t, UntrainedGradients, "all state is under one name, as of LBFGS", lives[:5]...)
	absent(t, UntrainedGradients, "there is none", lives[:4]...)
	absent(t, UntrainedGradients, "there are several models", append(lives, state.named("Net#1.w.exp_avg", 0))...)
	in := livesOf(lives...)
	in.Phases = slices.Repeat([]schemas.Phase{{Phase: schemas.PhaseOptimizer, BeginSeq: 160, EndSeq: 170}}, 2)
	if f := theFinding(t, inspected(in), UntrainedGradients); f != nil {
		t.Errorf("two optimizers: %+v", f)
	}
}

// The finding on the workspace of another thread saves this workspace, even if another block has the same size.
func TestWorkspaceOfAnotherThread(t *testing.T) {
	workspace := life{bytes: 300, from: 130, category: schemas.Workspace, evidence: schemas.Lifetime}
	found(t, ThreadWorkspaces, 300, 300, Replayed, weights, activation, life{bytes: 300, from: 110,
		category: schemas.Inputs, evidence: schemas.Tagged}, workspace, workspace.at(140, 0))
}

// If two findings are about the same bytes, the finding that names the cause comes first, if it explains most of the
// bytes.
func TestCausesComeFirst(t *testing.T) {
	order := func(cause int64) string {
		list := []Finding{{ID: PerSample, Bytes: new(int64(100))}, {ID: Slack, Bytes: new(int64(5))},
			{ID: PerSampleEmbedding, Bytes: &cause}}
		causesFirst(list)
		return list[0].ID + " " + list[1].ID + " " + list[2].ID
	}
	if got := order(60); got != "per-sample-embedding per-sample-gradients slack" {
		t.Error(got)
	}
	if got := order(40); got != "per-sample-gradients slack per-sample-embedding" {
		t.Error(got)
	}
}
