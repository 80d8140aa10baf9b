package join

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// trainStep simulates one DP-SGD step of a model with one layer. If tags is false, the step is a bare step. next is the
// mode of the step that follows.
func trainStep(w *world, first, tags bool, next uint8) {
	tag := func(th uint16, kind spool.TagKind, names ...string) {
		if tags {
			w.tag(th, kind, names...)
		}
	}
	w.alloc(main, "x", 8*kib)
	w.forward(func() {
		if tags {
			w.tag(main, spool.TagParameter, "weight")
			w.tag(main, spool.TagInput, "x")
		}
		if first {
			w.alloc(main, "workspace", 32*mib)
		}
		w.alloc(main, "scratch", 64*kib)
		w.alloc(main, "h", 3*mib)
		tag(main, spool.TagHookActivation, "h")
		w.drop(main, "scratch")
		w.alloc(main, "mask", 3*mib) // a C++ node holds the mask, and the agent's walk of the graph does not see it
		w.alloc(main, "logits", 5*mib)
	})
	tag(main, spool.TagOutput, "logits")
	w.label("forward")
	tag(main, spool.TagSavedTensor, "h", "logits", "weight")
	w.backward(0, func() {
		w.alloc(engine, "dlogits", 5*mib)
		w.label("backward")
		if tags {
			w.mark(engine, spool.SamplerBegin, 0, 7)
		}
		w.alloc(engine, "scaled", 5*mib)
		w.alloc(engine, "gs", 24*mib)
		w.label("sampler")
		if tags {
			w.untag(engine, spool.TagHookActivation, "h")
			w.tag(engine, spool.TagGradSample, "gs")
			w.mark(engine, spool.SamplerEnd, 0, 7)
		}
		w.alloc(engine, "grad", 6*mib)
		w.label("before hook")
		w.drop(engine, "scaled")
		tag(engine, spool.TagGradient, "grad")
		w.drop(engine, "mask", "dlogits", "h")
		w.label("after hook")
	})
	w.label("between")
	w.span(spool.DPStepBegin, main, 1, func() {
		w.span(spool.PhaseBegin, main, uint64(w.name("clip")), func() {
			w.alloc(main, "factor", 4*kib)
			w.alloc(main, "summed", 6*mib)
			tag(main, spool.TagSummedGradient, "summed")
			w.label("clip")
			w.drop(main, "factor")
		})
		w.span(spool.PhaseBegin, main, uint64(w.name("noise")), func() {
			w.alloc(main, "noise", 6*mib)
			tag(main, spool.TagNoise, "noise")
			w.label("noise")
			w.drop(main, "noise")
		})
		w.span(spool.OptimizerBegin, main, 1, func() {
			if first {
				w.alloc(main, "moment", 6*mib)
			}
			w.alloc(main, "denominator", 6*mib)
			w.label("optimizer")
			w.drop(main, "denominator")
			if first {
				tag(main, spool.TagOptimizerState, "moment")
			}
		})
	})
	w.mode(next)
	w.span(spool.ZeroGradBegin, main, 0, func() { w.drop(main, "gs", "grad", "summed") })
	w.drop(main, "x", "logits")
}

const (
	instrumented = spool.FlagInstrumented | spool.FlagRecording
	bareMode     = spool.FlagRecording
)

// trained returns a world after set-up and one training step. next is the mode of the step that follows.
func trained(t *testing.T, next uint8) *world {
	w := newWorld(t)
	w.span(spool.PhaseBegin, main, uint64(w.name("setup.model")), func() {
		w.alloc(main, "init", 6*mib)
		w.drop(main, "init")
		w.alloc(main, "weight", 6*mib)
		w.alloc(main, "forgotten", 2*mib)
	})
	w.alloc(main, "loose", 2*mib)
	trainStep(w, true, true, next)
	return w
}

func TestCategories(t *testing.T) {
	w := trained(t, instrumented)
	trainStep(w, false, true, instrumented)
	j := w.join()
	if j.AmbiguousTags != 0 || w.at["unbound"] != 0 {
		t.Fatalf("%d ambiguous tags, %d unbound: %v", j.AmbiguousTags, w.at["unbound"], j.Ambiguous)
	}
	w.expect(j, []expectation{ // each label has its position in the last step
		{"weight", lastLife, "forward", "parameters/tagged"},
		{"forgotten", lastLife, "forward", "parameters/phase"},
		{"loose", lastLife, "forward", "script/phase"},
		{"x", lastLife, "forward", "inputs/tagged"},
		{"h", lastLife, "forward", "activations/tagged"},
		{"mask", lastLife, "forward", "activations/lifetime"},
		{"logits", lastLife, "forward", "activations/tagged"},
		{"logits", lastLife, "between", "outputs/tagged"}, // autograd no longer holds the block
		{"dlogits", lastLife, "backward", "activation_gradients/lifetime"},
		{"scaled", lastLife, "sampler", "clip_temporaries/lifetime"},
		{"gs", lastLife, "sampler", "per_sample_gradients/tagged"},
		{"grad", lastLife, "before hook", "activation_gradients/lifetime"},
		{"grad", lastLife, "after hook", "gradients/tagged"},
		{"factor", lastLife, "clip", "clip_temporaries/lifetime"},
		{"summed", lastLife, "clip", "summed_gradients/tagged"},
		{"noise", lastLife, "noise", "noise/tagged"},
		{"moment", lastLife, "optimizer", "optimizer_state/tagged"},
		{"denominator", lastLife, "optimizer", "optimizer_temporaries/lifetime"},
		{"workspace", lastLife, "optimizer", "workspace/lifetime"},
	})
}

