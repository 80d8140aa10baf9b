package findings

import (
	"testing"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// What the agent found counts before the name of a tag; where neither is known, nothing is said.
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
