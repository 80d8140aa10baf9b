package examples_test

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas/store"
)

// What a report on the headline store may take on two cores: a second for three methods with their bare runs, a second and a half for
// all seven. CPU time is what is held to that: it is no less than what a report takes, and a machine that does other things too makes
// it little longer.
const (
	reportCores  = 2
	reportMemory = 300e6 / float64(1<<20) // MiB, of the process
)

// BenchmarkReport is the whole of "dpsight report": the tables of the runs read, analysed, drawn and written. It fails over the
// limits.
func BenchmarkReport(b *testing.B) {
	b.Run("three", func(b *testing.B) {
		benchmarkReport(b, time.Second, func(r store.Run) bool {
			return slices.Contains([]any{"vanilla", "dpsgd", "ghost"}, r.Manifest.Params["method"])
		})
	})
	b.Run("all", func(b *testing.B) {
		benchmarkReport(b, 1500*time.Millisecond, func(store.Run) bool { return true })
	})
}

func benchmarkReport(b *testing.B, limit time.Duration, of func(store.Run) bool) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(reportCores))
	runs, _, err := store.Open(headline).Runs()
	runs = slices.DeleteFunc(runs, func(r store.Run) bool { return !of(r) })
	if err != nil || len(runs) < 6 {
		b.Fatalf("%d runs, %v", len(runs), err)
	}
	dir := b.TempDir()
	before := cpuTime(b)
	for b.Loop() {
		sums, ladders := reduced(b, runs)
		if _, err := report.Write(dir, report.Model{Title: "benchmark", Study: analyze.NewStudy(sums, &sums[0]), Ladders: ladders}); err != nil {
			b.Fatal(err)
		}
	}
	each, memory := (cpuTime(b)-before)/time.Duration(b.N), highWater(b)
	b.ReportMetric(each.Seconds(), "cpu-s/op")
	b.ReportMetric(memory, "peak-MiB")
	if each > limit {
		b.Errorf("a report takes %s of CPU time, at most %s", each, limit)
	}
	if memory > reportMemory {
		b.Errorf("a report takes %.0f MiB, at most %.0f", memory, reportMemory)
	}
}

// cpuTime is what the process has taken of all cores.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// highWater is the process's highest resident memory in MiB.
func highWater(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
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
	b.Fatal("the kernel does not say the process's highest resident memory")
	return 0
}
