package report_test

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/screen"
)

// endingOf returns what dpsight prints at the end of a run, on a terminal of 80 columns.
func endingOf(t *testing.T, in schemas.Tables, p *predict.PredictionRun) string {
	t.Helper()
	t.Setenv("COLUMNS", "80")
	checked := findings.CheckRun(in)
	found := findings.Find([]findings.Checked{checked}, nil)
	e := report.Ending{Run: &checked.Summary, Found: &found.Runs[0], Prediction: p, Dir: "runs/peak"}
	var b strings.Builder
	if err := table.Write(screen.On(&b, false), "table", report.EndingTable(e)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// At the end of a run dpsight prints what matters most. What matters most is the peak, the categories that hold it with
// their evidence, and the findings that save most.
func TestEnding(t *testing.T) {
	in := manyParts()
	in.Manifest.Name = "train"
	const want = `train [predicted (phantom)]
   peak   1,892.00 MiB allocated in step 0
   fits   yes: a card keeps 64.00 MiB free
   holds  per-sample gradients 400.00 MiB (21 %), parameters 300.00 MiB (16 %),
          activations 200.00 MiB (11 %), clip temporaries 200.00 MiB (11 %),
          workspace 192.00 MiB (10 %), others 600.00 MiB
   known  89 % by tag, 5 % by lifetime, 5 % not known; the replay is lossy
   time   none: nothing is computed on a phantom GPU
   1.     Head and loss hold 6 blocks of the output's size: 800.00 MiB
          [output-copies]; a change saves at most 700.00 MiB of the peak
          allocated, 37 %
   2.     Each sample has a gradient of the whole embedding: 400.00 MiB
          [per-sample-embedding]; a change saves at most 400.00 MiB of the peak
          allocated, 21 %
   more   dpsight findings, breakdown or report -o FOLDER of runs/peak; -v
          prints all tables
`
	got := endingOf(t, in, &predict.PredictionRun{Fits: new(true), GPU: "a card", SpareBytes: new(int64(64 << 20))})
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// If a run lacks a peak, times or findings, its ending gives the reason.
func TestEndingOfLittle(t *testing.T) {
	in := fixture.PeakOf(fixture.Part{Category: schemas.Parameters, Bytes: 1 << 20})
	in.Manifest.Source, in.Steps = schemas.Measured, nil
	got := endingOf(t, in, nil)
	for _, want := range []string{"\n   time    none: no step was timed\n",
		"\n   known   100 % by tag; the replay equals torch's counters\n",
		"\n   change  nothing that is looked for is above its threshold\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	in = schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Name: "r", Source: schemas.Measured}}
	if got := endingOf(t, in, nil); !strings.Contains(got, "   peak  not known: ") {
		t.Error(got)
	}
	timed := endingOf(t, fixture.Sampled("slow", 3, 0), nil)
	if !strings.Contains(timed, "   time  12.0 ms a step (10.0 ms to 14.0 ms in 6 steps)\n") {
		t.Error(timed)
	}
}
