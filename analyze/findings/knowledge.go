package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const (
	phaseOnlyPercent    = 5   // of the peak, known by the phase of birth only
	unattributedPercent = 1   // of the peak, under other or untraced
	latePercent         = 0.1 // of the peak, that the breakdown does not reach
)

// knowledge says what the breakdown itself does not know.
func (x *finder) knowledge() []Finding {
	whole := x.d.AllocatedBytes
	var out []Finding
	var phaseOnly int64
	var largest memory.CategoryBytes
	for _, c := range x.d.Categories {
		phaseOnly += c.PhaseOnlyBytes
		if c.PhaseOnlyBytes > largest.PhaseOnlyBytes {
			largest = c
		}
	}
	if memory.AtLeast(phaseOnly, whole, phaseOnlyPercent) {
		f := x.finding(PhaseOnly)
		x.of(&f, phaseOnly)
		f.bytes("known by phase only", phaseOnly, fmt.Sprintf("owners.parquet: evidence phase after event %d",
			x.d.At.Event))
		f.bytes("of them "+prose.Words(largest.Category), largest.PhaseOnlyBytes, x.at(largest.Category))
		x.peakFigure(&f)
		f.Sentence = fmt.Sprintf("Of %s, %s (%s) are known by nothing but the phase that they were born in, %s of "+
			"them as %s.",
			x.peak, prose.MiB(phaseOnly), prose.Share(float64(phaseOnly), float64(whole)),
			prose.MiB(largest.PhaseOnlyBytes),
			prose.Words(largest.Category))
		f.Change = "name the tensors with dpsight.tag(tensor, category), or the code with dpsight.phase(name)"
		out = append(out, f)
	}
	if f := x.unattributed(); f != nil {
		out = append(out, *f)
	}
	c := &x.d.Conservation
	if c.AmbiguousTags > 0 {
		f := x.finding(AmbiguousTags)
		f.count("ambiguous tags", int(c.AmbiguousTags), "ingest.json: devices[].ambiguous_tags")
		f.Sentence = fmt.Sprintf("%d tags fit no single life of their address, and count for nothing.", c.AmbiguousTags)
		out = append(out, f)
	}
	if c.Verdict != schemas.Exact {
		f := x.finding(NotConserved)
		f.bytes("residue", c.ResidueBytes, "ingest.json: devices[].residue_bytes")
		x.of(&f, c.ResidueBytes)
		f.Sentence = fmt.Sprintf("The recording is not proved whole (%s): replay and the allocator's counters differ "+
			"by up to %s.", conservationText(c), prose.MiB(c.ResidueBytes))
		f.Change = "record the run again: what is missing cannot be derived from the journal; until then quote its " +
			"figures with the residue"
		out = append(out, f)
	}
	if peak := x.run.PeakBytes; peak != nil && memory.AtLeast(*peak-whole, *peak, latePercent) {
		f := x.finding(PeakNotBrokenDown)
		f.of(*peak-whole, *peak, OfPeakAllocated)
		f.bytes("peak by torch's counter", *peak, "ingest.json: devices[].torch_peak_allocated_bytes")
		f.bytes("highest recorded moment", whole, fmt.Sprintf("allocations.parquet: after event %d", x.d.At.Event))
		f.Sentence = fmt.Sprintf("The peak, %s, came when no event was recorded; what is broken down is %s, %s less.",
			prose.MiB(*peak), prose.MiB(whole), prose.MiB(*peak-whole))
		f.Change = "record more steps, with --record-steps"
		out = append(out, f)
	}
	return out
}

// unattributed looks at what has no owner, and why: no rule fits, or nobody saw it made.
func (x *finder) unattributed() *Finding {
	other, untraced := x.bytesOf(schemas.Other), x.bytesOf(schemas.Untraced)
	if !memory.AtLeast(other+untraced, x.d.AllocatedBytes, unattributedPercent) {
		return nil
	}
	between := x.untracedBetween()
	before := untraced - between
	f := x.finding(Unattributed)
	x.of(&f, other+untraced)
	f.bytes("other", other, x.at(schemas.Other))
	f.bytes("untraced", untraced, x.at(schemas.Untraced))
	f.Change = "name the tensors with dpsight.tag(tensor, category)"
	var parts []string
	if before > 0 {
		parts = append(parts, prose.MiB(before)+" were live before recording began")
		f.Change += "; start the script under dpsight collect, so that nothing is allocated before recording begins"
	}
	if between > 0 {
		f.bytes("of it made between windows", between, "allocations.parquet: alloc_seq of the window, without a phase")
		parts = append(parts, prose.MiB(between)+" were made in steps that were not recorded")
		f.Change += "; record more steps, with --record-steps or --window-steps"
	}
	if other > 0 {
		parts = append(parts, prose.MiB(other)+" fit no rule")
	}
	x.peakFigure(&f)
	f.Sentence = fmt.Sprintf("Of %s, %s (%s) have no owner: %s.", x.peak, prose.MiB(other+untraced),
		prose.Share(float64(other+untraced), float64(x.d.AllocatedBytes)), prose.JoinWords(parts))
	return &f
}

// untracedBetween is what of the untraced bytes was allocated between two windows of recorded steps.
func (x *finder) untracedBetween() (bytes int64) {
	for i, a := range x.l.Allocs {
		if !a.LiveAt(x.d.At.Event) || grouping.Unseen(a) != grouping.BetweenWindows {
			continue
		}
		if now, _ := x.l.Owner(i, x.d.At.Event); now == memory.CategoryPlace(schemas.Untraced) {
			bytes += a.RequestedBytes
		}
	}
	return bytes
}

func conservationText(c *memory.Conservation) string {
	if c.Reason != "" {
		return c.Verdict + ": " + c.Reason
	}
	return c.Verdict
}
