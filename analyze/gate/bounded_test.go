package gate

import (
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// A bounded peak passes a check only if all its possible values pass. A bounded peak exceeds the threshold only if all
// its possible values do.
func TestBoundedPeaks(t *testing.T) {
	thresholds, err := ParseThresholds([]string{"peak=1.05"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		now, high int64
		verdict   string
	}{{100, 104, VerdictOK}, {100, 106, VerdictUnchecked}, {106, 110, VerdictExceeded}} {
		base := schemas.BaselineExperiment{PeakBytes: new(int64(100))}
		now := schemas.BaselineExperiment{PeakBytes: &c.now, PeakHighBytes: &c.high}
		if got := compareMetric(&base, &now, &thresholds[0], 0); got.Verdict != c.verdict {
			t.Errorf("%d to %d: %s, want %s", c.now, c.high, got.Verdict, c.verdict)
		}
	}
}