// If no block has a tag, the lives of blocks give less specific categories, with evidence by lifetime or by phase.
func TestLifetimes(t *testing.T) {
	w := trained(t, instrumented)
	w.tags = nil
	trainStep(w, false, false, instrumented)
	j := w.join()
	w.expect(j, []expectation{ // each label has its position in the last step
		{"h", lastLife, "forward", "activations/lifetime"},
		{"dlogits", lastLife, "backward", "activation_gradients/lifetime"},
		{"gs", lastLife, "after hook", "activation_gradients/phase"},
		{"factor", lastLife, "clip", "clip_temporaries/lifetime"},
		{"moment", lastLife, "optimizer", "optimizer_state/lifetime"},
		{"denominator", lastLife, "optimizer", "optimizer_temporaries/lifetime"},
		{"noise", lastLife, "noise", "optimizer_temporaries/lifetime"},
		{"workspace", lastLife, "optimizer", "workspace/lifetime"},
	})
}

// A block of a bare step takes the category of its match in an instrumented step, as far as the tags of the
// instrumented step show a category. If a bare step has no match, a block that outlives backward is other. A block that
// is freed in backward may then have belonged to a hook.
func TestMatches(t *testing.T) {
	for _, more := range []int{0, 1, 40} {
		w := trained(t, instrumented)
		trainStep(w, false, true, bareMode)
		for range more {
			w.alloc(main, "more", 512)
			w.drop(main, "more")
		}
		trainStep(w, false, false, bareMode)
		w.forward(func() {})
		w.backward(0, func() {})
		w.span(spool.OptimizerBegin, main, 1, func() {})
		j := w.join()
		if steps := j.Steps(); len(steps) != 4 || steps[2].Instrumented || !steps[1].Instrumented ||
			!steps[2].Recorded {
			t.Fatalf("steps %+v", steps)
		}
		want := []expectation{
			{"gs", lastLife, "sampler", "per_sample_gradients/lifetime"},
			{"grad", lastLife, "before hook", "activation_gradients/lifetime"},
			{"grad", lastLife, "after hook", "gradients/lifetime"},
			{"summed", lastLife, "clip", "summed_gradients/lifetime"},
			{"logits", lastLife, "between", "outputs/lifetime"},
			{"x", lastLife, "forward", "inputs/lifetime"},
		}
		if more == 40 {
			want = []expectation{
				{"gs", lastLife, "sampler", "other/phase"},
				{"scaled", lastLife, "sampler", "activation_gradients/phase"},
				{"grad", lastLife, "after hook", "other/phase"},
				{"noise", lastLife, "noise", "optimizer_temporaries/phase"},
				{"logits", lastLife, "forward", "activations/lifetime"},
			}
		}
		w.expect(j, want)
		if j.InstrumentedPeakSeq == nil {
			t.Error("an instrumented step reached the same peak")
		}
	}
}

// If a bare step has no match and allocates a per-sample gradient, a tag of the next step shows what the block is. The
// block then has this category from birth on.
func TestPerSampleGradientOfAnUnmatchedStep(t *testing.T) {
	w := trained(t, bareMode)
	for range 40 {
		w.alloc(main, "more", 512)
		w.drop(main, "more")
	}
	w.forward(func() { w.alloc(main, "h", 3*mib) })
	w.backward(0, func() {
		w.alloc(engine, "gs", 24*mib)
		w.alloc(engine, "kept", 24*mib)
		w.drop(engine, "h")
		w.label("backward")
	})
	w.span(spool.OptimizerBegin, main, 1, func() { w.alloc(main, "late", mib) })
	w.mode(instrumented)
	w.tag(main, spool.TagGradSample, "gs")
	w.label("tagged")
	w.drop(main, "gs", "kept")
	w.forward(func() {})
	w.backward(0, func() {})
	w.span(spool.OptimizerBegin, main, 1, func() {})
	w.expect(w.join(), []expectation{
		{"gs", 1, "backward", "per_sample_gradients/lifetime"}, {"gs", 1, "tagged", "per_sample_gradients/tagged"},
		{"kept", 0, "backward", "other/phase"},
	})
}

