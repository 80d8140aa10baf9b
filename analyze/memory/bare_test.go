package memory

import (
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// If a moment lies in a step without tags, its breakdown says where the categories come from, and names a moment with
// tags to look at instead.
func TestBareStepsSayWhereTheirCategoriesComeFrom(t *testing.T) {
	for _, c := range []struct {
		step *schemas.BareStep
		want Likeness
	}{
		{nil, Likeness{From: FromAnyAlike}},
		{&schemas.BareStep{Blocks: 4}, Likeness{From: FromNoneAlike}},
		{&schemas.BareStep{Like: new(int64(1)), How: schemas.LikeExact, Blocks: 4, Known: 4},
			Likeness{From: FromAlike, Like: 1, Blocks: 4, Known: 4}},
		{&schemas.BareStep{Like: new(int64(1)), How: schemas.LikeScaled, Blocks: 4, Known: 4},
			Likeness{From: FromAlikeInSizes, Like: 1, Blocks: 4, Known: 4}},
		{&schemas.BareStep{Like: new(int64(1)), How: schemas.LikeParts, Blocks: 4, Known: 3},
			Likeness{From: FromParts, Like: 1, Blocks: 4, Known: 3}},
	} {
		in := fixture.Hooked()
		v := &in.Report.Devices[0]
		v.InstrumentedPeakSeq = nil
		in.Steps[0].Instrumented = false
		in.Steps = append(in.Steps, schemas.Step{Step: 1, Recorded: true, Instrumented: true, BeginSeq: 6, EndSeq: 6})
		in.Owners[len(in.Owners)-1].Evidence = schemas.ByPhase // the evidence of 512 of the 4,096 bytes
		if c.step != nil {
			v.BareSteps = []schemas.BareStep{*c.step}
		}
		for _, at := range []At{{}, {Step: new(int64(0))}, {Event: new(int64(3))}} {
			run, err := Breakdown(in, at)
			if err != nil {
				t.Fatal(err)
			}
			if len(run.Devices[0].Remarks) != 1 {
				t.Fatalf("%s: %+v", at, run.Devices[0].Remarks)
			}
			phaseOnly := int64(512)
			if at.Event != nil {
				phaseOnly = 0
			}
			r := run.Devices[0].Remarks[0]
			want := Untagged{OnlyPeak: at.Event == nil, Likeness: c.want}
			if r.Kind != RemarkUntagged || *r.Untagged != want || r.PhaseOnlyBytes != phaseOnly ||
				r.AllocatedBytes != run.Devices[0].AllocatedBytes || r.Instead.String() != "step=1,phase=forward" {
				t.Errorf("%s: %+v, %+v", at, r, r.Untagged)
			}
		}
	}
	if run, err := Breakdown(fixture.Hooked(), At{}); err != nil || len(run.Devices[0].Remarks) > 0 {
		t.Errorf("a peak in a step with tags: %+v, %v", run.Devices[0].Remarks, err)
	}
}

// At.String returns the text with which a user requests the moment.
func TestMomentsAreNamedAsTheyAreRead(t *testing.T) {
	for _, name := range []string{"peak", "oom", "oom=2", "event=7", "step=3", "phase=forward", "step=0,phase=backward"} {
		if at, err := ParseAt(name); err != nil || at.String() != name {
			t.Errorf("%s: %s, %v", name, at, err)
		}
	}
}
