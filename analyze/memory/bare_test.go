package memory

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// A moment in a step without tags says where its categories come from, and where to look instead.
func TestBareStepsSayWhereTheirCategoriesComeFrom(t *testing.T) {
	for _, c := range []struct {
		step *schemas.BareStep
		want string
	}{
		{nil, "where one allocated alike, else from lifetime and phase"},
		{&schemas.BareStep{Blocks: 4}, "no step with tags allocated alike, and what was made in it is known by " +
			"lifetime and phase only"},
		{&schemas.BareStep{Like: new(int64(1)), How: schemas.LikeExact, Blocks: 4, Known: 4},
			"those of step 1, which made the same allocations;"},
		{&schemas.BareStep{Like: new(int64(1)), How: schemas.LikeScaled, Blocks: 4, Known: 4},
			"those of step 1, which made the same allocations in other sizes;"},
		{&schemas.BareStep{Like: new(int64(1)), How: schemas.LikeParts, Blocks: 4, Known: 3},
			"put together from parts of step 1 and of steps around it that did the same (3 of 4 blocks; the others"},
	} {
		in := fixture.Hooked()
		v := &in.Report.Devices[0]
		v.InstrumentedPeakSeq = nil
		in.Steps[0].Instrumented = false
		in.Steps = append(in.Steps, schemas.Step{Step: 1, Recorded: true, Instrumented: true, BeginSeq: 6, EndSeq: 6})
		in.Owners[len(in.Owners)-1].Evidence = schemas.ByPhase // 512 of 4,096 bytes
		if c.step != nil {
			v.BareSteps = []schemas.BareStep{*c.step}
		}
		for _, at := range []At{{}, {Step: new(int64(0))}, {Event: new(int64(3))}} {
			run, err := Breakdown(in, at)
			if err != nil {
				t.Fatal(err)
			}
			lead, share := "only step 0, which has no tags, reached the peak: ",
				"; 13 % of what is allocated is known by phase only"
			if at.Event != nil {
				lead, share = "step 0 has no tags: ", "; 0 %"
			}
			w := run.Devices[0].Warnings
			if len(w) != 1 || !strings.HasPrefix(w[0], "cuda:0: "+lead) || !strings.Contains(w[0], c.want) ||
				!strings.Contains(w[0], share) ||
				!strings.HasSuffix(w[0], " (--at step=1,phase=forward breaks down a step with tags)") {
				t.Errorf("%+v: %q", at, w)
			}
		}
	}
	if run, err := Breakdown(fixture.Hooked(), At{}); err != nil || len(run.Devices[0].Warnings) > 0 {
		t.Errorf("a peak in a step with tags: %v, %v", run.Devices[0].Warnings, err)
	}
}
