package report

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// memoryWords put each remark on a breakdown into a sentence.
func memoryWords(remarks []memory.Remark) []string {
	out := make([]string, len(remarks))
	for i := range remarks {
		out[i] = memoryWord(&remarks[i])
	}
	return out
}

// memoryWord puts a remark on a breakdown into a sentence.
func memoryWord(r *memory.Remark) string {
	switch r.Kind {
	case memory.RemarkGone:
		return goneWords(r.Text)
	case memory.RemarkOfIngest:
		return r.Text
	case memory.RemarkNoMoment:
		return r.Err.Error()
	case memory.RemarkDied:
		return diedWords(r.Failed)
	case memory.RemarkFailedHere:
		return failedHereWords(r.Device, r.Failed)
	case memory.RemarkLossy:
		return fmt.Sprintf("%s: events are missing or disagree (%s); the residue is %d bytes", r.Device,
			conservationReason(r.Conservation), r.Conservation.ResidueBytes)
	case memory.RemarkSumDiffers:
		return r.Device + ": " + conservationReason(r.Conservation)
	case memory.RemarkUntagged:
		return untaggedMomentWords(r)
	}
	panic("no words for the remark " + string(r.Kind))
}

// untaggedMomentWords say which share of the allocated bytes is known at a moment without tags, and which moment to
// look at instead.
func untaggedMomentWords(r *memory.Remark) string {
	text := untaggedWords(r.Untagged)
	if r.AllocatedBytes == 0 {
		return text
	}
	text += fmt.Sprintf("; of %s of the allocated bytes only the phase is known", prose.Share(float64(r.PhaseOnlyBytes),
		float64(r.AllocatedBytes)))
	if r.Instead != nil {
		text += fmt.Sprintf(" (--at %s breaks down a step with tags)", r.Instead)
	}
	return text
}

// conservationReason returns why a recording could not be proved complete, or "" if the reason is unknown.
func conservationReason(c *memory.Conservation) string {
	if c.Sum == nil {
		return c.Reason
	}
	return fmt.Sprintf("the categories sum to %d bytes, replay says %d", *c.Sum, *c.Replayed)
}

// untaggedWords say how the categories of a step without tags were determined.
func untaggedWords(u *memory.Untagged) string {
	lead := fmt.Sprintf("step %d has no tags", u.Step)
	if u.OnlyPeak {
		lead = fmt.Sprintf("only step %d, which has no tags, reached the peak", u.Step)
	}
	return fmt.Sprintf("%s: %s: %s", u.Place, lead, likenessWords(&u.Likeness))
}

func likenessWords(l *memory.Likeness) (text string) {
	switch l.From {
	case memory.FromLifetimes:
		return "its blocks are known only by lifetime and phase"
	case memory.FromAnyAlike:
		return "its categories come from a step with tags that allocated alike, else from lifetime and phase"
	case memory.FromNoneAlike:
		return "no step with tags allocated alike, so its blocks are known only by lifetime and phase"
	case memory.FromAlike:
		text = fmt.Sprintf("its categories come from step %d, which made the same allocations", l.Like)
	case memory.FromAlikeInSizes:
		text = fmt.Sprintf("its categories come from step %d, which made the same allocations in other sizes", l.Like)
	case memory.FromParts:
		text = fmt.Sprintf("its categories combine parts of step %d and of steps around it that allocated alike", l.Like)
	}
	if l.Known < l.Blocks {
		text += fmt.Sprintf(" (%d of %s; the others are known only by lifetime and phase)", l.Known,
			units.Plural(int(l.Blocks), "block", "blocks"))
	}
	return text
}

// when names the step and phase of a moment.
func when(m *memory.Moment) string {
	switch {
	case m == nil || m.Phase == nil && m.Step == nil:
		return "outside the steps"
	case m.Step == nil && *m.Phase == schemas.PhaseBetween:
		return "outside all phases"
	case m.Step == nil:
		return "in " + *m.Phase
	case m.Phase == nil:
		return fmt.Sprintf("in step %d", *m.Step)
	case *m.Phase == schemas.PhaseBetween:
		return fmt.Sprintf("outside all phases of step %d", *m.Step)
	}
	return fmt.Sprintf("in %s of step %d", *m.Phase, *m.Step)
}

// tellBreakdowns writes the warnings of each run and device, and why a device's recording could not be proved complete.
func tellBreakdowns(runs []memory.BreakdownRun) []memory.BreakdownRun {
	runs = slices.Clone(runs)
	for i := range runs {
		r := &runs[i]
		r.Warnings, r.Devices = memoryWords(r.Remarks), slices.Clone(r.Devices)
		for k := range r.Devices {
			d := &r.Devices[k]
			d.Warnings, d.Conservation.Reason = memoryWords(d.Remarks), conservationReason(&d.Conservation)
		}
	}
	return runs
}

// tellBreakdownsBy does for breakdowns by module, line and so on what [tellBreakdowns] does.
func tellBreakdownsBy(runs []grouping.BreakdownByRun) []grouping.BreakdownByRun {
	runs = slices.Clone(runs)
	for i := range runs {
		r := &runs[i]
		r.Warnings, r.Devices = append(memoryWords(r.Remarks), r.Warnings...), slices.Clone(r.Devices)
		for k := range r.Devices {
			d := &r.Devices[k]
			d.Warnings = append(memoryWords(d.Remarks), d.Warnings...)
			for _, dim := range d.Nameless {
				d.Warnings = append(d.Warnings, namelessWords(d.Device, dim))
			}
			d.Conservation.Reason = conservationReason(&d.Conservation)
		}
	}
	return runs
}

// namelessWords say that a breakdown by the dimension dim has no data.
func namelessWords(device string, dim grouping.Dimension) string {
	text := fmt.Sprintf("%s: no block has a known %s", device, dim)
	if dim == grouping.DimensionStack {
		text += ": collect --stacks python records stacks"
	}
	if dim == grouping.DimensionLine {
		text += ": collect records lines unless --lines none is given; on a GPU this needs Python 3.12 or later"
	}
	return text
}
