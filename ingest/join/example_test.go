package join_test

import (
	"fmt"
	"log"

	"github.com/dpsight/dpsight/ingest/join"
	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// The example joins a training step of one linear layer, reduced to four blocks of memory. The agent's marks say when
// forward, backward and the update ran, and each event of the allocator carries the number of the mark before the
// event. Two tags say which tensors lie at which address. The categories of the two blocks without a tag follow from
// the moments at which the blocks were allocated and freed. Block 3 has two owners, one after the other. Inside
// backward it is an activation gradient, until autograd hands it over as the weight's gradient.
func Example() {
	const recorded = spool.FlagInstrumented | spool.FlagRecording
	marks := []spool.Mark{
		{Kind: spool.Start}, {Kind: spool.CudaReady}, {Kind: spool.Mode, Flags: recorded},
		{Kind: spool.ForwardBegin, Flags: spool.FlagGrad | spool.FlagTraining},
		{Kind: spool.Tags},
		{Kind: spool.ForwardEnd, Flags: spool.FlagGrad | spool.FlagTraining | spool.FlagDifferentiable},
		{Kind: spool.BackwardBegin, Flags: spool.FlagAccumulate},
		{Kind: spool.Tags},
		{Kind: spool.BackwardEnd},
		{Kind: spool.OptimizerBegin}, {Kind: spool.OptimizerEnd},
		{Kind: spool.StepEnd},
	}
	for i := range marks {
		marks[i].K = uint32(i + 1)
	}
	names := map[uint32]string{1: "fc.weight"}
	tags := []spool.Tag{
		{K: 5, Kind: spool.TagParameter, Address: 0x10000, Bytes: 4096, Name: 1},
		{K: 8, Kind: spool.TagGradient, Address: 0x12000, Bytes: 4096, Name: 1},
	}

	var events schemas.EventColumns
	event := func(action schemas.Action, address uint64, bytes int64, mark uint32) {
		events.Append(action, address, bytes, 0, 0, mark, 0, 0)
	}
	event(schemas.ActionSegmentAlloc, 0x10000, 2<<20, 3)
	event(schemas.ActionAlloc, 0x10000, 4096, 3)
	event(schemas.ActionAlloc, 0x11000, 2048, 4) // allocated in forward, freed in backward
	event(schemas.ActionAlloc, 0x12000, 4096, 7)
	event(schemas.ActionFreeRequested, 0x11000, 2048, 7)
	event(schemas.ActionFreeCompleted, 0x11000, 2048, 7)
	event(schemas.ActionAlloc, 0x13000, 1024, 10) // allocated and freed in the update
	event(schemas.ActionFreeRequested, 0x13000, 1024, 10)
	event(schemas.ActionFreeCompleted, 0x13000, 1024, 10)

	replayed, err := replay.Run(&events, replay.Settings{}, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	rank := &join.Rank{Marks: marks, Tags: tags, Names: names, Steps: steps.Derive(marks, names)}
	results, _ := join.Join(join.NewContext(rank), []join.Device{{Events: &events, Replay: replayed}})
	for o := range results[0].Owners() {
		fmt.Printf("block %d after event %d: %s (%s)\n", o.AllocID, o.BeginSeq, o.Category, o.Evidence)
	}
	// Output:
	// block 1 after event 2: parameters (tagged)
	// block 2 after event 3: activations (lifetime)
	// block 3 after event 6: gradients (tagged)
	// block 3 after event 4: activation_gradients (lifetime)
	// block 4 after event 7: optimizer_temporaries (lifetime)
}
