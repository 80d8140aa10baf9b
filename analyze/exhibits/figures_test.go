package exhibits_test

import (
	"testing"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/schemas"
)

// In the matrix of activations, all bytes that belong to no module of the model are one row. The bytes that the loss
// saved have a separate row. The operations of a linear layer are one column.
func TestRowsOfMatrix(t *testing.T) {
	for _, c := range []struct{ role, op, row, column string }{
		{"other", "NllLossBackward0", "loss", "NllLossBackward0"},
		{"other", "LogSoftmaxBackward0", "loss", "LogSoftmaxBackward0"},
		{"other", "not an activation", "", "not an activation"},
		{schemas.SharedByModules, "", "", ""},
		{"mlp", "AddmmBackward0", "mlp", "LinearBackward0"},
		{"head", "MmBackward0", "head", "LinearBackward0"},
		{"head", "LogSoftmaxBackward0", "head", "LogSoftmaxBackward0"},
	} {
		cell := exhibits.MatrixCell{Role: c.role, Op: c.op}
		if cell.Row() != c.row || cell.Column() != c.column {
			t.Errorf("%+v: %q, %q", c, cell.Row(), cell.Column())
		}
	}
	m := exhibits.Matrix{Rows: []string{"mlp", ""}, Columns: []string{"LinearBackward0", ""}, Cells: []exhibits.MatrixCell{
		{"mlp", "MmBackward0", 2}, {"mlp", "AddmmBackward0", 3}, {"other", "", 4}, {schemas.SharedByModules, "", 5}}}
	if got := m.Sum("mlp", "LinearBackward0"); got != 5 {
		t.Errorf("linear: %d", got)
	}
	if got := m.Largest(); got != (exhibits.MatrixCell{Bytes: 9}) {
		t.Errorf("largest: %+v", got)
	}
}

// The cause of a peak is a category. Among the categories that rise in the peak's phase, the cause is the one with the
// largest increase over the baseline, or else the one that rises most. If no category rises, the cause is the category
// with the largest increase over the baseline. Without a baseline, the cause is the largest of the categories that only
// some trainings have.
func TestCauseOfPeak(t *testing.T) {
	s := exhibits.Step{DeviceTimeline: timeline.DeviceTimeline{Categories: []timeline.CategoryMaximum{
		{Category: schemas.Parameters, AtPeakBytes: 90}, {Category: schemas.PerSampleGradients, AtPeakBytes: 10},
		{Category: schemas.ActivationGradients, AtPeakBytes: 40}}}}
	changes := []compare.CategoryDelta{{Category: schemas.PerSampleGradients, DeltaBytes: 10},
		{Category: schemas.ActivationGradients, DeltaBytes: -5}}
	compared := exhibits.Entry{Cell: &compare.Cell{Overhead: &compare.OverheadRun{Categories: changes}}}
	if got := s.Cause(&compared); got != schemas.PerSampleGradients {
		t.Errorf("over a baseline: %s", got)
	}
	if got := s.Cause(&exhibits.Entry{Cell: &compare.Cell{}}); got != schemas.ActivationGradients {
		t.Errorf("alone: %s", got)
	}
	s.Rises = map[schemas.Category]int64{schemas.Parameters: 0, schemas.PerSampleGradients: -3,
		schemas.ActivationGradients: 2}
	if got := s.Cause(&compared); got != schemas.ActivationGradients {
		t.Errorf("in its phase: %s", got)
	}
	s.Rises = map[schemas.Category]int64{schemas.ActivationGradients: -2}
	if got := s.Cause(&compared); got != schemas.PerSampleGradients {
		t.Errorf("none rises: %s", got)
	}
}
