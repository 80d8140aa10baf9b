package join

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas/spool"
)

func (w *world) update() {
	w.span(spool.OptimizerBegin, main, 1, func() {
		w.alloc(main, "temporary", kib)
		w.drop(main, "temporary")
	})
}

// If a block has no tag and outlives forward, it counts as an activation as long as a graph exists that could hold it.
func TestNoActivationWithoutAGraph(t *testing.T) {
	w := newWorld(t)
	w.forward(func() { w.alloc(main, "kept", 3*mib); w.alloc(main, "dies", 3*mib); w.alloc(main, "generator", 3*mib) })
	w.label("forward")
	w.backward(0, func() { w.alloc(engine, "gradient", kib); w.drop(engine, "dies", "gradient") })
	w.label("first")
	w.forward(func() { w.alloc(main, "second", 3*mib) })
	w.backward(spool.FlagKeepGraph, func() {})
	w.label("graph kept")
	w.backward(0, func() {
		w.alloc(engine, "gradient", kib)
		w.drop(engine, "generator", "gradient")
		w.label("inside")
	})
	w.label("all gone")
	w.update()
	w.label("end")
	w.expect(w.join(), []expectation{
		{"kept", 0, "forward", "activations/lifetime"}, {"kept", 0, "first", "script/phase"},
		{"kept", 0, "end", "script/phase"},
		{"dies", 0, "forward", "activations/lifetime"},
		{"generator", 0, "first", "activations/lifetime"}, // the second backward frees this block
		{"second", 0, "graph kept", "activations/lifetime"}, {"second", 0, "all gone", "script/phase"},
	})
}

// For autograd and hooks, the join treats a tensor from before forward as held only from the beginning of forward on,
// in each step.
func TestNothingIsHeldBeforeForward(t *testing.T) {
	w := newWorld(t)
	w.alloc(main, "weights", 3*mib)
	for range 2 {
		w.alloc(main, "batch", 3*mib)
		w.alloc(main, "staged", kib)
		w.label("loaded")
		w.drop(main, "staged")
		w.forward(func() {
			w.tag(main, spool.TagInput, "batch")
			w.alloc(main, "h", 3*mib)
			w.tag(main, spool.TagHookActivation, "batch")
			w.label("forward")
		})
		w.tag(main, spool.TagSavedTensor, "batch", "weights", "h")
		w.backward(0, func() { w.alloc(engine, "gradient", kib); w.drop(engine, "gradient", "h") })
		w.untag(main, spool.TagSavedTensor, "batch", "weights")
		w.untag(main, spool.TagHookActivation, "batch")
		w.label("backward")
		w.update()
		w.label("updated")
		w.drop(main, "batch")
	}
	w.expect(w.join(), []expectation{
		{"batch", 1, "loaded", "inputs/tagged"}, {"batch", 1, "forward", "activations/tagged"}, {"batch", 1, "backward",
			"inputs/tagged"},
		{"weights", 0, "loaded", "script/lifetime"}, {"weights", 0, "forward", "activations/tagged"},
		{"weights", 0, "backward", "script/phase"}, {"weights", 0, "updated", "script/phase"},
		{"h", 1, "forward", "activations/tagged"},
	})
}

// A tag shows that a module's plain attribute holds a tensor. In an instrumented step, the tensor's block counts under
// script from birth, since the recording shows that the graph did not hold it. In a bare step, the block counts under
// script from the end of the graph on.
func TestHeldByAnAttribute(t *testing.T) {
	w := newWorld(t)
	for _, mode := range []uint8{bareMode, instrumented} {
		w.forward(func() { w.alloc(main, "cache", 3*mib) })
		// The variable mode is the mode of the next step, so the label names the other mode, which this step has.
		w.label("forward " + map[uint8]string{bareMode: "instrumented", instrumented: "bare"}[mode])
		w.backward(0, func() { w.alloc(engine, "gradient", kib); w.drop(engine, "gradient") })
		if mode == instrumented {
			for range 9 { // with these blocks, the step has no match
				w.alloc(main, "more", kib)
				w.drop(main, "more")
			}
		}
		w.update()
		w.tag(main, spool.TagHeld, "cache")
		w.mode(mode)
		w.label("end " + map[uint8]string{bareMode: "instrumented", instrumented: "bare"}[mode])
		if mode == bareMode {
			w.drop(main, "cache")
		}
	}
	w.forward(func() {})
	w.backward(0, func() {})
	w.update()
	w.expect(w.join(), []expectation{
		{"cache", 0, "forward instrumented", "script/tagged"},
		{"cache", 1, "forward bare", "activations/lifetime"}, {"cache", 1, "end bare", "script/tagged"},
	})
}

// An instrumented step may make the next batch for a bare step. The join recognises such a batch by the corresponding
// batch that a bare step made for an instrumented step.
func TestBatchesMadeAhead(t *testing.T) {
	for _, varies := range []bool{false, true} {
		w := newWorld(t)
		w.alloc(main, "batch 0", 3*mib)
		names := []string{"batch 0", "batch 1", "batch 2", "batch 3", "batch 4"}
		for i, name := range names[:4] {
			w.forward(func() {
				if i%2 == 0 {
					w.tag(main, spool.TagInput, name)
				}
				w.alloc(main, "h", 3*mib)
				w.alloc(main, names[i+1], 3*mib)
			})
			w.label(names[i+1])
			w.backward(0, func() { w.alloc(engine, "gradient", kib); w.drop(engine, "gradient", "h") })
			if varies && i%2 == 1 {
				w.alloc(main, "more", kib)
				w.drop(main, "more")
			}
			w.drop(main, name)
			w.update()
			w.mode([]uint8{bareMode, instrumented}[i%2])
		}
		want := "inputs/lifetime"
		if varies { // with one more block, bare steps differ from instrumented ones
			want = "activations/lifetime"
		}
		w.expect(w.join(), []expectation{
			{"batch 1", 0, "batch 1", want}, {"batch 2", 0, "batch 2", "inputs/tagged"}, {"batch 3", 0, "batch 3",
				want},
		})
	}
}

