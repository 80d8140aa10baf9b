package examples_test

import (
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/ranks"
	"github.com/dpsight/dpsight/schemas"
)

// In the recording, two ranks trained on two H200s (ranks.py in the store), and rank 1 kept 32 MiB at each step.
// dpsight names that rank as the outlier, with the category and the line, and has the finding growth for it.
func TestRankOnTwoGPUs(t *testing.T) {
	const kept = 32 << 20
	for e := range runsOf(t, filepath.Join("..", "analyze", "ranks", "testdata", "two-gpus")) {
		for i := range e.in.Report.Devices {
			v := &e.in.Report.Devices[i]
			if v.Verdict != schemas.Exact || v.MissingEvents != 0 || v.ResidueBytes != 0 {
				t.Errorf("rank %d: %s, %d events missing, residue %d", v.Rank, v.Verdict, v.MissingEvents, v.ResidueBytes)
			}
		}
		run, err := ranks.Of(e.in)
		if err != nil || len(run.Ranks) != 2 || run.Outlier == nil {
			t.Fatalf("%d ranks, outlier %v, %v", len(run.Ranks), run.Outlier, err)
		}
		// The peak is in the last update, after 39 steps have kept 32 MiB each.
		if o := run.Outlier; o.Rank != 1 || o.DeltaBytes != 39*kept || o.Categories[0].Category != schemas.Script ||
			o.Categories[0].DeltaBytes != 39*kept || o.Lines[0].Line != "ranks.py:21" || o.Lines[0].DeltaBytes != 39*kept {
			t.Errorf("the outlier is %+v", o)
		}
		var grown []findings.Finding
		for _, f := range findings.Find([]findings.Checked{findings.CheckRun(e.in)}, nil).Runs[0].Findings {
			switch f.ID {
			case findings.Growth:
				grown = append(grown, f)
			case findings.KeptGradients: // buckets of DDP outlive zero_grad, but the script keeps no gradients
				t.Errorf("%d bytes of gradients are kept, of a script that frees them", *f.Bytes)
			}
		}
		if len(grown) != 1 || grown[0].Rank == nil || *grown[0].Rank != 1 || grown[0].Line == nil ||
			grown[0].Line.Line.Number != 21 {
			t.Errorf("growth: %+v", grown)
		}
	}
}
