package analyze

import (
	"math"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
)

// The table of phases has no GPU time of recompute, which bare steps have in backward's: it says so, and how much it is
// where modules were timed.
func TestPhasesSayWhereRecomputeIs(t *testing.T) {
	in := fixture.TimedModules()
	// 24 of 88, of 74
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
		in.Phases[i].GPUNS = 0
	}
	if got := Phases(in).Remarks; len(got) > 0 {
		t.Errorf("without any times %+v", got)
	}
}
