package predict

import (
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/schemas"
)

// If the measured or the predicted peak is bounded, the comparison states no error and no moved bytes. If the bounds of
// a peak are equal, the peak is known to the byte.
func TestAccuracyOfBoundedPeaks(t *testing.T) {
	const peak = 4000
	summary := func(source string, open int64) analyze.Summary {
		in := fixture.Sized("one", map[schemas.Category]int64{schemas.Activations: peak})
		in.Manifest.Source = source
		if open >= 0 {
			in.Report.Devices[0].PeakLowBytes, in.Report.Devices[0].PeakHighBytes = new(int64(peak)), new(peak+open)
		}
		return analyze.Summarize(in)
	}
	for _, c := range []struct {
		measured, predicted int64 // unknown bytes of each peak; -1 is an exact recording
		bounded             bool
	}{{-1, -1, false}, {0, 0, false}, {100, -1, true}, {-1, 100, true}, {100, 100, true}} {
		doc := Accuracy(gate.BaselineOf([]analyze.Summary{summary(schemas.Predicted, c.predicted)}, "test"),
			[]analyze.Summary{summary(schemas.Measured, c.measured)}, "predicted.json")
		x := &doc.Experiments[0]
		if a := &x.Allocated; a.Bounded() != c.bounded || (a.Error == nil) != c.bounded || *a.Measured != peak ||
			(a.MeasuredHigh != nil) != (c.measured > 0) || (a.PredictedHigh != nil) != (c.predicted > 0) {
			t.Errorf("%+v: %+v", c, a)
		}
		if (x.Moved == nil) != c.bounded || (doc.Allocated.Of == 0) != c.bounded || doc.Reserved.Of != 1 {
			t.Errorf("%+v: moved %v, errors of %d and %d experiments", c, x.Moved, doc.Allocated.Of, doc.Reserved.Of)
		}
	}
}
