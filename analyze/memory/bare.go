package memory

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

// BareNote says how categories are known at a moment in a step without tags; empty for any other moment.
func BareNote(in *schemas.Tables, p identity.Place, at Moment) string {
	if at.Step == nil {
		return ""
	}
	s := bareStep(in, p, *at.Step)
	if s == nil {
		return ""
	}
	lead := fmt.Sprintf("step %d has no tags", s.Step)
	if v := identity.Verdict(in, p); v != nil && v.InstrumentedPeakSeq == nil && at.Event == v.PeakSeq {
		lead = fmt.Sprintf("only step %d, which has no tags, reached the peak", s.Step)
	}
	return fmt.Sprintf("%s: %s: %s", p, lead, Likeness(in, p, s.Step))
}

// bareBreakdown adds to that how much is known by phase only, and where to look instead.
func bareBreakdown(in *schemas.Tables, p identity.Place, d *DeviceBreakdown) string {
	note := BareNote(in, p, d.At)
	if note == "" || d.AllocatedBytes == 0 {
		return note
	}
	var phaseOnly int64
	for _, c := range d.Categories {
		phaseOnly += c.PhaseOnlyBytes
	}
	note += fmt.Sprintf("; %s of what is allocated is known by phase only", prose.Share(float64(phaseOnly),
		float64(d.AllocatedBytes)))
	if near := nearestTagged(in, p, *d.At.Step); near >= 0 {
		at := fmt.Sprintf("--at step=%d", near)
		if d.At.Phase != nil {
			at += ",phase=" + *d.At.Phase
		}
		note += fmt.Sprintf(" (%s breaks down a step with tags)", at)
	}
	return note
}

// bareStep is a recorded step without tags, or nil.
func bareStep(in *schemas.Tables, p identity.Place, step int64) *schemas.Step {
	i := slices.IndexFunc(in.Steps, func(s schemas.Step) bool {
		return s.Rank == p.Rank && s.Device == p.Device && s.Step == step && s.Recorded && !s.Instrumented
	})
	if i < 0 {
		return nil
	}
	return &in.Steps[i]
}

// Likeness says where the categories of a bare step come from.
func Likeness(in *schemas.Tables, p identity.Place, step int64) string {
	v := identity.Verdict(in, p)
	if v == nil {
		return "what was made in it is known by lifetime and phase only"
	}
	i := slices.IndexFunc(v.BareSteps, func(b schemas.BareStep) bool { return b.Step == step })
	if i < 0 { // an older recording, or a long one
		return "its categories come from a step with tags, where one allocated alike, else from lifetime and phase"
	}
	b := &v.BareSteps[i]
	if b.Like == nil {
		return "no step with tags allocated alike, and what was made in it is known by lifetime and phase only"
	}
	var text string
	switch b.How {
	case schemas.LikeScaled:
		text = fmt.Sprintf("its categories are those of step %d, which made the same allocations in other sizes",
			*b.Like)
	case schemas.LikeParts:
		text = fmt.Sprintf("its categories are put together from parts of step %d and of steps around it that did "+
			"the same", *b.Like)
	default:
		text = fmt.Sprintf("its categories are those of step %d, which made the same allocations", *b.Like)
	}
	if b.Known < b.Blocks {
		text += fmt.Sprintf(" (%d of %d blocks; the others are known by lifetime and phase only)", b.Known, b.Blocks)
	}
	return text
}

// nearestTagged is the recorded step with tags that lies nearest, the earlier of two; -1 = none.
func nearestTagged(in *schemas.Tables, p identity.Place, step int64) int64 {
	near := int64(-1)
	distance := func(n int64) int64 { return max(n-step, step-n) }
	for i := range in.Steps {
		s := &in.Steps[i]
		if s.Rank == p.Rank && s.Device == p.Device && s.Recorded && s.Instrumented &&
			(near < 0 || distance(s.Step) < distance(near)) {
			near = s.Step
		}
	}
	return near
}
