package exhibits

import (
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/schemas"
)

// Changes returns by how many bytes each category at an entry's peak differs from the baseline's peak, in stacking
// order. Bytes that autograd holds less and the hooks of a DP method hold more, or the reverse, only moved, and are no
// change. Changes returns nil if either peak is not broken down.
func (e *Entry) Changes() (changes []compare.CategoryDelta) {
	if e.Overhead == nil || e.IsBaseline() {
		return nil
	}
	moved := e.moved()
	for _, c := range e.Overhead.Categories {
		switch c.Category {
		case schemas.Activations:
			c.DeltaBytes += moved
		case schemas.HookActivations:
			c.DeltaBytes -= moved
		}
		if c.DeltaBytes != 0 {
			changes = append(changes, c)
		}
	}
	return changes
}

// moved returns the bytes that autograd holds in the baseline and hooks hold in the entry. The result of moved is
// negative if bytes moved from hooks to autograd.
func (e *Entry) moved() int64 {
	delta := map[schemas.Category]int64{}
	for _, c := range e.Overhead.Categories {
		delta[c.Category] = c.DeltaBytes
	}
	graph, hooks := delta[schemas.Activations], delta[schemas.HookActivations]
	switch {
	case graph < 0 && hooks > 0:
		return min(-graph, hooks)
	case graph > 0 && hooks < 0:
		return max(-graph, hooks)
	}
	return 0
}

// Netted reports whether [Entry.Changes] left out bytes that only moved between autograd and hooks, so that the change
// of one of the two categories covers both.
func (e *Entry) Netted(c schemas.Category) bool {
	return (c == schemas.Activations || c == schemas.HookActivations) && e.Overhead != nil && e.moved() != 0
}

// Front returns the rivals of a group for which no other rival is better in both time and peak.
func (g *Group) Front() (front []*Entry) {
	for i := range g.Entries {
		e := &g.Entries[i]
		if !e.Rivals() || e.PeakBytes == nil || e.StepMS == nil {
			continue
		}
		beaten := false
		for k := range g.Entries {
			o := &g.Entries[k]
			if k == i || !o.Rivals() || o.PeakBytes == nil || o.StepMS == nil {
				continue
			}
			beaten = beaten || *o.PeakBytes <= *e.PeakBytes && o.StepMS.Median <= e.StepMS.Median &&
				(*o.PeakBytes < *e.PeakBytes || o.StepMS.Median < e.StepMS.Median)
		}
		if !beaten {
			front = append(front, e)
		}
	}
	return front
}
