package examples_test

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/paper"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// The limits for a report on the headline store: 1 s for three methods with their bare runs and 1.5 s for all seven,
// on two cores. Machines differ and may be busy, so the benchmark compares a report's CPU time with the time that
// parquet-go takes to read the rows of three tables in the same process. The limits are twice the ratios that were
// measured on a machine where reports took 0.5 and 1.2 s.
const (
	reportCores  = 2
	reportMemory = 300e6 / float64(1<<20) // MiB of the process
	threeShare   = 1.7
	allShare     = 0.75
	paperShare   = 1.0 // of a paper of all seven methods, which took 1.4 s
)

// BenchmarkReport measures the whole of "dpsight report": reading the runs' tables, analysing, drawing and writing.
// BenchmarkReport fails if a limit of time or memory is exceeded.
func BenchmarkReport(b *testing.B) {
	b.Run("three", func(b *testing.B) {
		benchmarkReport(b, threeShare, func(r store.Run) bool {
			return slices.Contains([]any{"vanilla", "dpsgd", "ghost"}, r.Manifest.Params["method"])
		})
	})
	b.Run("all", func(b *testing.B) { benchmarkReport(b, allShare, func(store.Run) bool { return true }) })
}

func benchmarkReport(b *testing.B, limit float64, of func(store.Run) bool) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(reportCores))
	runs, _, err := store.Open(headline).Runs()
	runs = slices.DeleteFunc(runs, func(r store.Run) bool { return !of(r) })
	if err != nil || len(runs) < 6 {
		b.Fatalf("%d runs, %v", len(runs), err)
	}
	dir := b.TempDir()
	var ours, peer time.Duration
	fastest := time.Hour
	for b.Loop() {
		before, began := cpuTime(b), time.Now()
		sums, ladders := reduced(b, runs)
		if _, err := report.Write(dir, report.Model{Title: "benchmark", Study: compare.NewStudy(sums, &sums[0]),
			Ladders: ladders}); err != nil {
			b.Fatal(err)
		}
		ours, fastest = ours+cpuTime(b)-before, min(fastest, time.Since(began))
	}
	memory := highWater(b)
	for range b.N {
		before := cpuTime(b)
		readRows(b, runs)
		peer += cpuTime(b) - before
	}
	share := ours.Seconds() / peer.Seconds()
	b.ReportMetric(fastest.Seconds(), "fastest-s/op")
	b.ReportMetric(ours.Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(share, "of-parquet-go's-rows")
	b.ReportMetric(memory, "peak-MiB")
	if share > limit {
		b.Errorf("a report takes %.2f times the CPU time of reading its rows, at most %.2f", share, limit)
	}
	if memory > reportMemory {
		b.Errorf("a report takes %.0f MiB, at most %.0f", memory, reportMemory)
	}
}

// BenchmarkReportPaper measures the whole of "dpsight paper" with its default width and theme. BenchmarkReportPaper
// fails if a limit of time or memory is exceeded.
func BenchmarkReportPaper(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(reportCores))
	runs, _, err := store.Open(headline).Runs()
	if err != nil {
		b.Fatal(err)
	}
	quiet := func(string) {}
	source := selected.Source{Store: headline, Named: true, Say: quiet, Note: quiet, Warn: quiet}
	dir := b.TempDir()
	var ours, peer time.Duration
	fastest := time.Hour
	for b.Loop() {
		before, began := cpuTime(b), time.Now()
		config, err := paper.ReadConfig("", dir, false)
		if err != nil {
			b.Fatal(err)
		}
		m, err := source.Paper(nil, "", config)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := paper.Write(dir, m); err != nil {
			b.Fatal(err)
		}
		ours, fastest = ours+cpuTime(b)-before, min(fastest, time.Since(began))
	}
	memory := highWater(b)
	for range b.N {
		before := cpuTime(b)
		readRows(b, runs)
		peer += cpuTime(b) - before
	}
	share := ours.Seconds() / peer.Seconds()
	b.ReportMetric(fastest.Seconds(), "fastest-s/op")
	b.ReportMetric(ours.Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(share, "of-parquet-go's-rows")
	b.ReportMetric(memory, "peak-MiB")
	if share > paperShare {
		b.Errorf("a paper takes %.2f times the CPU time of reading its rows, at most %.2f", share, paperShare)
	}
	if memory > reportMemory {
		b.Errorf("a paper takes %.0f MiB, at most %.0f", memory, reportMemory)
	}
}

// readRows makes parquet-go read every row of the largest tables that a report needs, as a measure of the machine's
// speed.
func readRows(b *testing.B, runs []store.Run) {
	for _, r := range runs {
		_, err := schemas.Events.ReadOptional(r.Dir)
		_, err2 := schemas.Allocations.ReadOptional(r.Dir)
		_, err3 := schemas.Owners.ReadOptional(r.Dir)
		if err := errors.Join(err, err2, err3); err != nil {
			b.Fatal(err)
		}
	}
}

// cpuTime returns the CPU time of the process so far, on all cores.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// highWater returns the process's highest resident memory in MiB.
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
