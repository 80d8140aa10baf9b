package examples_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas/store"
)

// BenchmarkReport is the whole of "dpsight report examples/headline": the tables of its runs read, analysed, drawn and written.
// It reports the process's highest resident memory as well.
func BenchmarkReport(b *testing.B) {
	runs, _, err := store.Open(headline).Runs()
	if err != nil || len(runs) == 0 {
		b.Fatalf("%d runs, %v", len(runs), err)
	}
	dir := b.TempDir()
	for b.Loop() {
		sums, ladders := reduced(b, runs)
		if _, err := report.Write(dir, report.Model{Title: "benchmark", Study: analyze.NewStudy(sums, &sums[0]), Ladders: ladders}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(highWater(b), "peak-MiB")
}

// reduced is what a report needs of runs.
func reduced(t testing.TB, runs []store.Run) ([]analyze.Summary, map[string]analyze.LadderRun) {
	t.Helper()
	var sums []analyze.Summary
	ladders := map[string]analyze.LadderRun{}
	for _, r := range runs {
		tab, err := store.Load(r, store.WantAll|store.WantClock)
		if err != nil {
			t.Fatal(err)
		}
		in := analyze.Input(*tab)
		sums = append(sums, analyze.Summarize(in))
		if len(in.Samples) == 0 {
			continue
		}
		// A bare run has a ladder without categories, and an error that says so.
		var none *analyze.NoEventsError
		if ladders[r.ID], err = analyze.Ladder(in); err != nil && !errors.As(err, &none) {
			t.Fatal(err)
		}
	}
	return sums, ladders
}

// highWater is the process's highest resident memory in MiB; 0 where the kernel does not say.
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