// torch 2.15 allocates a workspace for each call. If a workspace stays in one recording, a block of the same size that
// is freed within a call counts as a temporary.
func TestWorkspaceOfOneCall(t *testing.T) {
	for _, stays := range []bool{false, true} {
		w := newWorld(t)
		w.forward(func() {
			if stays {
				w.alloc(main, "kept", 32*mib)
			}
			w.alloc(main, "call", 32*mib)
			w.label("call")
			w.drop(main, "call")
			w.alloc(main, "used", 32*mib)
			w.alloc(main, "other", 3*mib)
			w.label("used")
			w.drop(main, "used", "other")
		})
		w.backward(0, func() {})
		w.span(spool.OptimizerBegin, main, 1, func() {})
		j := w.join()
		want := "workspace/lifetime"
		if stays {
			if got := w.category(j, "kept", 0, "call"); got != want {
				t.Errorf("kept is %s", got)
			}
			want = "forward_temporaries/lifetime"
		}
		if got := w.category(j, "call", 0, "call"); got != want {
			t.Errorf("another stays %v: %s, want %s", stays, got, want)
		}
		if got := w.category(j, "used", 0, "used"); got != "forward_temporaries/lifetime" {
			t.Errorf("used is %s", got)
		}
	}
}

func TestOnlyABareStepReachesThePeak(t *testing.T) {
	w := trained(t, bareMode)
	w.forward(func() { w.alloc(main, "huge", 900*mib) })
	w.backward(0, func() {})
	w.span(spool.OptimizerBegin, main, 1, func() {})
	j := w.join()
	if j.InstrumentedPeakSeq != nil {
		t.Errorf("instrumented peak %v", j.InstrumentedPeakSeq)
	}
}

