package timeline

import (
	"math/rand/v2"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// The memory at a mark equals a direct count at the last event before the mark. Each mark also states the difference
// from the previous mark of the same device.
func TestMarks(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 31))
		in, allocated := fixture.RandomRun(r)
		placed := 0
		for p, counts := range allocated {
			for seq := range int64(len(counts)) { // 0 is the moment before the first event
				for range r.IntN(3) {
					in.UserMarks = append(in.UserMarks, schemas.UserMark{Rank: p.Rank, Device: p.Device, Seq: seq, Label: "x"})
					placed++
				}
			}
		}
		run, err := Marks(in)
		if err != nil || len(run.Marks) != placed {
			t.Fatalf("seed %d: %d marks of %d, %v", seed, len(run.Marks), placed, err)
		}
		for p, counts := range allocated {
			var before *Mark
			for i := range run.Marks {
				m := &run.Marks[i]
				if m.Rank != p.Rank || m.Device != p.String() {
					continue
				}
				if m.Allocated != counts[m.At.Event] {
					t.Fatalf("seed %d: event %d: %d allocated, want %d", seed, m.At.Event, m.Allocated, counts[m.At.Event])
				}
				if (before == nil) != (m.Since == nil) || before != nil && before.Allocated+*m.Since != m.Allocated {
					t.Fatalf("seed %d: event %d: %+v after %+v", seed, m.At.Event, m, before)
				}
				before = m
			}
		}
	}
}
