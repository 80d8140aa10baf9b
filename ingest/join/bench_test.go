package join

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas/spool"
)

// BenchmarkJoin joins the events of alternating instrumented and bare steps of a model with a hundred modules. The
// benchmark has a mark or tag for each seventh event; recordings have one for each second to tenth event. The measured
// time covers the packages steps and join and the making of rows, without decoding, replay and disk. The reported
// highest resident memory is the whole process's, so it includes the events, the replay and the join.
//
// Batch sizes may differ from step to step, so that no two steps are exactly alike. Kernels may then take buffers that
// depend on the batch size, so the join has to match each step by parts of several other steps.
//
// For ten million events, the join may take 10 s and 2 GB on two cores, if garbage is collected as often as in dpsight
// ingest. The benchmark limits the cores, since Go's garbage collector would otherwise use further cores.
func BenchmarkJoin(b *testing.B) {
	for _, steps := range []string{"equal", "scaled", "unequal"} {
		for _, million := range []int{1, 10} {
			b.Run(fmt.Sprintf("%s/%dM", steps, million), func(b *testing.B) {
				benchmarkJoin(b, million*1_000_000, steps)
			})
		}
	}
}

// deepStep simulates a training step in which each module allocates and frees as a transformer's module does. odd
// reports whether the backward of a module needs an additional temporary.
func deepStep(w *world, tags bool, next uint8, batch int64, odd func(module int) bool) {
	const modules, forward, backward = 100, 3, 6
	temporaries := func(th uint16, n int) {
		for range n {
			w.alloc(th, "temporary", batch*kib)
			w.drop(th, "temporary")
		}
	}
	span := func(kind spool.Kind, th uint16, module int, body func()) {
		if tags {
			w.span(kind, th, uint64(module+1), body)
		} else {
			body()
		}
	}
	tag := func(th uint16, kind spool.TagKind, name string) {
		if tags {
			w.tag(th, kind, name)
		}
	}
	name := func(what string, module int) string { return what + strconv.Itoa(module) }
	w.forward(func() {
		for m := range modules {
			span(spool.ModuleBegin, main, m, func() {
				temporaries(main, forward)
				w.alloc(main, name("activation", m), batch*64*kib)
				tag(main, spool.TagHookActivation, name("activation", m))
				tag(main, spool.TagSavedTensor, name("activation", m))
			})
		}
	})
	w.backward(0, func() {
		for m := modules - 1; m >= 0; m-- {
			span(spool.ModuleBackwardBegin, engine, m, func() {
				temporaries(engine, backward)
				if odd(m) {
					temporaries(engine, 1)
				}
				w.alloc(engine, name("gradient", m), 6*mib)
				tag(engine, spool.TagGradient, name("gradient", m))
				w.drop(engine, name("activation", m))
			})
		}
	})
	w.span(spool.OptimizerBegin, main, 1, func() { temporaries(main, modules) })
	w.mode(next)
	w.span(spool.ZeroGradBegin, main, 0, func() {
		for m := range modules {
			w.drop(main, name("gradient", m))
		}
	})
}

func benchmarkJoin(b *testing.B, events int, varies string) {
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0))))
	w := newWorld(&testing.T{})
	for i := 0; w.events.Len() < events; i++ {
		mode := uint8(instrumented)
		if i%2 == 0 {
			mode = bareMode
		}
		batch, odd := int64(64), func(int) bool { return false }
		if varies != "equal" {
			batch += int64(i*37%50) - 25
		}
		if varies == "unequal" {
			odd = func(module int) bool { return (module*7+i*13)%19 == 0 }
		}
		deepStep(w, i%2 == 0, mode, batch, odd)
		clear(w.blocks) // only the lookups of tests need the blocks, which take a hundred bytes an event
	}
	res, err := replay.Run(&w.events, replay.Settings{}, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	before := highWater(b)
	b.ReportAllocs()
	for b.Loop() {
		rank := &Rank{RunID: "run", Marks: w.marks, Tags: w.tags, Names: w.names, Steps: steps.Derive(w.marks, w.names)}
		joined, _ := Join(NewContext(rank), []Device{{Events: &w.events, Replay: res}})
		n := 0
		for range joined[0].Allocations() {
			n++
		}
		for range joined[0].Owners() {
			n++
		}
		joined[0].Phases()
		joined[0].Steps()
		if joined[0].AmbiguousTags > 0 {
			b.Fatal(joined[0].Ambiguous)
		}
	}
	b.ReportMetric(float64(w.events.Len())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(before, "peak-before-MiB")
	high := highWater(b)
	b.ReportMetric(high, "peak-MiB")
	if each := b.Elapsed() / time.Duration(b.N); each > 10*time.Second || high*1024*1024 > 2e9 {
		b.Errorf("%d events took %s and %.0f MiB", w.events.Len(), each, high)
	}
}

// highWater returns the process's highest resident memory in MiB. highWater returns 0 if the kernel does not state the
// highest resident memory.
func highWater(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib / 1024
		}
	}
	return 0
}