// A tag names an address. The tag binds to an allocation at this address only if no other allocation is possible, and
// otherwise to none.
func TestBinding(t *testing.T) {
	t.Run("an address used again", func(t *testing.T) {
		w := newWorld(t)
		w.alloc(main, "a", 4*kib)
		w.tag(main, spool.TagInput, "a")
		w.drop(main, "a")
		w.alloc(main, "b", 4*kib)
		w.tag(main, spool.TagNoise, "b")
		w.label("end")
		j := w.join()
		if j.AmbiguousTags != 0 {
			t.Fatal(j.Ambiguous)
		}
		if w.blocks["a"][0].addr != w.blocks["b"][0].addr {
			t.Fatal("the address was not used again")
		}
		if got := w.category(j, "b", 0, "end"); got != "noise/tagged" {
			t.Error(got)
		}
	})
	t.Run("two lives in one window", func(t *testing.T) {
		w := newWorld(t)
		w.alloc(main, "a", 4*kib)
		w.tag(main, spool.TagInput, "a")
		// The engine's thread reuses the address of block a while the main thread has no events.
		w.mark(engine, spool.Engine, 0, 0)
		w.drop(engine, "a")
		w.alloc(engine, "b", 4*kib)
		w.tag(main, spool.TagNoise, "b")
		j := w.join()
		if j.AmbiguousTags != 1 || !strings.Contains(j.Ambiguous[0], "more than one block") {
			t.Errorf("%d ambiguous: %v", j.AmbiguousTags, j.Ambiguous)
		}
	})
	t.Run("the engine has marked since", func(t *testing.T) {
		w := newWorld(t)
		w.alloc(main, "a", 4*kib)
		w.mark(engine, spool.Engine, 0, 0)
		w.drop(engine, "a")
		w.alloc(engine, "b", 4*kib)
		w.mark(engine, spool.ModuleBackwardBegin, 0, 1)
		w.tag(main, spool.TagNoise, "b")
		w.label("end")
		j := w.join()
		if got := w.category(j, "b", 0, "end"); got != "noise/tagged" || j.AmbiguousTags != 0 {
			t.Errorf("%s, %v", got, j.Ambiguous)
		}
	})
	t.Run("backward has ended since", func(t *testing.T) {
		w := newWorld(t)
		w.alloc(main, "a", 4*kib)
		w.backward(0, func() {
			w.drop(engine, "a")
			w.alloc(engine, "b", 4*kib)
		})
		w.tag(main, spool.TagGradient, "b")
		w.label("end")
		j := w.join()
		if got := w.category(j, "b", 0, "end"); got != "gradients/tagged" || j.AmbiguousTags != 0 {
			t.Errorf("%s, %v", got, j.Ambiguous)
		}
	})
	t.Run("another size", func(t *testing.T) {
		w := newWorld(t)
		w.alloc(main, "a", 4*kib)
		w.tag(main, spool.TagInput, "a")
		w.tags[0].Bytes--
		j := w.join()
		if j.AmbiguousTags != 1 || !strings.Contains(j.Ambiguous[0], "has 4096 bytes") {
			t.Errorf("%d ambiguous: %v", j.AmbiguousTags, j.Ambiguous)
		}
	})
	t.Run("dead", func(t *testing.T) {
		w := newWorld(t)
		w.alloc(main, "a", 4*kib)
		w.mark(main, spool.UserMark, 0, 0)
		w.drop(main, "a")
		w.mark(main, spool.UserMark, 0, 0)
		w.alloc(main, "b", 3*mib)
		w.tag(main, spool.TagInput, "b")
		w.tags[0].Address, w.tags[0].Bytes = w.blocks["a"][0].addr, 4*kib
		j := w.join()
		if j.AmbiguousTags != 1 || !strings.Contains(j.Ambiguous[0], "no block lived there then") {
			t.Errorf("%d ambiguous: %v", j.AmbiguousTags, j.Ambiguous)
		}
	})
	t.Run("an address of nobody", func(t *testing.T) {
		w := newWorld(t)
		w.alloc(main, "a", 4*kib)
		w.tag(main, spool.TagInput, "a")
		w.tags[0].Address = 4242
		if j := w.join(); j.AmbiguousTags != 0 || w.at["unbound"] != 1 {
			t.Errorf("%d ambiguous, %d unbound", j.AmbiguousTags, w.at["unbound"])
		}
	})
	t.Run("after the last drain", func(t *testing.T) { // the process died before it wrote the last events
		w := newWorld(t)
		w.alloc(main, "a", 4*kib)
		last := w.mark(main, spool.DrainBegin, 0, 1)
		w.tag(main, spool.TagInput, "a")
		w.tag(main, spool.TagInput, "a")
		w.tags[0].Address, w.tags[1].Bytes = 4242, 5*kib
		if j := w.join(func(r *Rank) { r.LastK = uint32(last) }); j.AmbiguousTags != 0 || w.at["unbound"] != 0 {
			t.Errorf("%d ambiguous, %d unbound", j.AmbiguousTags, w.at["unbound"])
		}
	})
	t.Run("while nothing was recorded", func(t *testing.T) {
		w := newWorld(t)
		w.alloc(main, "a", 4*kib)
		w.mode(spool.FlagInstrumented)
		w.tag(main, spool.TagInput, "a")
		w.tags[0].Bytes--
		if j := w.join(); j.AmbiguousTags != 0 || w.at["unbound"] != 0 {
			t.Errorf("%d ambiguous, %d unbound", j.AmbiguousTags, w.at["unbound"])
		}
	})
}

func TestUserTags(t *testing.T) {
	w := newWorld(t)
	w.alloc(main, "cache", 4*kib)
	w.alloc(main, "table", 4*kib)
	k := w.mark(main, spool.Tags, 0, 2)
	for name, category := range map[string]string{"cache": schemas.Buffers, "table": "lookup tables"} {
		b := w.live[name]
		w.tags = append(w.tags, spool.Tag{K: k, Kind: spool.TagUser, Address: b.addr, Bytes: b.bytes,
			Name: w.name(name), Module: w.name(category)})
	}
	w.label("end")
	j := w.join()
	if got := w.category(j, "cache", 0, "end"); got != "buffers/tagged" {
		t.Error(got)
	}
	if got := w.category(j, "table", 0, "end"); got != "other/tagged" {
		t.Error(got)
	}
}

// If both a hook and autograd hold a block, it has two owners, and counts as activations while both hold it.
func TestShared(t *testing.T) {
	w := trained(t, instrumented)
	j := w.join()
	seq := w.at["forward"]
	var got []string
	for l := range j.facts.device.Replay.Allocs {
		if j.facts.device.Replay.Allocs[l].AllocSeq == w.blocks["h"][0].born {
			for _, o := range j.owners.of(l) {
				if o.begin <= seq && seq < endOf(o.end) {
					got = append(got, schemas.Categories[o.category])
				}
			}
		}
	}
	if !slices.Equal(got, []string{schemas.Activations, schemas.HookActivations}) {
		t.Errorf("owners %v", got)
	}
}

