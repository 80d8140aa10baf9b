package join

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// A search for holders finds what keeps blocks alive, and names the blocks by their addresses. If a complete search at
// the end of a step does not name a block, only C++ keeps that block, unless the block's category says what keeps it.
// For a model's block, the tables have a holder only if an exception keeps the block.
func TestHolders(t *testing.T) {
	w := newWorld(t)
	w.alloc(main, "weight", 3*mib)
	w.alloc(main, "kept", 4*mib)
	w.alloc(main, "gone", 5*mib)
	w.tag(main, spool.TagParameter, "weight")
	w.drop(main, "gone")
	w.alloc(main, "later", 5*mib) // this block gets the address of the freed block
	info := func(path string, view int64, name string) spool.HolderInfo {
		b := w.live[name]
		return spool.HolderInfo{Address: b.addr, Bytes: b.bytes, View: view, Kind: schemas.HeldByPython, Path: path}
	}
	look := func(moment schemas.HolderMoment, complete bool, blocks ...spool.HolderInfo) spool.HoldersInfo {
		k := w.mark(main, spool.Holders, 0, 0)
		return spool.HoldersInfo{K: k, Moment: moment, Complete: complete, Blocks: blocks}
	}
	failing := info("exception caught at train.py:31 → frame of fit() → local model.weight", 0, "weight")
	failing.Kind = schemas.HeldByException
	looks := []spool.HoldersInfo{
		look(schemas.HeldAtStep, false, info("local x of f()", 0, "kept"), info("global weight", 0, "weight")),
		look(schemas.HeldAtOOM, true, failing),
		look(schemas.HeldAtStep, true, info("global kept[0]", mib, "kept")),
		look(schemas.HeldAtExit, true, spool.HolderInfo{Address: 1 << 40, Bytes: 1, Path: "global none"}),
	}
	w.drop(main, "kept")
	j := w.join(func(r *Rank) { r.Holders = looks })
	var got []string
	for _, h := range j.Holders() {
		got = append(got, fmt.Sprintf("%d %s %s %q %d", h.AllocID, h.Moment, h.Kind, h.Path, h.ViewBytes))
	}
	want := []string{`1 oom exception "exception caught at train.py:31 → frame of fit() → local model.weight" 0`,
		`2 step python "local x of f()" 0`, fmt.Sprintf(`2 step python "global kept[0]" %d`, mib),
		`4 step native "" 0`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
