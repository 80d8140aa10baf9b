package join

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// varyingStep describes one DP-SGD step of a net with several layers. Logical batches differ in size and are divided
// into physical batches. odd adds blocks that only some batches need: for each bit that is set, the layer of that
// number allocates a buffer for a reduction.
type varyingStep struct {
	batches []int64
	odd     uint
	tags    bool
	next    uint8
	first   bool
}

const varyingLayers = 4

func (s varyingStep) play(w *world) {
	tag := func(th uint16, kind spool.TagKind, names ...string) {
		if s.tags {
			w.tag(th, kind, names...)
		}
	}
	name := func(what string, layer int) string { return what + strconv.Itoa(layer) }
	for n, b := range s.batches {
		last := n == len(s.batches)-1
		if n == 0 {
			w.alloc(main, "x", b*8*kib)
		}
		w.forward(func() {
			tag(main, spool.TagInput, "x")
			for i := range varyingLayers {
				if s.first && n == 0 {
					w.alloc(main, name("weight", i), 6*mib)
				}
				tag(main, spool.TagParameter, name("weight", i))
				w.alloc(main, "scratch", b*16*kib)
				w.alloc(main, name("h", i), b*(32+int64(i))*kib)
				tag(main, spool.TagHookActivation, name("h", i))
				w.drop(main, "scratch")
			}
			w.alloc(main, "probabilities", b*b*kib)
			w.alloc(main, "loss", 4)
		})
		tag(main, spool.TagOutput, "loss")
		for i := range varyingLayers {
			tag(main, spool.TagSavedTensor, name("h", i))
		}
		tag(main, spool.TagSavedTensor, "probabilities")
		w.backward(0, func() {
			w.alloc(engine, "flow", b*32*kib)
			w.drop(engine, "probabilities")
			for i := varyingLayers - 1; i >= 0; i-- {
				if s.odd&(1<<i) != 0 {
					w.alloc(engine, "reduction", 3*kib)
					w.drop(engine, "reduction")
				}
				w.alloc(engine, "next flow", b*(31+int64(i))*kib)
				if s.tags {
					w.mark(engine, spool.SamplerBegin, 0, 7)
				}
				w.alloc(engine, "staging", b*512*kib)
				w.alloc(engine, name("sample", i), b*512*kib)
				if s.tags {
					w.tag(engine, spool.TagGradSample, name("sample", i))
				}
				w.drop(engine, "staging")
				if s.tags {
					w.untag(engine, spool.TagHookActivation, name("h", i))
					w.mark(engine, spool.SamplerEnd, 0, 7)
				}
				w.drop(engine, "flow", name("h", i))
				w.live["flow"], w.blocks["flow"] = w.live["next flow"], append(w.blocks["flow"], w.live["next flow"])
				delete(w.live, "next flow")
			}
			w.drop(engine, "flow")
		})
		flags := uint8(0)
		if !last {
			flags = spool.FlagSkipped
		}
		w.mark(main, spool.DPStepBegin, flags, 1)
		w.span(spool.PhaseBegin, main, uint64(w.name("clip")), func() {
			w.alloc(main, "factor", b*8)
			for i := range varyingLayers {
				if n == 0 {
					w.alloc(main, name("summed", i), 6*mib)
				}
				tag(main, spool.TagSummedGradient, name("summed", i))
			}
			w.drop(main, "factor")
		})
		if last {
			w.span(spool.OptimizerBegin, main, 1, func() {
				for i := range varyingLayers {
					if s.first {
						w.alloc(main, name("moment", i), 6*mib)
						tag(main, spool.TagOptimizerState, name("moment", i))
					}
				}
				w.alloc(main, "denominator", 6*mib)
				w.drop(main, "denominator")
			})
		}
		w.mark(main, spool.DPStepEnd, flags, 1)
		if last {
			w.mode(s.next)
		}
		w.span(spool.ZeroGradBegin, main, 0, func() {
			for i := range varyingLayers {
				w.drop(main, name("sample", i))
				if last {
					w.drop(main, name("summed", i))
				}
			}
		})
		if !last {
			w.alloc(main, "next x", s.batches[n+1]*8*kib)
		}
		w.drop(main, "x", "loss")
		if !last {
			w.live["x"], w.blocks["x"] = w.live["next x"], append(w.blocks["x"], w.live["next x"])
			delete(w.live, "next x")
		}
	}
}

// varying simulates steps and joins them. bare(i) is true if step i has no tags.
func varying(t *testing.T, steps []varyingStep, bare func(i int) bool) *Result {
	w := newWorld(t)
	for i, s := range steps {
		s.first, s.tags, s.next = i == 0, !bare(i), instrumented
		if i+1 < len(steps) && bare(i+1) {
			s.next = bareMode
		}
		s.play(w)
	}
	return w.join()
}

