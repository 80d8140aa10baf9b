package join

import (
	"testing"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// A block has the dtype of the tensors in it that have tags. A block of a bare step has the dtype of its match in an
// instrumented step.
func TestDTypes(t *testing.T) {
	w := newWorld(t)
	w.alloc(main, "weight", 6*mib)
	w.alloc(main, "plain", 8*kib)
	w.alloc(main, "seen twice", 16*kib)
	w.alloc(main, "seen as two", 32*kib)
	w.tag(main, spool.TagNoise, "seen twice", "seen twice", "seen as two", "seen as two")
	trainStep(w, true, true, instrumented)
	trainStep(w, false, true, bareMode)
	trainStep(w, false, false, bareMode)
	of := map[string]spool.DType{"weight": 1, "h": 4, "gs": 1, "seen twice": 5}
	seen := 0
	for i := range w.tags {
		tag := &w.tags[i]
		for name, d := range of {
			for _, b := range w.blocks[name] {
				if b.addr == tag.Address && b.bytes == tag.Bytes && !tag.Untag {
					tag.DType = d
				}
			}
		}
		if b := w.blocks["seen as two"][0]; b.addr == tag.Address && b.bytes == tag.Bytes {
			seen++
			tag.DType = spool.DType(seen)
		}
	}
	bySeq := map[int64]string{}
	for a := range w.join().Allocations() {
		bySeq[a.AllocSeq] = a.DType
	}
	for name, want := range map[string]string{"weight": "float32", "h": "bfloat16", "gs": "float32", "plain": "",
		"scratch":    "",
		"seen twice": "int64", "seen as two": schemas.MixedDTypes} {
		for n, b := range w.blocks[name] {
			if d := bySeq[b.born]; d != want {
				t.Errorf("%s, life %d: dtype %q, want %q", name, n, d, want)
			}
		}
	}
	if n := len(w.blocks["gs"]); n != 3 {
		t.Errorf("%d lives of gs: no bare step is looked at", n)
	}
}
