package analyze

import (
	"math"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// The table of phases has no GPU time of recompute, because bare steps include this time in backward. A remark says
// that backward includes recompute. If modules were timed, the remark also gives the time of recompute.
func TestPhasesSayWhereRecomputeIs(t *testing.T) {
	in := fixture.TimedModules()
	// Recompute takes 24 of 88 ms in an instrumented step. Backward takes 74 ms in a bare step, so recompute's share is
	// 20.18 ms.
	if got := Phases(in).Remarks; len(got) != 1 || got[0].Kind != RemarkRecompute || got[0].Rank != nil ||
		math.Abs(*got[0].MS-20.18) > 0.01 {
		t.Errorf("%+v", got)
	}
	in.ModuleTimes = nil
	if got := Phases(in).Remarks; !slices.Equal(got, []Remark{{Kind: RemarkRecompute}}) {
		t.Errorf("without times of modules %+v", got)
	}
	for i := range in.Steps {
		in.Steps[i].GPUNS = 0
	}
	for i := range in.Phases {
		in.Phases[i].GPUNS = nil
	}
	if got := Phases(in).Remarks; len(got) > 0 {
		t.Errorf("without any times %+v", got)
	}
}

// If an imported file has only figures, its phases show a figure of 0, and leave out figures that the file does not
// have.
func TestPhasesOfFigures(t *testing.T) {
	in := schemas.Tables{Manifest: &schemas.Manifest{Source: schemas.Imported,
		Import: &schemas.Import{Kind: schemas.ImportStages}},
		Report: &schemas.IngestReport{Devices: []schemas.DeviceVerdict{{}}},
		Phases: []schemas.Phase{{Phase: "load", AllocatedBegin: new(int64(0)), PeakBytes: new(int64(0))}}}
	row := Phases(in).Phases[0]
	if row.AllocatedBeginBytes == nil || row.PeakBytes == nil || row.LowestPeakBytes == nil ||
		row.AllocatedEndBytes != nil {
		t.Errorf("%+v", row)
	}
	in.Phases = append(in.Phases, schemas.Phase{Phase: "load", AllocatedEnd: new(int64(7))})
	if row := Phases(in).Phases[0]; row.PeakBytes == nil || row.LowestPeakBytes != nil || row.AllocatedEndBytes != nil {
		t.Errorf("the peak of one of two: %+v", row)
	}
	in.Manifest.Import.Kind, in.Report.Devices[0].Events = schemas.ImportSnapshot, 1
	if row := Phases(in).Phases[0]; row.AllocatedBeginBytes == nil || row.LowestPeakBytes == nil {
		t.Errorf("recorded: %+v", row)
	}
}