// If most steps are bare, a batch that is made ahead is mostly made in a bare step for another bare step. A batch that
// is used in the step that made it is not made ahead. If its step has no match, the join does not know that it is a
// batch.
func TestBatchesMadeAheadInBareSteps(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		w := newWorld(t)
		name := func(i int) string { return fmt.Sprint("batch ", i) }
		tagged := func(i int) bool { return i < 3 || i%4 == 0 }
		const steps = 14
		w.alloc(main, name(0), 3*mib)
		for i := range steps {
			now := i
			samples := func(i int) int64 { return int64(3 + i*7%5) }
			if !ahead && i > 0 {
				w.alloc(main, name(now), samples(i)*mib)
				w.drop(main, name(i-1))
			}
			if !ahead && i == 10 { // this step is like no other step
				for range 40 {
					w.alloc(main, "more", kib)
					w.drop(main, "more")
				}
			}
			w.label("before " + name(now))
			w.alloc(main, "between", kib)
			w.drop(main, "between")
			w.forward(func() {
				if tagged(i) {
					w.tag(main, spool.TagInput, name(now))
				}
				for n := range 24 {
					w.alloc(main, fmt.Sprint("h", n), samples(i)*mib)
				}
				if ahead {
					w.alloc(main, name(i+1), samples(i+1)*mib)
				}
			})
			w.label(name(now))
			if tagged(i) {
				w.tag(main, spool.TagSavedTensor, name(now))
			}
			w.backward(0, func() {
				for n := range 24 {
					w.drop(engine, fmt.Sprint("h", n))
				}
			})
			if ahead {
				w.drop(main, name(i))
			}
			w.update()
			mode := uint8(bareMode)
			if tagged(i + 1) {
				mode = instrumented
			}
			w.mode(mode)
		}
		j := w.join()
		for i := 1; i+1 < steps; i++ {
			want := "activations/lifetime"
			switch {
			case tagged(i):
				want = "activations/tagged"
			case !ahead && i == 10:
				want = "script/lifetime"
			}
			if got := w.category(j, name(i), 0, name(i)); got != want {
				t.Errorf("made ahead %v, step %d: %s, want %s", ahead, i, got, want)
			}
			if got := w.category(j, name(i), 0, "before "+name(i)); ahead && !strings.HasPrefix(got, "inputs/") {
				t.Errorf("before step %d its batch is %s", i, got)
			}
		}
	}
}

// A result counts as the model's output until the next call of the same model has ended its forward pass, even if other
// models are called in between.
func TestKeptFrom(t *testing.T) {
	c := &Context{span: make([]int32, 50), thread: make([]uint16, 50), groupEnd: []uint32{20, 30, 40},
		rank: &Rank{Steps: &steps.Result{Spans: []steps.Span{{Group: 0}, {Group: 1}, {Group: 2}}}, Marks: []spool.Mark{
			{K: 1, Kind: spool.ForwardBegin, A: 7}, {K: 5, Kind: spool.ForwardBegin, A: 8},
			{K: 22, Kind: spool.ForwardBegin, A: 8, Flags: spool.FlagInBackward},
			{K: 32, Kind: spool.ForwardBegin, A: 7}}}}
	for k := range c.span {
		c.span[k] = int32(max(0, k/10-1))
	}
	before := make([]int32, 51)
	for k := range before {
		before[k] = int32(100 * k)
	}
	f := &facts{context: c, marks: &positions{before: before}}
	g := findGraphs(f)
	again := f.marks.seqAt(40)
	for k, want := range map[uint32]int64{0: never, 1: again, 3: again, 5: never, 7: never, 33: never} {
		if got := g.keptFrom(k); got != want {
			t.Errorf("an output of mark %d is kept from %d on, want %d", k, got, want)
		}
	}
}

// When a model's next call ends, the model's earlier result is no longer an output. The owner outputs then ends, and so
// do owners that received the result while it was an output, such as a loss. Owners that began before or begin later
// stay, and so do owners from tags of the script.
func TestGiveResults(t *testing.T) {
	g := &graphs{f: &facts{context: &Context{span: make([]int32, 3), thread: make([]uint16, 3), groupEnd: []uint32{2},
		rank: &Rank{Steps: &steps.Result{Spans: []steps.Span{{}}}}}, marks: &positions{before: []int32{0, 100, 200}}},
		called: map[uint16][]call{0: {{k: 0, model: 7}}}, again: map[uint64][]uint32{7: {0, 1}}}
	kept := g.f.marks.seqAt(2)
	owners := []owner{{category: outputs, begin: 10, end: 900}, {category: inputs, begin: 20, end: 900},
		{category: inputs, begin: 5, end: 900}, {category: inputs, begin: kept + 1, end: 900},
		{category: inputs, begin: 20, end: 900, user: true}, {category: outputs, begin: 10, end: 900, user: true}}
	want := slices.Clone(owners)
	for i := range want[:2] {
		want[i].end, want[i].observed = kept, true
	}
	if g.give(owners, 0); !slices.Equal(owners, want) {
		t.Errorf("owners are %+v\nwant %+v", owners, want)
	}
}