// If autograd releases an activation that a hook still holds, the block changes its category at the event of the
// release. If the recording does not show a release within backward, the block changes its category at the end of the
// backward run that frees the graph.
func TestHookOutlivesAutograd(t *testing.T) {
	w := newWorld(t)
	w.forward(func() {
		w.alloc(main, "released", 3*mib)
		w.alloc(main, "kept", 3*mib)
		w.tag(main, spool.TagHookActivation, "released", "kept")
	})
	w.label("forward")
	w.tag(main, spool.TagSavedTensor, "released", "kept")
	w.backward(0, func() {
		w.alloc(engine, "gradient", kib)
		w.untag(engine, spool.TagSavedTensor, "released")
		w.label("let go") // a label shows the state just before the next event
		w.drop(engine, "gradient")
		w.alloc(engine, "next", kib)
		w.label("in backward")
		w.drop(engine, "next")
	})
	w.label("given up")
	w.alloc(main, "factor", kib)
	w.label("clip")
	w.drop(main, "factor")
	w.drop(main, "released", "kept")
	w.update()
	w.at["before"] = w.at["let go"] - 1
	w.expect(w.join(), []expectation{
		{"released", 0, "forward", "activations/tagged"}, {"released", 0, "before", "activations/tagged"},
		{"released", 0, "let go", "hook_activations/tagged"},
		{"released", 0, "clip", "hook_activations/tagged"},
		{"kept", 0, "let go", "activations/tagged"}, {"kept", 0, "in backward", "activations/tagged"},
		{"kept", 0, "given up", "hook_activations/tagged"},
		{"kept", 0, "clip", "hook_activations/tagged"},
	})
}

