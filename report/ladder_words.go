package report

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/schemas/units"
)

// tellLadders writes the notes of each moment and the warnings of each run.
func tellLadders(doc ladder.Document) ladder.Document {
	doc.Runs = slices.Clone(doc.Runs)
	for i := range doc.Runs {
		r := &doc.Runs[i]
		r.Warnings = slices.Clone(r.Warnings)
		if r.NotIngested {
			r.Warnings = append(r.Warnings, notIngested)
		}
		for _, u := range r.Unsampled {
			r.Warnings = append(r.Warnings, unsampledWords(u))
		}
		r.GPUs = slices.Clone(r.GPUs)
		for k := range r.GPUs {
			g := &r.GPUs[k]
			g.Moments = slices.Clone(g.Moments)
			for j := range g.Moments {
				m := &g.Moments[j]
				for _, remark := range m.Remarks {
					m.Notes = append(slices.Clip(m.Notes), remarkWords(remark))
				}
			}
		}
	}
	return doc
}

// remarkWords put a remark on a moment of a ladder into words.
func remarkWords(r ladder.Remark) string {
	const counters = "the peak is outside the recorded allocator events: torch's part comes from its counters at the " +
		"ends of steps, which "
	side := "before"
	if r.After {
		side = "after"
	}
	switch r.Kind {
	case ladder.RemarkPlateau:
		return "device used has this value in " + units.Plural(r.Samples, "sample", "samples") +
			"; the table shows the comparable sample with the most allocated"
	case ladder.RemarkNotRecorded:
		return "the peak lies in steps that were not recorded, and torch's counters before and after differ, so what torch " +
			"reserved then is unknown"
	case ladder.RemarkUnsettled:
		return fmt.Sprintf("torch reserved or freed a segment within %.0f ms of the sample: it may count as outside torch",
			r.MS)
	case ladder.RemarkCounters:
		return counters + "are equal before and after"
	case ladder.RemarkCountersNear:
		return fmt.Sprintf("%slie within %.0f ms of the sample, with the same memory in use; allocated is from there",
			counters, r.MS)
	case ladder.RemarkReservedMore:
		return "torch reserved more than NVML shows in use: they have different clocks, or measure different GPUs"
	case ladder.RemarkAlone:
		return "the other allocators on the GPU are unknown at this moment: the rungs are only of " + r.Device
	case ladder.RemarkNoSample:
		return "no NVML sample is comparable with the allocator"
	case ladder.RemarkNearestSample:
		return fmt.Sprintf("bytes outside torch come from the sample %.1f ms %s the event; device used is the sum",
			r.MS, side)
	case ladder.RemarkOtherSide:
		return fmt.Sprintf("%.1f ms %s the event it was %s", r.MS, side, units.MiB(r.Bytes))
	case ladder.RemarkUntagged:
		return untaggedWords(r.Untagged)
	}
	panic("no words for the remark " + r.Kind)
}

// unsampledWords say why only torch's own part of a GPU's memory is known.
func unsampledWords(u ladder.Unsampled) string {
	switch u.Why {
	case ladder.UnsampledPhantom:
		return "a phantom GPU has no NVML: only torch's own memory is known"
	case ladder.UnsampledImported:
		return "an imported file has no NVML samples: only torch's own memory is known"
	case ladder.UnsampledTwin:
		return fmt.Sprintf("%s is ambiguous: several GPUs have the UUID %s", u.Device, u.UUID)
	case ladder.UnsampledUnknown:
		return fmt.Sprintf("%s is %s, which NVML did not sample", u.Device, u.UUID)
	case ladder.UnsampledWhich:
		return fmt.Sprintf("it is unknown which of %d GPUs %s is", u.GPUs, u.Device)
	case ladder.UnsampledNever:
		return u.Device + " was not sampled: only torch's own memory is known"
	}
	panic("no words for a GPU without samples: " + u.Why)
}
