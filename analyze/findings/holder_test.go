package findings

import (
	"testing"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// If the agent found the holder of a block, this holder takes precedence over the name in a tag. If neither is known,
// the finding states no holder.
func TestHolderOfABlock(t *testing.T) {
	in := schemas.Tables{Allocations: []schemas.Allocation{{AllocID: 1}, {AllocID: 2}, {AllocID: 3}},
		Holders: []schemas.Holder{{AllocID: 1, Kind: schemas.HeldByGraph,
			Path: "global losses[3] → grad_fn → saved tensor of MulBackward0"}}}
	for id := range int64(2) {
		in.Owners = append(in.Owners, schemas.Owner{AllocID: id + 1, Category: schemas.Script, Name: "global kept",
			Evidence: schemas.Tagged})
	}
	x := &evidence{l: memory.NewLedger(&in, identity.Place{}), holders: memory.NewHolders(&in, identity.Place{})}
	for i, want := range []string{"global losses[*] → grad_fn", "global kept", ""} {
		if got := x.holder(i, 1); got != want {
			t.Errorf("block %d: %q, want %q", i+1, got, want)
		}
	}
}

// The agent may report one reference cycle as several holders, one for each object of the cycle. If together they hold
// most of the bytes, the finding names the largest of these holders.
func TestCirclesAreOneHolder(t *testing.T) {
	circle := func(id int64, path string) schemas.Holder {
		return schemas.Holder{AllocID: id, Kind: schemas.HeldByCycle, Path: path}
	}
	for _, c := range []struct {
		sizes  [3]int64 // bytes of the cycle's first object, of its second, and of the global's tensor
		cycle  bool
		holder string
	}{
		{[3]int64{40, 30, 50}, true, "cycle of Node.x"},
		{[3]int64{30, 40, 50}, true, "cycle of Tensor"},
		{[3]int64{20, 20, 50}, false, "global kept"},
		{[3]int64{0, 90, 50}, true, "cycle of Tensor"},
	} {
		in := schemas.Tables{Holders: []schemas.Holder{circle(1, "cycle of Node.x"), circle(2, "cycle of Tensor"),
			{AllocID: 3, Kind: schemas.HeldByPython, Path: "global kept"}}}
		for i, bytes := range c.sizes {
			in.Allocations = append(in.Allocations, schemas.Allocation{AllocID: int64(i) + 1, RequestedBytes: bytes})
		}
		x := &evidence{in: &in, l: memory.NewLedger(&in, identity.Place{}),
			holders: memory.NewHolders(&in, identity.Place{}), modules: memory.NewModuleIndex(&in, 0)}
		f := Finding{At: &memory.Moment{Event: 1}}
		x.line(&f, func(_ int, a *schemas.Allocation) int64 { return a.RequestedBytes })
		if f.Cycle != c.cycle || f.Holder != c.holder {
			t.Errorf("%v: %t, %q; want %t, %q", c.sizes, f.Cycle, f.Holder, c.cycle, c.holder)
		}
	}
}

// The agent may find a holder for only a part of the bytes. If a tag of the script names the same container for other
// bytes, these bytes count under the same holder.
func TestTagsAndHoldersAreOneHolder(t *testing.T) {
	for _, c := range []struct{ path, tag, want string }{
		{"Net.history[3]", "history", "Net.history[*]"},
		{"Net.blocks[1].history['a'][3]", "history", "Net.blocks[*].history['a'][*]"},
		{"global kept[3]", "global kept", "global kept[*]"},
		{"Net.prehistory[3]", "history", ""},
		{"Net.history[3]", "other", ""},
	} {
		in := schemas.Tables{Allocations: []schemas.Allocation{{AllocID: 1, RequestedBytes: 25},
			{AllocID: 2, RequestedBytes: 17}, {AllocID: 3, RequestedBytes: 35}},
			Holders: []schemas.Holder{{AllocID: 1, Kind: schemas.HeldByPython, Path: c.path}},
			Owners:  []schemas.Owner{{AllocID: 2, Category: schemas.Script, Name: c.tag, Evidence: schemas.Tagged}}}
		x := &evidence{in: &in, l: memory.NewLedger(&in, identity.Place{}),
			holders: memory.NewHolders(&in, identity.Place{}), modules: memory.NewModuleIndex(&in, 0)}
		f := Finding{At: &memory.Moment{Event: 1}}
		x.line(&f, func(_ int, a *schemas.Allocation) int64 { return a.RequestedBytes })
		if f.Holder != c.want {
			t.Errorf("%s with tag %s: %q, want %q", c.path, c.tag, f.Holder, c.want)
		}
	}
}
