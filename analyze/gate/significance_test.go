package gate

import (
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// If an experiment has several runs, its times exceed a threshold only if a rank test finds a difference from the
// baseline's times. With so few runs that no rank test could find a difference, the threshold alone decides. For bytes
// the threshold alone decides, too.
func TestTimesOfSeveralRuns(t *testing.T) {
	thresholds, err := ParseThresholds([]string{"time=1.05"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		base, now []float64
		verdict   string
		chance    bool
	}{
		{"all slower", []float64{100, 101, 102, 103, 104}, []float64{111, 112, 113, 114, 115}, VerdictExceeded, false},
		{"they overlap", []float64{90, 100, 101, 125, 130}, []float64{95, 99, 112, 120, 131}, VerdictOK, true},
		{"two runs each", []float64{100, 101}, []float64{120, 121}, VerdictExceeded, false},
		{"one run", nil, nil, VerdictExceeded, false},
		{"equal", []float64{100, 100, 100, 100}, []float64{100, 100, 100, 100}, VerdictOK, true},
	} {
		median := func(runs []float64, of float64) *schemas.BaselineTime {
			if len(runs) > 0 {
				of = runs[len(runs)/2]
			}
			return &schemas.BaselineTime{Median: of, Clock: "gpu", Runs: runs}
		}
		base := schemas.BaselineExperiment{Source: schemas.Measured, StepMS: median(c.base, 100)}
		now := schemas.BaselineExperiment{Source: schemas.Measured, StepMS: median(c.now, 120)}
		got := compareMetric(&base, &now, &thresholds[0], 0)
		chance := insignificant(c.base, c.now)
		if got.Verdict != c.verdict || (chance != nil) != c.chance {
			t.Errorf("%s: %s, chance %+v", c.what, got.Verdict, chance)
		}
	}
}
