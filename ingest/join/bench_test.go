package join

import (
	"testing"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
)

// A million events of alternating instrumented and bare steps: steps, join and rows; decoding, replay and disk are others'.
func BenchmarkJoin(b *testing.B) {
	w := newWorld(&testing.T{})
	w.alloc(main, "weight", 6*mib)
	for i := 0; w.events.Len() < 1_000_000; i++ {
		mode := uint8(instrumented)
		if i%2 == 0 {
			mode = bareMode
		}
		trainStep(w, i == 0, i%2 == 0, mode)
	}
	res, err := replay.Run(&w.events, replay.Settings{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		rank := &Rank{RunID: "run", Marks: w.marks, Tags: w.tags, Names: w.names, Steps: steps.Derive(w.marks, w.names)}
		joined, _ := Join(NewContext(rank), []Device{{Events: &w.events, Replay: res}})
		n := 0
		if err := joined[0].Allocations(func(rows []schemas.Allocation) error { n += len(rows); return nil }); err != nil {
			b.Fatal(err)
		}
		if err := joined[0].Owners(func(rows []schemas.Owner) error { n += len(rows); return nil }); err != nil {
			b.Fatal(err)
		}
		joined[0].Phases()
		joined[0].Steps()
		if joined[0].AmbiguousTags > 0 {
			b.Fatal(joined[0].Ambiguous)
		}
	}
	b.ReportMetric(float64(w.events.Len())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}
