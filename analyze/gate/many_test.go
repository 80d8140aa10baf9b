package gate

import (
	"fmt"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
)

// BenchmarkCheckOfManyExperiments checks 10,000 experiments with one run each.
func BenchmarkCheckOfManyExperiments(b *testing.B) {
	runs := make([]analyze.Summary, 10_000)
	for i := range runs {
		runs[i] = summaries.Ran(fmt.Sprint(i), "ghost", int64(1000+i))
		runs[i].Params = map[string]any{"method": "ghost", "seed": i}
	}
	thresholds, err := ParseThresholds(DefaultThresholds)
	if err != nil {
		b.Fatal(err)
	}
	baseline := BaselineOf(runs, "")
	for b.Loop() {
		if r := Check(baseline, runs, Options{Thresholds: thresholds}); !r.OK {
			b.Fatal(r.Nothing)
		}
	}
}
