package memory

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// Untagged says how categories are known at a moment in a step without tags.
type Untagged struct {
	identity.Place
	Step     int64
	OnlyPeak bool // the moment is the peak, and no step with tags reached its height
	Likeness
}

// UntaggedAt returns nil unless the moment lies in a step without tags.
func UntaggedAt(in *schemas.Tables, p identity.Place, at Moment) *Untagged {
	if at.Step == nil {
		return nil
	}
	s := bareStep(in, p, *at.Step)
	if s == nil {
		return nil
	}
	u := UntaggedStep(in, p, s.Step)
	v := identity.Verdict(in, p)
	u.OnlyPeak = v != nil && v.InstrumentedPeakSeq == nil && at.Event == v.PeakSeq
	return u
}

// UntaggedStep returns how categories are known in a step without tags; nil for a step with tags.
func UntaggedStep(in *schemas.Tables, p identity.Place, step int64) *Untagged {
	return &Untagged{Place: p, Step: step, Likeness: likeness(in, p, step)}
}

// untaggedRemark returns a remark for a moment in a step without tags: how many bytes are known only by phase, and
// which moment to look at instead. untaggedRemark returns nil for any other moment.
func untaggedRemark(in *schemas.Tables, p identity.Place, d *DeviceBreakdown) *Remark {
	u := UntaggedAt(in, p, d.At)
	if u == nil {
		return nil
	}
	r := &Remark{Kind: RemarkUntagged, Untagged: u, AllocatedBytes: d.AllocatedBytes}
	for _, c := range d.Categories {
		r.PhaseOnlyBytes += c.PhaseOnlyBytes
	}
	if near := nearestTagged(in, p, *d.At.Step); near >= 0 {
		r.Instead = &At{Step: &near}
		if d.At.Phase != nil {
			r.Instead.Phase = *d.At.Phase
		}
	}
	return r
}

// bareStep returns the step with a number if it was recorded without tags, or else nil.
func bareStep(in *schemas.Tables, p identity.Place, step int64) *schemas.Step {
	i := slices.IndexFunc(in.Steps, func(s schemas.Step) bool {
		return s.Rank == p.Rank && s.Device == p.Device && s.Step == step && s.Recorded && !s.Instrumented
	})
	if i < 0 {
		return nil
	}
	return &in.Steps[i]
}

// Likeness says from which step with tags the categories of a step without tags come.
type Likeness struct {
	From   LikenessFrom
	Like   int64 // the step with tags that made like allocations, if there is one
	Blocks int64 // number of blocks of the step
	Known  int64 // number of blocks whose categories come from Like; the others are known by lifetime and phase only
}

// LikenessFrom says what the categories of a step without tags are derived from.
type LikenessFrom int

// With FromLifetimes, FromAnyAlike and FromNoneAlike, Like names no step.
const (
	FromLifetimes    LikenessFrom = iota // categories come from lifetime and phase: nothing was matched
	FromAnyAlike                         // categories come from some step with tags; the report does not tell which
	FromNoneAlike                        // categories come from lifetime and phase: no step with tags allocated alike
	FromAlike                            // categories come from Like, which made the same allocations
	FromAlikeInSizes                     // categories come from Like, which made the same allocations in other sizes
	FromParts                            // categories come from parts of Like and of steps around it
)

// likeness finds in ingest's report from where the categories of a step without tags come.
func likeness(in *schemas.Tables, p identity.Place, step int64) Likeness {
	v := identity.Verdict(in, p)
	if v == nil {
		return Likeness{From: FromLifetimes}
	}
	i := slices.IndexFunc(v.BareSteps, func(b schemas.BareStep) bool { return b.Step == step })
	if i < 0 { // the recording is an older one, or a long one
		return Likeness{From: FromAnyAlike}
	}
	b := &v.BareSteps[i]
	if b.Like == nil {
		return Likeness{From: FromNoneAlike}
	}
	l := Likeness{From: FromAlike, Like: *b.Like, Known: b.Known, Blocks: b.Blocks}
	switch b.How {
	case schemas.LikeScaled:
		l.From = FromAlikeInSizes
	case schemas.LikeParts:
		l.From = FromParts
	}
	return l
}

// nearestTagged returns the recorded step with tags that is nearest to a step, the earlier of two equally near ones; -1
// if there is none.
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
