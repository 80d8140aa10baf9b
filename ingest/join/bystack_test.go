package join

import (
	"testing"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/stackrules"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
)

// The history has two steps and no tags. Only the roles of stacks show what the blocks are for. In this test, the id of
// a block's stack is the number of the stack's role.
func TestOwnByStack(t *testing.T) {
	const (
		setup     = uint32(stackrules.Setup)
		data      = uint32(stackrules.Data)
		forward   = uint32(stackrules.Forward)
		backward  = uint32(stackrules.Backward)
		optimizer = uint32(stackrules.Optimizer)
		perSample = uint32(stackrules.PerSample)
		script    = uint32(stackrules.Workspace) + 1 // no rule gives this stack a role
	)
	var e schemas.EventColumns
	next := uint64(1 << 20)
	segment := func(size int64) {
		e.Append(schemas.ActionSegmentAlloc, next, size, 0, 0, 0, 0, 0)
	}
	segment(256 << 20)
	alloc := func(stack uint32, size int64) (addr uint64) {
		addr, next = next, next+uint64((size+511)/512*512)
		e.Append(schemas.ActionAlloc, addr, size, 0, 0, 0, stack, 0)
		return addr
	}
	free := func(stack uint32, addr uint64, size int64) {
		e.Append(schemas.ActionFreeRequested, addr, size, 0, 0, 0, stack, 0)
		e.Append(schemas.ActionFreeCompleted, addr, size, 0, 0, 0, stack, 0)
	}
	want := map[uint64]schemas.Category{}
	weight := alloc(setup, 1000)
	want[weight] = schemas.Parameters
	copied := alloc(setup, 1000) // a temporary copy, from which the weight is made
	free(setup, copied, 1000)
	want[copied] = schemas.Other
	workspace := alloc(forward, 1<<20)
	want[workspace] = schemas.Workspace
	var kept uint64
	for range 2 {
		batch := alloc(data, 3000)
		want[batch] = schemas.Inputs
		temporary := alloc(forward, 500)
		want[temporary] = schemas.ForwardTemporaries
		saved := alloc(forward, 700)
		want[saved] = schemas.Activations
		free(forward, temporary, 500)
		if kept == 0 {
			kept = alloc(forward, 900) // the script keeps it
			want[kept] = schemas.Other
		}
		through := alloc(backward, 600)
		want[through] = schemas.ActivationGradients
		samples := alloc(perSample, 800)
		want[samples] = schemas.PerSampleGradients
		gradient := alloc(backward, 1000)
		want[gradient] = schemas.Gradients
		free(backward, saved, 700)
		free(backward, through, 600)
		state := alloc(optimizer, 2000)
		want[state] = schemas.OptimizerState
		scratch := alloc(optimizer, 1000)
		want[scratch] = schemas.OptimizerTemporaries
		free(optimizer, scratch, 1000)
		free(optimizer, samples, 800)
		free(0, gradient, 1000)
		free(0, batch, 3000)
	}
	want[alloc(script, 100)] = schemas.Other // a block that the script allocates, for example for a log
	joined := joinByStack(t, &e, nil)
	owners := map[int64]schemas.Owner{}
	for o := range joined.Owners() {
		if before, ok := owners[o.AllocID]; ok {
			t.Errorf("two owners: %+v, %+v", before, o)
		}
		owners[o.AllocID] = o
	}
	for a := range joined.Allocations() {
		o := owners[a.AllocID]
		evidence := schemas.ByStack
		if want[a.Address] == schemas.Other {
			evidence = schemas.ByPhase
		}
		if o.Category != want[a.Address] || o.Evidence != evidence {
			t.Errorf("%d bytes at event %d: %s by %s, want %s", a.RequestedBytes, a.AllocSeq, o.Category, o.Evidence,
				want[a.Address])
		}
	}
	shares := joined.SharesAt(int64(e.Len()))
	if got, want := shares, (Shares{Stack: 1000 + 1<<20 + 4000, Other: 1000}); got != want {
		t.Errorf("shares at the end: %+v, want %+v", got, want)
	}
}

