package join

import (
	"maps"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// unrecorded simulates the time between two windows. unrecorded makes marks without events, and then the allocator's
// own list of blocks.
func (w *world) unrecorded(body func()) { w.unrecordedAfter(func() {}, body) }

// unrecordedAfter does the same as [world.unrecorded], and first simulates other threads between a window's last drain
// and the mark that ends the window.
func (w *world) unrecordedAfter(closing, body func()) {
	drain := func(reason string, recorded bool) {
		w.drains = append(w.drains, schemas.Checkpoint{K: int64(len(w.marks)), Reason: reason, Recorded: recorded})
	}
	w.span(spool.DrainBegin, main, 1, func() { drain("step", true) })
	closed := uint32(len(w.marks))
	w.gap(closed, func() {
		closing()
		w.mode(0)
		body()
		w.span(spool.DrainBegin, main, 1, func() { drain("step", false) })
	})
	drain(schemas.ReasonWindow, true)
	w.mode(instrumented)
}

// lost simulates other threads between the moment at which a drain takes torch's history and the moment at which the
// history is cleared, so events are lost. After this, lost simulates the next drain, which has the allocator's own
// list.
func (w *world) lost(body func()) {
	closed := w.mark(main, spool.DrainBegin, 0, 1)
	w.drains = append(w.drains, schemas.Checkpoint{K: int64(closed), Reason: "step", Recorded: true})
	w.gap(closed, body)
	w.drains = append(w.drains, schemas.Checkpoint{K: int64(len(w.marks)), Reason: schemas.ReasonLost,
		Recorded: true})
	w.mark(main, spool.DrainEnd, 0, 1)
}

func (w *world) gap(closed uint32, body func()) {
	before, n := maps.Clone(w.live), w.events.Len()
	body()
	w.events = w.events.Part(0, n)
	w.events.Append(schemas.ActionGap, 0, 0, 0, 0, closed, 0, 0)
	seq := int64(w.events.Len())
	w.span(spool.DrainBegin, main, 2, func() {})
	var list []schemas.SegmentBlock
	row := func(s segment, at, bytes, requested int64, state string) {
		list = append(list, schemas.SegmentBlock{SegmentAddress: s.addr, SegmentBytes: s.size,
			Address: s.addr + uint64(at), BlockBytes: bytes, RequestedBytes: requested, State: state})
	}
	for _, name := range slices.Sorted(maps.Keys(w.live)) {
		b := w.live[name]
		if old := before[name]; old == nil || old.addr != b.addr {
			b.born = seq
		} else {
			b.born = old.born
		}
		rounded := (b.bytes + 511) / 512 * 512
		if rest := b.size - rounded; rounded <= mib && rest >= 512 || rest > mib {
			row(b.segment, 0, rounded, b.bytes, schemas.BlockActive)
			row(b.segment, rounded, rest, 0, schemas.BlockInactive)
		} else {
			row(b.segment, 0, b.size, b.bytes, schemas.BlockActive)
		}
	}
	for _, s := range w.free {
		row(s, 0, s.size, 0, schemas.BlockInactive)
	}
	w.gaps = append(w.gaps, replay.Gap{Seq: seq, List: list})
}

// After a gap in the events, weights and optimizer state keep their categories, and tags still find their blocks.
// Blocks that were allocated in the gap are untraced until a tag names them.
func TestGap(t *testing.T) {
	w := trained(t, instrumented)
	trainStep(w, false, true, 0)
	w.unrecorded(func() {
		trainStep(w, false, false, 0)
		w.alloc(main, "meanwhile", 3*mib)
		w.alloc(main, "late weight", 5*mib)
		trainStep(w, false, false, instrumented)
	})
	w.label("opened")
	w.tag(main, spool.TagParameter, "weight", "late weight")
	trainStep(w, false, true, instrumented)
	j := w.join()
	if j.AmbiguousTags != 0 || w.at["unbound"] != 0 {
		t.Fatalf("%d ambiguous tags, %d unbound: %v", j.AmbiguousTags, w.at["unbound"], j.Ambiguous)
	}
	w.expect(j, []expectation{ // each label has its position in the last step
		{"weight", lastLife, "opened", "parameters/tagged"},
		{"moment", lastLife, "opened", "optimizer_state/tagged"},
		{"workspace", lastLife, "opened", "workspace/lifetime"},
		{"meanwhile", lastLife, "opened", "untraced/lifetime"},
		{"late weight", lastLife, "opened", "parameters/tagged"},
		{"h", lastLife, "forward", "activations/tagged"},
		{"grad", lastLife, "after hook", "gradients/tagged"},
	})
	steps := j.Steps()
	if len(steps) != 5 {
		t.Fatalf("%d steps", len(steps))
	}
	for i, s := range steps {
		if want := i < 2 || i > 3; s.Recorded != want {
			t.Errorf("step %d: recorded %v, want %v", i, s.Recorded, want)
		}
	}
	gap := w.gaps[0].Seq
	if a := j.facts.device.Replay.Allocated; steps[1].EndSeq >= gap || steps[4].BeginSeq != gap ||
		*steps[4].AllocatedBegin != a[gap] || *steps[1].AllocatedEnd != a[steps[1].EndSeq] {
		t.Errorf("step 1 ends at %d, step 4 begins at %d, the gap is event %d", steps[1].EndSeq, steps[4].BeginSeq, gap)
	}
	partly := 0
	for _, p := range j.Phases() {
		if (p.Step == 2 || p.Step == 3) && (p.PeakBytes != nil || p.AllocatedEnd != nil) {
			t.Errorf("bytes of a phase that was not recorded: %+v", p)
		}
		// A phase that begins before a window and ends in it has no bytes. All other phases of a recorded step have
		// bytes.
		if recorded := p.Step != 2 && p.Step != 3 && p.Step >= 0 && p.Step < 5; recorded &&
			(p.PeakBytes == nil) != (p.EndSeq == 0) {
			t.Errorf("%+v", p)
		}
		if p.Step == 4 && p.EndSeq == 0 {
			partly++
		}
	}
	if partly == 0 {
		t.Error("no phase lies in part before the window")
	}
	for a := range j.Allocations() {
		if unknown := a.AllocSeq == gap; unknown != (a.Phase == "") || unknown && a.Step != -1 {
			t.Errorf("born in the gap: %v, yet %+v", unknown, a)
		}
	}
}

// A module's time excludes the modules that it calls. An interval of time belongs to the innermost call at the
// interval's beginning. In backward, an interval belongs to the enclosing module's backward if no inner module's
// backward is running. The modules' times sum to the phases' times.
func TestModuleTimes(t *testing.T) {
	w := newWorld(t)
	trainOn := func(mode uint8) {
		w.mode(mode)
		w.forward(func() {
			w.span(spool.ModuleBegin, main, 2, func() { w.span(spool.ModuleBegin, main, 3, func() {}) })
		})
		w.backward(0, func() {
			w.mark(engine, spool.ModuleBackwardBegin, 0, 2)
			w.mark(engine, spool.ModuleBackwardBegin, 0, 3)
			w.span(spool.SamplerBegin, engine, 3, func() {})
			w.mark(engine, spool.ModuleBackwardEnd, 0, 3)
			w.mark(engine, spool.ModuleBackwardEnd, 0, 2)
		})
		w.span(spool.OptimizerBegin, main, 1, func() {})
	}
	trainOn(instrumented)
	trainOn(bareMode)
	var intervals []spool.Interval
	for k := uint32(1); k < uint32(len(w.marks)); k++ {
		intervals = append(intervals, spool.Interval{BeginK: k, EndK: k + 1, NS: 100})
	}
	j := w.join(func(r *Rank) { r.Intervals = intervals })
	type row struct {
		phase  string
		module int64
		hook   bool
	}
	got, sums := map[row]int64{}, map[string]int64{}
	for _, m := range j.facts.context.ModuleTimes() {
		if m.Step != 0 {
			t.Errorf("a bare step has times of modules: %+v", m)
		}
		got[row{m.Phase, m.Module, m.DPHook}] += m.GPUNS
		sums[m.Phase] += m.GPUNS
	}
	want := map[row]int64{{"forward", 1, false}: 200, {"forward", 2, false}: 200, {"forward", 3, false}: 100,
		{"forward", 0, false}:  100,
		{"backward", 0, false}: 300, {"backward", 2, false}: 200, {"backward", 3, false}: 200,
		{"backward", 3, true}: 100, {"optimizer", 0, false}: 100, {"between", 0, false}: 100}
	for r, ns := range want {
		if got[r] != ns {
			t.Errorf("%+v: %d ns, want %d", r, got[r], ns)
		}
	}
	if len(got) != len(want) {
		t.Errorf("rows %v", got)
	}
	for _, p := range j.Phases() {
		if p.Step == 0 {
			sums[p.Phase] -= schemas.OrZero(p.GPUNS)
		}
	}
	for phase, left := range sums {
		if left != 0 {
			t.Errorf("%s: the modules' times are %d ns from the phase's", phase, left)
		}
	}
	untimed := w.join(func(r *Rank) { r.Intervals, r.Untimed = intervals, true })
	if len(untimed.facts.context.ModuleTimes()) != 0 {
		t.Error("a phantom GPU has no times")
	}
}

// If another thread tagged and freed a block while events were lost, the tag does not count as ambiguous, even if a new
// block now has the same address. The join does not know the freed block.
func TestTagInLostGap(t *testing.T) {
	const other = uint16(2)
	w := trained(t, instrumented)
	trainStep(w, false, true, instrumented)
	w.lost(func() {
		w.alloc(other, "short", 64*mib)
		w.tag(other, spool.TagOutput, "short")
		w.drop(other, "short")
		w.alloc(other, "new", 63*mib)
	})
	trainStep(w, false, true, instrumented)
	j := w.join()
	if a, b := w.blocks["short"][0], w.blocks["new"][0]; a.addr != b.addr {
		t.Fatalf("the blocks lie at %#x and %#x", a.addr, b.addr)
	}
	if j.AmbiguousTags != 0 || w.at["unbound"] != 0 {
		t.Errorf("%d ambiguous tags, %d unbound: %v", j.AmbiguousTags, w.at["unbound"], j.Ambiguous)
	}
}

// A tag does not count as unbound if its block was allocated and freed while events were lost. Events can be lost among
// the first events of a device, or between the last drain of a window and the mark that ends the window. A tag from
// before or after such a loss counts as unbound if no block has its address.
func TestTagOfUnseenBlockInLostGap(t *testing.T) {
	const other = uint16(2)
	unseen := func(w *world) {
		w.alloc(other, "short", 96*mib)
		w.tag(other, spool.TagOutput, "short")
		w.drop(other, "short")
		// the block's segment returns to the driver, and nothing uses its addresses again
		w.free = w.free[:len(w.free)-1]
	}
	never := func(w *world) {
		w.live["never"] = &block{segment: segment{0x7e0000000000, mib}, bytes: mib}
		w.tag(other, spool.TagOutput, "never")
		delete(w.live, "never")
	}
	for name, test := range map[string]struct {
		body    func(w *world)
		unbound int64
	}{
		"in the loss": {func(w *world) { w.lost(func() { unseen(w) }) }, 0},
		"in a loss before the first counters": {func(w *world) {
			w.lost(func() { unseen(w) })
			w.drains = w.drains[1:]
		}, 0},
		"between two windows": {func(w *world) { w.unrecordedAfter(func() { unseen(w) }, func() {}) }, 0},
		"before two windows":  {func(w *world) { never(w); w.unrecorded(func() {}) }, 1},
		"after two windows":   {func(w *world) { w.unrecorded(func() {}); never(w) }, 1},
		"before the loss":     {func(w *world) { never(w); w.lost(func() { unseen(w) }) }, 1},
		"after the loss":      {func(w *world) { w.lost(func() { unseen(w) }); never(w) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := trained(t, instrumented)
			trainStep(w, false, true, instrumented)
			test.body(w)
			trainStep(w, false, true, instrumented)
			if j := w.join(); j.AmbiguousTags != 0 || w.at["unbound"] != test.unbound {
				t.Errorf("%d ambiguous tags, %d unbound, not %d", j.AmbiguousTags, w.at["unbound"], test.unbound)
			}
		})
	}
}