// If the recording ends in forward, blocks of this forward that hooks hold also belong to autograd, with the evidence
// phase. Once a backward has begun, the recording shows what autograd holds, and the join assumes nothing.
func TestUnfinishedForward(t *testing.T) {
	for _, c := range []struct {
		begins bool
		want   map[string]string // the owners when the recording ends
	}{
		{false, map[string]string{"hooked": "activations/phase hook_activations/tagged", "freed": "",
			"unhooked": "activations/phase", "early": "hook_activations/tagged"}},
		{true, map[string]string{"hooked": "hook_activations/tagged", "saved": "activations/tagged " +
			"hook_activations/tagged", "late": "hook_activations/tagged"}},
	} {
		w := trained(t, instrumented)
		w.alloc(main, "early", 3*mib) // allocated before the forward pass
		w.mark(main, spool.ForwardBegin, fwdFlags, 1)
		for _, name := range []string{"hooked", "freed", "saved"} {
			w.alloc(main, name, 3*mib)
		}
		w.tag(main, spool.TagHookActivation, "hooked", "freed", "saved", "early")
		w.drop(main, "freed")
		w.alloc(main, "unhooked", 3*mib)
		if c.begins {
			w.mark(main, spool.ForwardEnd, fwdFlags|spool.FlagDifferentiable, 1)
			w.tag(main, spool.TagSavedTensor, "saved")
			w.mark(main, spool.BackwardBegin, spool.FlagAccumulate, 1)
			w.alloc(main, "late", 3*mib) // allocated in backward
			w.tag(main, spool.TagHookActivation, "late")
		}
		j := w.join()
		for name, want := range c.want {
			var got []string
			for l := range j.facts.device.Replay.Allocs {
				if j.facts.device.Replay.Allocs[l].AllocSeq != w.blocks[name][0].born {
					continue
				}
				for _, o := range j.owners.of(l) {
					if o.begin <= j.facts.device.Replay.Events && j.facts.device.Replay.Events < endOf(o.end) {
						got = append(got, schemas.Categories[o.category]+"/"+evidences[o.evidence])
					}
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("backward begins %v: %s has owners %v, want %s", c.begins, name, got, want)
			}
		}
	}
}

func TestModulesOfBlocks(t *testing.T) {
	w := newWorld(t)
	w.forward(func() {
		w.span(spool.ModuleBegin, main, 5, func() { w.alloc(main, "inner", 3*mib) })
		w.alloc(main, "outer", 3*mib)
	})
	w.backward(0, func() {
		w.mark(engine, spool.ModuleBackwardBegin, 0, 5)
		w.alloc(engine, "d5", 3*mib)
		w.span(spool.SamplerBegin, engine, 9, func() { w.alloc(engine, "norm", 3*mib) })
		w.mark(engine, spool.ModuleBackwardEnd, 0, 5)
		w.alloc(engine, "d0", 3*mib)
	})
	w.span(spool.OptimizerBegin, main, 1, func() {})
	// In a bare step the engine's thread makes no marks. The last mark of this thread is from an earlier phase, so the
	// mark does not show the module.
	w.forward(func() {})
	w.mark(main, spool.BackwardBegin, spool.FlagAccumulate, 1)
	w.event(main, schemas.ActionSnapshot, 0, 0)
	w.alloc(engine, "stale", 3*mib)
	w.mark(main, spool.BackwardEnd, 0, 0)
	w.span(spool.OptimizerBegin, main, 1, func() {})
	j := w.join()
	want := map[string]int64{"inner": 5, "outer": 1, "d5": 5, "norm": 9, "d0": 0, "stale": 0}
	for a := range j.Allocations() {
		for name, module := range want {
			if w.blocks[name][0].born != a.AllocSeq {
				continue
			}
			if a.Module != module {
				t.Errorf("%s was born in module %d, want %d", name, a.Module, module)
			}
			if name == "stale" && (a.Phase != schemas.PhaseBackward || a.Step != 1) {
				t.Errorf("stale was born in %s of step %d", a.Phase, a.Step)
			}
		}
	}
}

func TestPhaseRows(t *testing.T) {
	w := trained(t, instrumented)
	trainStep(w, false, true, instrumented)
	var intervals []spool.Interval
	for k := uint32(5); k+1 < uint32(len(w.marks)); k++ {
		intervals = append(intervals, spool.Interval{BeginK: k, EndK: k + 1, NS: 100})
	}
	j := w.join(func(r *Rank) { r.Intervals = intervals })
	phases, steps := j.Phases(), j.Steps()
	seq, peak, gpu := int64(0), int64(0), int64(0)
	for _, p := range phases {
		if p.BeginSeq != seq || p.EndSeq < p.BeginSeq {
			t.Fatalf("phase %+v does not follow event %d", p, seq)
		}
		seq, peak, gpu = p.EndSeq, max(peak, *p.PeakBytes), gpu+schemas.OrZero(p.GPUNS)
		allocated := j.facts.device.Replay.Allocated
		if *p.AllocatedBegin != allocated[p.BeginSeq] || *p.PeakBytes != allocated[p.PeakSeq] {
			t.Errorf("bytes of %+v", p)
		}
	}
	if seq != int64(w.events.Len()) || peak != j.facts.device.Replay.PeakAllocated || gpu != 100*int64(len(intervals)) {
		t.Errorf("phases end at %d, peak %d, gpu %d", seq, peak, gpu)
	}
	if len(steps) != 2 || steps[1].BeginSeq != steps[0].EndSeq ||
		steps[1].GPUNS != 100*(steps[1].EndK-steps[1].BeginK) {
		t.Errorf("steps %+v", steps)
	}
	if j := w.join(func(r *Rank) { r.Intervals, r.Untimed = intervals, true }); j.Steps()[0].GPUNS != 0 {
		t.Error("a phantom GPU has no times")
	}
}

// GPU time does not include an interval that contains a drain, since the agent and not the script makes drains.
func TestDrainsAreNotTimed(t *testing.T) {
	w := newWorld(t)
	w.forward(func() {})
	w.backward(0, func() {})
	w.span(spool.OptimizerBegin, main, 1, func() {})
	end := uint32(len(w.marks))
	w.span(spool.DrainBegin, main, 1, func() {})
	w.forward(func() {})
	w.backward(0, func() {})
	w.span(spool.OptimizerBegin, main, 1, func() {})
	j := w.join(func(r *Rank) {
		r.Intervals = []spool.Interval{{BeginK: end, EndK: end + 3, NS: 1e9}, {BeginK: end + 3, EndK: end + 4, NS: 5}}
	})
	if s := j.Steps(); len(s) != 2 || s[1].GPUNS != 5 {
		t.Errorf("%+v", s)
	}
}

// If torch could record no CUDA event in a step's forward and backward, a CUDA graph captured the step. The time around
// the capture is not the step's time, so the step has no time.
func TestACapturedStepIsNotTimed(t *testing.T) {
	w := newWorld(t)
	var begins []uint32
	for range 2 {
		begins = append(begins, uint32(len(w.marks)))
		w.forward(func() {})
		w.backward(0, func() {})
		w.span(spool.OptimizerBegin, main, 1, func() {})
	}
	end := uint32(len(w.marks))
	w.forward(func() {})
	j := w.join(func(r *Rank) {
		for k := begins[0]; k < begins[1]; k++ {
			r.Intervals = append(r.Intervals, spool.Interval{BeginK: k, EndK: k + 1, NS: 100})
		}
		// The next interval begins at the end of the step's optimizer.
		r.Intervals = append(r.Intervals, spool.Interval{BeginK: end - 1, EndK: end, NS: 7})
	})
	captured := schemas.Captured(j.Phases())
	s := j.Steps()
	if len(s) != 2 || s[0].GPUNS == 0 || s[1].GPUNS != 0 || len(captured) != 1 || !captured[schemas.RankStep{Step: 1}] {
		t.Errorf("%+v, captured %v", s, captured)
	}
}

// For any events, each byte has an owner at each moment.
func TestEveryByteHasAnOwner(t *testing.T) {
	kinds := []spool.TagKind{spool.TagParameter, spool.TagGradient, spool.TagSavedTensor, spool.TagHookActivation,
		spool.TagGradSample,
		spool.TagSummedGradient, spool.TagInput, spool.TagOutput, spool.TagStoredBackprop, spool.TagUser}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(t)
		var live []string
		n := 0
		churn := func(th uint16) {
			for range rnd.IntN(6) {
				switch r := rnd.IntN(10); {
				case r < 4 || len(live) == 0:
					n++
					name := "b" + string(rune('0'+n%10)) + strings.Repeat("i", n)
					w.alloc(th, name, int64(1+rnd.IntN(4))<<uint(9+rnd.IntN(16)))
					live = append(live, name)
				case r < 7:
					i := rnd.IntN(len(live))
					w.drop(th, live[i])
					live = slices.Delete(live, i, i+1)
				case r < 9:
					w.tag(th, kinds[rnd.IntN(len(kinds))], live[rnd.IntN(len(live))])
				default:
					w.untag(th, kinds[rnd.IntN(len(kinds))], live[rnd.IntN(len(live))])
				}
			}
		}
		for range 1 + rnd.IntN(5) {
			w.mode(uint8(rnd.IntN(2))*spool.FlagInstrumented | spool.FlagRecording)
			churn(main)
			w.forward(func() { churn(main) })
			churn(main)
			w.backward(uint8(rnd.IntN(2))*spool.FlagKeepGraph, func() {
				churn(engine)
				w.span(spool.SamplerBegin, engine, 3, func() { churn(engine) })
			})
			w.span(spool.DPStepBegin, main, 1, func() {
				w.span(spool.PhaseBegin, main, uint64(w.name("clip")), func() { churn(main) })
				w.span(spool.OptimizerBegin, main, 1, func() { churn(main) })
			})
		}
		w.join()
	}
}