// joinByStack joins a history in which the id of a stack is the number of its role.
func joinByStack(t *testing.T, e *schemas.EventColumns, survivors map[uint64]uint32) *Result {
	t.Helper()
	res, err := replay.Run(e, replay.Settings{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	meanings := make([]stackrules.Meaning, int(stackrules.Workspace)+2) // the last stack has no role
	for i := range meanings[:len(meanings)-1] {
		meanings[i].Role = stackrules.Role(i)
	}
	ctx := NewContext(&Rank{Steps: steps.Derive(nil, nil), Untimed: true})
	joined, _ := Join(ctx, []Device{{Events: e, Replay: res, Meanings: meanings, Survivors: survivors}})
	return joined[0]
}

// ownersOf returns the owners of a history's blocks, by the blocks' addresses.
func ownersOf(joined *Result) map[uint64]schemas.Owner {
	addresses := map[int64]uint64{}
	for a := range joined.Allocations() {
		addresses[a.AllocID] = a.Address
	}
	owners := map[uint64]schemas.Owner{}
	for o := range joined.Owners() {
		owners[addresses[o.AllocID]] = o
	}
	return owners
}

// torch may record stacks only for its list of blocks, and not for events. In this case, a block in the list gets its
// owner from its stack, and any other block is other.
func TestOwnByStackOfTheList(t *testing.T) {
	var e schemas.EventColumns
	const first, second = 1 << 20, 1<<20 + 1024
	e.Append(schemas.ActionSegmentAlloc, first, 2<<20, 0, 0, 0, 0, 0)
	e.Append(schemas.ActionAlloc, first, 1000, 0, 0, 0, 0, 0)
	e.Append(schemas.ActionAlloc, second, 1000, 0, 0, 0, 0, 0)
	e.Append(schemas.ActionSnapshot, 0, 0, 0, 0, 0, 0, 0)
	owners := ownersOf(joinByStack(t, &e, map[uint64]uint32{first: uint32(stackrules.Setup)}))
	if c := owners[first].Category; c != schemas.Parameters {
		t.Errorf("a block with a stack in the list: %s", c)
	}
	if c := owners[second].Category; c != schemas.Other {
		t.Errorf("a block without: %s", c)
	}
}

// If no backward pass is recorded, a block of forward is an activation if a module's call does not free it. The event
// with which torch takes the snapshot has no stack, and does not count as a backward pass.
func TestOwnByStackOfAForward(t *testing.T) {
	var e schemas.EventColumns
	const kept, temporary, saved = 1 << 20, 1<<20 + 1024, 1<<20 + 2048
	forward, data := uint32(stackrules.Forward), uint32(stackrules.Data)
	e.Append(schemas.ActionSegmentAlloc, kept, 2<<20, 0, 0, 0, 0, 0)
	e.Append(schemas.ActionAlloc, kept, 1000, 0, 0, 0, forward, 0)
	e.Append(schemas.ActionAlloc, temporary, 1000, 0, 0, 0, forward, 0)
	e.Append(schemas.ActionAlloc, saved, 1000, 0, 0, 0, forward, 0)
	e.Append(schemas.ActionFreeRequested, temporary, 1000, 0, 0, 0, forward, 0)
	e.Append(schemas.ActionFreeCompleted, temporary, 1000, 0, 0, 0, forward, 0)
	e.Append(schemas.ActionFreeRequested, saved, 1000, 0, 0, 0, data, 0)
	e.Append(schemas.ActionFreeCompleted, saved, 1000, 0, 0, 0, data, 0)
	e.Append(schemas.ActionSnapshot, 0, 0, 0, 0, 0, 0, 0)
	want := map[uint64]schemas.Category{kept: schemas.Activations, temporary: schemas.ForwardTemporaries,
		saved: schemas.Activations}
	owners := ownersOf(joinByStack(t, &e, nil))
	for address, c := range want {
		if got := owners[address].Category; got != c {
			t.Errorf("%#x: %s, want %s", address, got, c)
		}
	}
}
