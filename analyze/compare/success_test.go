package compare_test

import (
	"testing"

	"github.com/dpsight/dpsight/analyze"
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

func TestSuccess(t *testing.T) {
	run := func(id, method, status string, peak int64, step float64) analyze.Summary {
		s := analyze.Summary{Identity: identity.Identity{RunID: id, Name: "run " + id, Status: status,
			Params: map[string]any{}}}
		if method != "" {
			s.Params["method"] = method
		}
		if status != schemas.StatusOK {
			s.Reason = "why " + id
		}
		if peak > 0 {
			s.PeakBytes = &peak
		}
		if step > 0 {
			s.StepMS = &timing.Interval{Median: step}
		}
		return s
	}
	doc := Success([]analyze.Summary{
		run("a", "ghost", schemas.StatusOK, 100, 2),
		run("b", "vanilla", schemas.StatusOK, 50, 1),
		run("c", "ghost", schemas.StatusOOM, 999, 9),
		run("d", "ghost", schemas.StatusOK, 301, 4),
		run("e", "", schemas.StatusTimeout, 0, 0),
		run("f", "vanilla", schemas.StatusOK, 0, 0),
	})
	if doc.Schema != SuccessSchema || doc.Runs != 6 || doc.OK != 4 || len(doc.Methods) != 3 {
		t.Fatalf("%+v", doc)
	}
	ghost, vanilla, script := doc.Methods[0], doc.Methods[1], doc.Methods[2]
	if ghost.Method != "ghost" || ghost.Runs != 3 || ghost.OK != 2 || ghost.SuccessRate != 2.0/3 ||
		*ghost.MeanPeakBytes != 200 || *ghost.MeanStepMS != 3 {
		t.Errorf("what failed is in no mean: %+v", ghost)
	}
	if f := ghost.Failures; len(f) != 1 || f[0].RunID != "c" || f[0].Status != schemas.StatusOOM ||
		f[0].Reason != "why c" || f[0].Log != "c/stderr.log" || *f[0].PeakBytes != 999 {
		t.Errorf("%+v", f)
	}
	if vanilla.SuccessRate != 1 || *vanilla.MeanPeakBytes != 50 || *vanilla.MeanStepMS != 1 ||
		len(vanilla.Failures) != 0 {
		t.Errorf("%+v", vanilla)
	}
	if script.Method != "run e" || script.OK != 0 || script.MeanPeakBytes != nil || script.MeanStepMS != nil {
		t.Errorf("a command without a method is under its name: %+v", script)
	}
	measured, predicted := run("g", "ghost", schemas.StatusOK, 100, 2), run("h", "ghost", schemas.StatusOK, 300, 0)
	measured.Source, predicted.Source, predicted.Profile = schemas.Measured, schemas.Predicted, new("h200")
	other := run("i", "ghost", schemas.StatusOK, 500, 0)
	other.Source, other.Profile = schemas.Predicted, new("a100")
	if rows := Success([]analyze.Summary{measured, predicted, other}).Methods; len(rows) != 3 ||
		*rows[0].MeanPeakBytes != 100 || *rows[1].MeanPeakBytes != 300 ||
		rows[0].Badge() != "" || rows[1].Badge() != "predicted (phantom h200)" {
		t.Errorf("measured and predicted peaks have no mean: %+v", rows)
	}
	bare := run("k", "ghost", schemas.StatusOK, 100, 2)
	bare.Params["bare"] = true
	if row := Success([]analyze.Summary{run("j", "ghost", schemas.StatusOK, 100, 2), bare}).Methods[0]; row.Runs != 2 ||
		row.Bare != 1 {
		t.Errorf("%d runs, %d bare", row.Runs, row.Bare)
	}
	if none := Success(nil); none.Methods == nil {
		t.Errorf("%+v", none)
	}
}