func TestRoles(t *testing.T) {
	for _, c := range []struct{ class, path, want string }{
		{"Linear", "blocks.3.attn.q", "attention"}, {"LayerNorm", "blocks.3.attn.norm", "norm"},
		{"Linear", "blocks.3.fc1", "mlp"},
		{"Embedding", "emb", "embedding"}, {"Linear", "head", "head"}, {"Linear", "lm_head", "head"},
		{"LlamaRMSNorm", "model.norm", "norm"},
		{"Linear", "base.layers.0.self_attn.q_proj.lora_A.default", "lora"}, {"LlamaMLP", "model.layers.0.mlp", "mlp"},
		{"GELU", "blocks.0.act", "other"},
		{"LM", "", "other"},
	} {
		if got := Role(c.class, c.path); got != c.want {
			t.Errorf("%s %q is %s, want %s", c.class, c.path, got, c.want)
		}
	}
}

func TestWorkspaces(t *testing.T) {
	for config, want := range map[string]int64{":4096:8": 32 * mib, ":4096:2:16:8": 8*mib + 128*kib, "": 0,
		"nonsense": 0, ":16:8": 128 * kib} {
		if got := Workspaces(config); got != want {
			t.Errorf("%q: %d, want %d", config, got, want)
		}
	}
}

// If the graphs of two steps save the same tensor, one step after the other, its block has autograd as an owner twice.
// The two times do not overlap.
func TestHeldOnceMore(t *testing.T) {
	w := newWorld(t)
	w.alloc(main, "noise", 4*kib)
	for _, label := range []string{"first", "second"} {
		w.forward(func() {})
		w.tag(main, spool.TagSavedTensor, "noise")
		w.label(label)
		w.backward(0, func() { w.alloc(engine, "x", kib) })
		w.untag(main, spool.TagSavedTensor, "noise")
		w.alloc(main, "y", kib)
		w.drop(main, "x", "y")
	}
	j := w.join()
	var held []owner
	for _, o := range j.owners.of(0) {
		if o.category == activations && o.evidence == tagged {
			held = append(held, o)
		}
	}
	if len(held) != 2 || !held[0].observed || held[1].begin < held[0].end {
		t.Errorf("held %+v", held)
	}
	checkOwners(t, j)
}

// A loss compares the output with a target tensor. The target is an input from birth to death, even while no graph
// holds it. A constant that the node of a product saved is no input, and neither is a block that forward allocated. If
// the script also keeps the target under a name, the target stays an input.
func TestTargets(t *testing.T) {
	for _, named := range []bool{false, true} {
		targets(t, named)
	}
}

