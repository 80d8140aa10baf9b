package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

func phaseOnlyWords(w *wording, x findings.PhaseOnlyFacts) {
	w.Title = "Only the phase is known of " + units.MiB(*w.Bytes)
	w.bytes("known by phase only", *w.Bytes, fmt.Sprintf("owners.parquet: evidence phase after event %d", w.event()))
	w.bytes("of them "+prose.Words(x.Largest.Name), x.Largest.Bytes, w.of(x.Largest.Name))
	w.peakFigure()
	w.say("Of %s (%s of %s) only the phase of their allocation is known. The largest part, %s, counts as %s.",
		units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak, units.MiB(x.Largest.Bytes), prose.Words(x.Largest.Name))
	w.Change = "name the tensors with dpsight.tag(tensor, category), or the code with dpsight.phase(name)"
}

func unattributedWords(w *wording, x findings.UnattributedFacts) {
	w.Title = units.MiB(*w.Bytes) + " have no known owner"
	w.bytes("other", x.OtherBytes, w.of(schemas.Other))
	w.bytes("untraced", x.UntracedBytes, w.of(schemas.Untraced))
	w.Change = "name the tensors with dpsight.tag(tensor, category)"
	var parts []string
	if before := x.UntracedBytes - x.BetweenBytes; before > 0 {
		parts = append(parts, units.MiB(before)+" were live before recording began")
		w.Change += "; start the script under dpsight collect, so that nothing is allocated before recording begins"
	}
	if x.BetweenBytes > 0 {
		w.bytes("of it made between windows", x.BetweenBytes, "allocations.parquet: alloc_seq of the window, "+
			"without a phase")
		parts = append(parts, units.MiB(x.BetweenBytes)+" were made in steps that were not recorded")
		w.Change += "; record more steps, with --record-steps or --window-steps"
	}
	if x.OtherBytes > 0 {
		parts = append(parts, units.MiB(x.OtherBytes)+" fit no rule")
	}
	w.peakFigure()
	w.say("Of %s, %s (%s) have no owner: %s.", w.peak, units.MiB(*w.Bytes), w.share(*w.Bytes), prose.JoinWords(parts))
}

func ambiguousTagsWords(w *wording, x findings.AmbiguousTagsFacts) {
	w.Title = units.Plural(int(x.Tags), "tag fits no block", "tags fit no block")
	w.count("ambiguous tags", int(x.Tags), "ingest.json: devices[].ambiguous_tags")
	w.say("%s.", units.Plural(int(x.Tags), "tag fits no single block at its address, so dpsight ignores it",
		"tags fit no single block at their address, so dpsight ignores them"))
}

func notConservedWords(w *wording, x findings.NotConservedFacts) {
	verdict := x.Conservation.Verdict
	w.Title = "The recording may be incomplete: " + verdict
	if reason := conservationReason(x.Conservation); reason != "" {
		verdict += ": " + reason
	}
	if x.Conservation.Verdict == schemas.Bounded {
		w.say("The recording began late: %s. The real figures are at least those shown.",
			conservationReason(x.Conservation))
		w.Change = "start recording before the first use of the GPU; until then, quote the peak with its bounds"
		return
	}
	w.bytes("residue", *w.Bytes, "ingest.json: devices[].residue_bytes")
	w.say("The recording may be incomplete (%s): replay and the allocator's counters differ by up to %s.", verdict,
		units.MiB(*w.Bytes))
	w.Change = "record the run again, since the journal cannot restore what is missing; until then, quote its figures " +
		"with the residue"
}

func notBrokenDownWords(w *wording, x findings.NotBrokenDownFacts) {
	highest := w.found.Highest.AllocatedBytes
	w.Title = "The peak was not recorded: it is " + units.MiB(x.PeakBytes-highest) + " above the highest recorded moment"
	w.bytes("peak by torch's counter", x.PeakBytes, "ingest.json: devices[].torch_peak_allocated_bytes")
	w.bytes("highest recorded moment", highest, fmt.Sprintf("allocations.parquet: after event %d", w.event()))
	w.say("The peak, %s, came while no events were recorded. The breakdown shows the highest recorded moment, %s, which "+
		"is %s lower.", units.MiB(x.PeakBytes),
		units.MiB(highest), units.MiB(x.PeakBytes-highest))
	w.Change = "record more steps, with --record-steps"
}
