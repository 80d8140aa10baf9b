package join

import (
	"testing"

	"github.com/dpsight/dpsight/schemas/spool"
)

// The blocks that a DDP reducer allocates and keeps are its buckets, from birth on. A block that the reducer frees
// while it makes buckets is no bucket. A block of a reducer's call without an end mark is no bucket either.
func TestBuckets(t *testing.T) {
	w := newWorld(t)
	make := func(done bool, body func()) {
		w.mark(main, spool.Reducer, 0, uint64(w.name("DDP bucket")))
		body()
		if done {
			w.mark(main, spool.Reducer, 0, 0)
		}
	}
	make(true, func() { w.alloc(main, "bucket", 3*mib); w.alloc(main, "staged", kib); w.drop(main, "staged") })
	w.alloc(main, "after", 3*mib)
	w.label("made")
	for step := range 2 {
		w.forward(func() {
			if step == 1 {
				make(true, func() { w.alloc(main, "rebuilt", 3*mib); w.drop(main, "bucket") })
			}
			w.alloc(main, "h", 3*mib)
		})
		w.backward(0, func() {
			w.alloc(engine, "gradient", kib)
			// the gradient is a view into the bucket
			w.tag(engine, spool.TagGradient, []string{"bucket", "rebuilt"}[step])
			w.drop(engine, "h", "gradient")
		})
		w.update()
		w.label([]string{"first", "second"}[step])
	}
	make(false, func() { w.alloc(main, "broken", 3*mib) })
	w.label("end")
	j := w.join()
	w.expect(j, []expectation{
		{"bucket", 0, "made", "gradients/lifetime"}, {"bucket", 0, "first", "gradients/tagged"},
		{"after", 0, "made", "script/phase"},
		{"rebuilt", 0, "second", "gradients/tagged"}, {"broken", 0, "end", "script/phase"},
	})
	for _, o := range j.owners.all {
		if o.category == gradients && o.evidence == lifetime && j.facts.context.rank.Names[o.name] != "DDP bucket" {
			t.Errorf("%+v has the name %q", o, j.facts.context.rank.Names[o.name])
		}
	}
}
