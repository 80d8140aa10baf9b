package examples_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/schemas"
)

// Of the scripts that show how exact predictions are, docs/accuracy.md reads files of figures. Those of every recording that is kept
// whole are the recording's own, and each experiment of a suite is there: measured on a real GPU in the one file, predicted in the other.
func TestRecordedFigures(t *testing.T) {
	for half, plans := range map[string][]string{"first": {"accuracy-first", "accuracy-ranks"}, "second": {"accuracy-second", "accuracy-ranks-second"}} {
		figures := map[string]map[string]schemas.BaselineExperiment{}
		for kind, source := range map[string]string{"recorded": schemas.Measured, "predicted": schemas.Predicted} {
			b, err := schemas.ReadBaseline(filepath.Join("accuracy", kind+"-"+half+".json"))
			if err != nil {
				t.Fatal(err)
			}
			figures[kind] = map[string]schemas.BaselineExperiment{}
			for _, x := range b.Experiments {
				figures[kind][*x.Key] = x
				if x.Source != source {
					t.Errorf("%s of the %s half: %s is %s", kind, half, x.Name, x.Source)
				}
			}
			for _, name := range plans {
				for _, x := range planOf(t, filepath.Join("suites", name+".yaml")).Experiments {
					if _, ok := figures[kind][x.Key]; !ok {
						t.Errorf("%s of the %s half: nothing of %s", kind, half, x.Name)
					}
				}
			}
		}
		whole := 0
		for e := range runsOf(t, "accuracy-"+half) {
			fresh := analyze.BaselineOf([]analyze.Summary{analyze.Summarize(e.in)}, "").Experiments[0]
			got, _ := json.Marshal(fresh)
			want, _ := json.Marshal(figures["recorded"][e.Manifest.Suite.Key])
			if string(got) != string(want) {
				t.Errorf("%s: the recording has\n%s, the file\n%s", e.ID, got, want)
			}
			whole++
		}
		if whole == 0 {
			t.Errorf("no recording of the %s half is kept", half)
		}
		// What is called exact is exact.
		for key, p := range figures["predicted"] {
			m := figures["recorded"][key]
			if p.Confidence == schemas.ExactExpected && m.PeakBytes != nil && *p.PeakBytes != *m.PeakBytes {
				t.Errorf("%s is called %s and is %d bytes off", p.Name, p.Confidence, *p.PeakBytes-*m.PeakBytes)
			}
		}
	}
}
