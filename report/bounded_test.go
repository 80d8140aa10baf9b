package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// boundedRun returns a run whose peak is at least 4 MiB and at most 5 MiB.
func boundedRun(source string) schemas.Tables {
	in := fixture.Sized("one", map[schemas.Category]int64{schemas.Activations: 4 << 20})
	in.Manifest.Source, in.Manifest.Phantom = source, &schemas.Phantom{Checked: true, CheckedTorch: "2.11.0"}
	in.Manifest.Environment = &schemas.Environment{Torch: "2.11.0"}
	in.Report.Prediction = &schemas.Prediction{Complete: true}
	d := &in.Report.Devices[0]
	d.Verdict, d.Reason, d.TorchPeakAllocatedBytes = schemas.Bounded, "recording began late", nil
	d.PeakLowBytes, d.PeakHighBytes = new(int64(4<<20)), new(int64(5<<20))
	in.Confidence = Confidence(in.Manifest, in.Report)
	return in
}

// The tables of a prediction, and those that compare predictions with measurements, say that a peak is bounded. The CSV
// and JSON forms of these tables say that a peak is bounded, too.
func TestBoundedPredictionsSayIt(t *testing.T) {
	in := boundedRun(schemas.Predicted)
	if c := in.Confidence; c.Level != schemas.Indicative || !strings.HasPrefix(c.Reasons[0], "the peak is bounded: ") {
		t.Errorf("confidence %+v", c)
	}
	runs := []analyze.Summary{analyze.Summarize(in), analyze.Summarize(boundedRun(schemas.Measured))}
	accuracy := AccuracyTable(predict.Accuracy(gate.BaselineOf(runs[:1], "test"), runs[1:], "predicted.json"))
	for what, tables := range map[string][]table.Table{
		"predict":  PredictionTables(predict.NewPredictionDocument(predict.Predict(in))),
		"accuracy": {accuracy},
	} {
		for format, want := range map[string]string{"csv": schemas.Bounded, "json": `_high`,
			"table": "the peak is at least 4.00 MiB and at most 5.00 MiB"} {
			var out bytes.Buffer
			if err := table.Write(&out, format, tables...); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s, %s, has no %q:\n%s", what, format, want, out.String())
			}
		}
	}
}

// A finding that compares runs with bounded peaks states its figures as bounds.
func TestBoundedRunsInFindings(t *testing.T) {
	trial := &findings.Trial{Run: &analyze.Summary{}, Runs: 1, PeakBytes: 4 << 20, AtMost: true}
	if got := trialPeakWords(trial); got != "at most 4.00 MiB" {
		t.Errorf("%q", got)
	}
	told := tellFinding(&findings.Finding{ID: findings.RepeatsPeak, Facts: findings.RepeatsPeakFacts{Repeats: 2,
		LowRun: "a", HighRun: "b", LowBytes: 1 << 20, HighBytes: 2 << 20, Bounded: true}})
	if !strings.HasSuffix(told.Sentence, "Some of these peaks are bounded, so the difference is at least that.") {
		t.Errorf("%q", told.Sentence)
	}
}