// differing joins a recording with bare steps, and compares the blocks of its bare steps with those in a recording in
// which every step has tags. all is the number of compared blocks. differ is the number of blocks that have another
// category at some event. example describes one of these.
func differing(t *testing.T, got, want *Result) (differ, all int, example string) {
	t.Helper()
	lives := want.facts.device.Replay.Allocs
	if len(got.facts.device.Replay.Allocs) != len(lives) {
		t.Fatalf("%d lives, %d where all steps have tags", len(got.facts.device.Replay.Allocs), len(lives))
	}
	for l := range lives {
		if got.facts.context.instrumented(got.facts.birthSpan(l)) {
			continue
		}
		all++
		end := min(endOf(lives[l].FreeRequestedSeq), want.facts.device.Replay.Events)
		for seq := lives[l].AllocSeq; seq < end; seq++ {
			if a, b := categoryAt(got, l, seq), categoryAt(want, l, seq); a != b {
				differ++
				example = fmt.Sprintf("life %d of %d bytes at event %d is %s, not %s", l, lives[l].Requested, seq,
					schemas.Categories[a], schemas.Categories[b])
				break
			}
		}
	}
	return differ, all, example
}

func everySecond(i int) bool { return i > 2 && i%2 == 1 }

// For any batch size, a block of a bare step has the same category at each event as in a recording in which all steps
// have tags.
func TestScaledSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	for range 30 {
		steps := make([]varyingStep, 9)
		for i := range steps {
			steps[i].batches = []int64{1 + rng.Int64N(90)}
		}
		got := varying(t, steps, everySecond)
		differ, all, example := differing(t, got, varying(t, steps, func(int) bool { return false }))
		if differ > 0 || all == 0 {
			t.Errorf("batches %v: %d of %d blocks differ: %s", steps, differ, all, example)
		}
		for _, l := range got.BareSteps {
			if l.Like == nil || l.How == schemas.LikeParts || l.Known < l.Blocks {
				t.Errorf("%+v", l)
			}
		}
	}
}

// Blocks of a bare step also have the right categories if its logical batch has more or fewer physical batches than the
// logical batch of any other step.
func TestMatchesOfOtherNumbersOfUnits(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 2))
	for range 30 {
		steps := make([]varyingStep, 9)
		for i := range steps {
			n := 2 + rng.IntN(6)
			if !everySecond(i) {
				n = 3 + i%2
			}
			for range n - 1 {
				steps[i].batches = append(steps[i].batches, 16)
			}
			steps[i].batches = append(steps[i].batches, 1+rng.Int64N(15))
		}
		got := varying(t, steps, everySecond)
		differ, all, example := differing(t, got, varying(t, steps, func(int) bool { return false }))
		if differ > 0 || all == 0 {
			t.Errorf("batches %v: %d of %d blocks differ: %s", steps, differ, all, example)
		}
	}
}

// If kernels allocate buffers that depend on the batch size, the join still matches the blocks between these buffers. A
// buffer that no step with tags has may stay without a match. The buffer's category then comes from the rules alone.
func TestMatchesOfUnequalSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 3))
	parts := false
	for range 30 {
		steps := make([]varyingStep, 9)
		for i := range steps {
			steps[i] = varyingStep{batches: []int64{1 + rng.Int64N(90)}, odd: uint(rng.IntN(1 << varyingLayers))}
		}
		got := varying(t, steps, everySecond)
		differ, all, example := differing(t, got, varying(t, steps, func(int) bool { return false }))
		if differ > 0 || all == 0 {
			t.Errorf("batches %v: %d of %d blocks differ: %s", steps, differ, all, example)
		}
		for _, l := range got.BareSteps {
			parts = parts || l.How == schemas.LikeParts
		}
	}
	if !parts {
		t.Error("no step was put together from parts")
	}
}

// If an instrumented step shares too few allocations with a bare step, the join does not use it for matches. An
// instrumented step that shares enough still supplies matches.
func TestMatchesBesideStepsThatShareLittle(t *testing.T) {
	w := newWorld(t)
	temporaries := func(th uint16, n int) {
		for range n {
			w.alloc(th, "temporary", 64*kib)
			w.drop(th, "temporary")
		}
	}
	step := func(forward, backward, optimizer, saved int, next uint8) { // next is the mode of the following step
		w.forward(func() {
			temporaries(main, forward)
			for i := range saved {
				w.alloc(main, "saved"+strconv.Itoa(i), 64*kib)
			}
		})
		w.backward(0, func() {
			temporaries(engine, backward)
			for i := range saved {
				w.drop(engine, "saved"+strconv.Itoa(i))
			}
		})
		w.span(spool.OptimizerBegin, main, 1, func() { temporaries(main, optimizer) })
		w.mode(next)
		w.span(spool.ZeroGradBegin, main, 0, func() {})
	}
	step(4, 2, 0, 0, instrumented) // shares six of the bare step's ten allocations
	step(4, 0, 0, 0, bareMode)     // shares four, and is the nearest step
	step(4, 2, 2, 2, instrumented)
	step(0, 2, 2, 0, instrumented) // as near, and shares four other allocations
	got := w.join().BareSteps
	if len(got) != 1 || got[0].Blocks != 10 || got[0].Like == nil || *got[0].Like != 0 ||
		got[0].How != schemas.LikeParts || got[0].Known != 6 {
		t.Errorf("%+v", got)
	}
}
