package replay

import (
	"math/rand/v2"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// training returns events as training steps make them. A forward pass keeps blocks, and a backward pass frees these in
// reverse and allocates temporaries. The model of the allocator is slow, so it runs only four steps, and training
// repeats the events of the last step.
func training(events int) *schemas.EventColumns {
	m := newModel()
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		m.malloc(4<<20+rnd.Int64N(8<<20), 0)
	}
	sizes := make([]int64, 300)
	for i := range sizes {
		sizes[i] = []int64{1 + rnd.Int64N(4096), 4096 + rnd.Int64N(1<<20), 1<<20 + rnd.Int64N(39<<20)}[rnd.IntN(3)]
	}
	step := func() {
		var saved []*mblock
		for i, n := range sizes {
			saved = append(saved, m.malloc(n, 0))
			if i%3 == 0 {
				m.release(m.malloc(sizes[(i*7)%len(sizes)]/2+1, 0))
			}
		}
		for i := len(saved) - 1; i >= 0; i-- {
			t := m.malloc(saved[i].requested, 0)
			m.release(saved[i])
			m.release(t)
		}
	}
	for range 3 {
		step()
	}
	// Each further step begins and ends with the same memory, so its events can be repeated.
	from := m.trace.Len()
	step()
	for n := m.trace.Len(); m.trace.Len() < events; {
		again := m.trace.Part(from, n)
		m.trace.AppendAll(&again)
	}
	return &m.trace
}

func BenchmarkRun(b *testing.B) {
	e := training(2 << 20)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		res, err := Run(e, Settings{}, nil, nil)
		if err != nil || res.Anomalies != (Anomalies{}) {
			b.Fatal(err, res.Anomalies.Reason())
		}
	}
	b.ReportMetric(float64(e.Len())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(e.Len()), "ns/event")
}
