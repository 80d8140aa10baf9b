package examples_test

import (
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
		var sums []analyze.Summary
		for _, r := range runs {
			tab, err := store.Load(r, store.WantAll)
			if err != nil {
				b.Fatal(err)
			}
			sums = append(sums, analyze.Summarize(analyze.Input(*tab)))
		}
		if _, err := report.Write(dir, report.Model{Title: "benchmark", Study: analyze.NewStudy(sums, &sums[0])}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(highWater(b), "peak-MiB")
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