// If the user tags a loss's target, the user's tag takes precedence over the rule for targets, also in bare steps. The
// user's tag takes precedence whether the agent saw the script's name for the target before or after the tag.
func TestTargetsOfTheUser(t *testing.T) {
	for _, kinds := range [][]spool.TagKind{{spool.TagUser}, {spool.TagHeld, spool.TagUser},
		{spool.TagUser, spool.TagHeld}} {
		w := newWorld(t)
		for step := range 4 {
			bare := step == 3
			w.mode(spool.FlagRecording | uint8(1-step/3)*spool.FlagInstrumented)
			w.alloc(main, "target", 3*mib)
			w.label(fmt.Sprint("made ", step))
			for _, kind := range kinds {
				if bare {
					break
				}
				w.tag(main, kind, "target")
				if kind == spool.TagUser {
					w.tags[len(w.tags)-1].Module, w.tags[len(w.tags)-1].Name = w.name("other"), w.name("mine")
				}
			}
			w.alloc(main, "x", kib)
			w.forward(func() { w.alloc(main, "logits", 3*mib) })
			if !bare {
				w.tag(main, spool.TagSavedTensor, "target")
				w.tags[len(w.tags)-1].Name = w.name("MseLossBackward0")
			}
			w.backward(0, func() { w.alloc(engine, "y", kib) })
			if !bare {
				w.untag(main, spool.TagSavedTensor, "target")
			}
			w.alloc(main, "z", kib)
			w.label(fmt.Sprint("given up ", step))
			w.span(spool.OptimizerBegin, main, 1, func() { w.alloc(main, "u", kib) })
			w.drop(main, "logits", "x", "y", "z", "u", "target")
		}
		w.mode(spool.FlagRecording)
		w.alloc(main, "x", kib)
		j := w.join()
		for step, evidence := range []string{"tagged", "tagged", "tagged", "lifetime"} {
			for _, label := range []string{"made", "given up"} {
				if got := w.category(j, "target", step, fmt.Sprint(label, " ", step)); got != "other/"+evidence {
					t.Errorf("tags %v, step %d: %s the target is %s, want other/%s", kinds, step, label, got, evidence)
				}
			}
		}
		for _, o := range j.owners.all {
			if o.category == other && o.evidence == tagged && w.names[o.name] != "mine" {
				t.Errorf("tags %v: the target's name is %q", kinds, w.names[o.name])
			}
		}
	}
}

// If a model is no torch module, the recording has no marks of its forward pass. The model's output is then allocated
// outside all marked passes, like a target, and a loss also saves it. The join must not take this output for a target.
func TestNoTargetsWithoutCalls(t *testing.T) {
	w := newWorld(t)
	w.alloc(main, "logits", 3*mib)
	w.tag(main, spool.TagSavedTensor, "logits")
	w.tags[len(w.tags)-1].Name = w.name("MseLossBackward0")
	w.backward(0, func() { w.alloc(engine, "y", kib) })
	w.untag(main, spool.TagSavedTensor, "logits")
	w.alloc(main, "z", kib)
	w.label("given up")
	if got := w.category(w.join(), "logits", 0, "given up"); strings.HasPrefix(got, "inputs/") {
		t.Errorf("what the model made is %s", got)
	}
}

func targets(t *testing.T, named bool) {
	w := newWorld(t)
	node := func(name, node string) {
		w.tag(main, spool.TagSavedTensor, name)
		w.tags[len(w.tags)-1].Name = w.name(node)
	}
	w.alloc(main, "target", 3*mib)
	w.alloc(main, "constant", 3*mib)
	w.label("made")
	for range 2 {
		w.alloc(main, "x", kib)
		w.forward(func() { w.alloc(main, "logits", 3*mib) })
		node("target", "MseLossBackward0")
		node("constant", "MulBackward0")
		node("logits", "MseLossBackward0")
		w.label("held")
		w.backward(0, func() { w.alloc(engine, "y", kib) })
		w.untag(main, spool.TagSavedTensor, "target", "constant", "logits")
		w.alloc(main, "z", kib)
		w.label("given up")
		if named {
			w.tag(main, spool.TagHeld, "target")
		}
		w.drop(main, "logits", "x", "y", "z")
	}
	w.alloc(main, "x", kib)
	w.label("end")
	j := w.join()
	for label, want := range map[string][2]string{"made": {"inputs/lifetime", "script/lifetime"},
		"held": {"activations/tagged", "activations/tagged"}, "given up": {"inputs/lifetime", "script/phase"}} {
		if got := [2]string{w.category(j, "target", 0, label), w.category(j, "constant", 0, label)}; got != want {
			t.Errorf("%s: target and constant are %v, want %v", label, got, want)
		}
	}
	if got := w.category(j, "logits", 1, "given up"); !strings.HasPrefix(got, "script/") {
		t.Errorf("what forward made is %s once the graph is gone", got)
	}
	if got := w.category(j, "target", 0, "end"); got != "inputs/lifetime" {
		t.Errorf("at the end the target is %s, kept by a name: %t", got, named)
	}
}
