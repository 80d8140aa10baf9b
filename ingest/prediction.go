package ingest

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// prediction combines the phantom GPU's reports from all processes of a predicted run.
func prediction(m *schemas.Manifest, journals []*spool.Journal) *schemas.Prediction {
	if m.Source != schemas.Predicted {
		return nil
	}
	// If a run that ended well has no journals, no process used torch, and there was nothing to report.
	p := &schemas.Prediction{Complete: len(journals) > 0 || m.Status == schemas.StatusOK &&
		len(m.Collector.Uninjected) == 0, UnknownReads: []schemas.Counted{}, Guesses: []schemas.Counted{},
		Notes: []string{}}
	reads, guesses, assumptions, assumed, copied := map[string]int64{}, map[string]int64{}, map[string]int64{},
		map[string]int64{}, map[string]int64{}
	for _, j := range journals {
		// A process without a last frame may have read further values after its last report.
		p.Complete = p.Complete && j.Prediction != nil && j.End != nil
		if j.Prediction == nil {
			continue
		}
		for _, c := range j.Prediction.Reads {
			reads[c.Name] += c.Count
		}
		for _, c := range j.Prediction.Guesses {
			guesses[c.Name] += c.Count
		}
		for _, c := range j.Prediction.Assumptions {
			assumptions[c.Name] += c.Count
		}
		for _, c := range j.Prediction.AssumedAt {
			assumed[c.Name] += c.Count
		}
		for _, c := range j.Prediction.Copied {
			copied[c.Name] += c.Count
		}
		for _, n := range j.Prediction.Notes {
			if !slices.Contains(p.Notes, n) {
				p.Notes = append(p.Notes, n)
			}
		}
		p.Compiled = p.Compiled || j.Prediction.Compiled
	}
	p.UnknownReads, p.Guesses, p.Assumptions, p.AssumedAt = tallied(reads), tallied(guesses), tallied(assumptions),
		tallied(assumed)
	p.CopiedReads, p.Garbage, p.Ended = tallied(copied), spool.GarbageOf(journals), spool.EndedOf(journals)
	return p
}

// tallied lists the counts, the largest first.
func tallied(counts map[string]int64) []schemas.Counted {
	out := []schemas.Counted{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, schemas.Counted{Name: name, Count: counts[name]})
	}
	slices.SortStableFunc(out, func(a, b schemas.Counted) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

// Placement returns the peaks of a run with its address policy, from which a range over policies is made.
func Placement(m *schemas.Manifest, r *schemas.IngestReport) schemas.Placement {
	p := schemas.Placement{RunID: m.RunID, Status: m.Status}
	if m.Phantom != nil {
		p.Addresses = m.Phantom.Addresses
	}
	for i := range r.Devices { // a bare run has only counters
		d := &r.Devices[i]
		p.PeakAllocatedBytes = max(p.PeakAllocatedBytes, d.PeakAllocatedBytes, known(d.TorchPeakAllocatedBytes))
		p.PeakReservedBytes = max(p.PeakReservedBytes, d.PeakReservedBytes, known(d.TorchPeakReservedBytes))
	}
	if m.Phantom != nil {
		for _, u := range m.Phantom.Devices {
			if u.Processes > 1 {
				p.PeakReservedBytes = max(p.PeakReservedBytes, u.ReservedBytes)
			}
		}
	}
	return p
}

// Collection returns the peaks of a run whose garbage was collected at other moments, from which the range of the peak
// is made.
func Collection(m *schemas.Manifest, r *schemas.IngestReport) schemas.Collection {
	p := Placement(m, r)
	return schemas.Collection{When: m.Phantom.Garbage, RunID: p.RunID, Status: p.Status,
		PeakAllocatedBytes: p.PeakAllocatedBytes, PeakReservedBytes: p.PeakReservedBytes}
}

func known(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// band returns the range of the peaks over the run and the earlier runs of the same experiment with other address
// policies.
func band(m *schemas.Manifest, r *schemas.IngestReport) *schemas.PlacementBand {
	if m.Phantom == nil || len(m.Phantom.Placements) == 0 || len(r.Devices) == 0 {
		return nil
	}
	own := Placement(m, r)
	b := &schemas.PlacementBand{Policies: []string{own.Addresses}, Allocated: [2]int64{own.PeakAllocatedBytes,
		own.PeakAllocatedBytes},
		Reserved: [2]int64{own.PeakReservedBytes, own.PeakReservedBytes}}
	for _, p := range m.Phantom.Placements {
		// A run that was stopped, or that ended with another status, did not run the same part of the script, so its
		// peak does not count.
		if p.Status != m.Status || !schemas.EndedByItself(p.Status) {
			continue
		}
		b.Policies = append(b.Policies, p.Addresses)
		b.Allocated = [2]int64{min(b.Allocated[0], p.PeakAllocatedBytes), max(b.Allocated[1], p.PeakAllocatedBytes)}
		b.Reserved = [2]int64{min(b.Reserved[0], p.PeakReservedBytes), max(b.Reserved[1], p.PeakReservedBytes)}
	}
	return b
}
