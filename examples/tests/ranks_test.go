package examples_test

import (
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/ranks"
	"github.com/dpsight/dpsight/schemas"
)

// Two ranks trained on two H200s, each on a card of its own (ranks.py in the store). The rank that keeps 32 MiB a step
// is named, with the category and the line, and its growth is found.
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
		// The peak is in the last update: 39 steps before it have kept theirs.
		if o := run.Outlier; o.Rank != 1 || o.DeltaBytes != 39*kept || o.Categories[0].Category != schemas.Script ||
			o.Categories[0].DeltaBytes != 39*kept || o.Lines[0].Line != "ranks.py:21" || o.Lines[0].DeltaBytes != 39*kept {
			t.Errorf("the outlier is %+v", o)
		}
		var grown []findings.Finding // DDP's buckets outlive zero_grad, and are no gradients that the script keeps
		for _, f := range findings.Find([]findings.Checked{findings.CheckRun(e.in)}, nil).Runs[0].Findings {
			switch f.ID {
			case findings.Growth:
				grown = append(grown, f)
			case findings.KeptGradients:
				t.Errorf("%d bytes of gradients are kept, of a script that frees them", *f.Bytes)
			}
		}
		if len(grown) != 1 || grown[0].Rank == nil || *grown[0].Rank != 1 || grown[0].Line == nil ||
			grown[0].Line.Line.Number != 21 {
			t.Errorf("growth: %+v", grown)
		}
	}
}
