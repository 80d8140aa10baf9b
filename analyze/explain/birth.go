package explain

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// BirthPart is the part of the peaks' difference that comes from blocks allocated in one phase, in any step.
type BirthPart struct {
	Phase      *string `json:"phase"` // name of the phase, "before recording" or "between windows"; null = not known
	FromBytes  int64   `json:"from_bytes"`
	ToBytes    int64   `json:"to_bytes"`
	DeltaBytes int64   `json:"delta_bytes"`
}

// explainBirths splits the peaks, and each category's part in them, by the phases that the blocks were born in. If
// either run has no phases, as an imported file, there is nothing to compare.
func (doc *Explanation) explainBirths(from, to *Input) {
	if !from.born || !to.born {
		return
	}
	whole, byCategory := births{}, make([]births, memory.NCategories)
	for i := range byCategory {
		byCategory[i] = births{}
	}
	add := func(d *Input, bytes func(*BirthPart) *int64) {
		for _, p := range d.parts {
			*bytes(whole.of(p.phase)) += p.bytes
			*bytes(byCategory[p.place].of(p.phase)) += p.bytes
		}
	}
	add(from, func(b *BirthPart) *int64 { return &b.FromBytes })
	add(to, func(b *BirthPart) *int64 { return &b.ToBytes })
	doc.MemoryPhases = whole.list()
	for i := range doc.Categories {
		c := &doc.Categories[i]
		c.Phases = byCategory[schemas.Precedence(c.Category)].list()
	}
}

// births are the parts of the peaks' difference by the phase in which blocks were allocated.
type births map[string]*BirthPart

func (b births) of(phase string) *BirthPart {
	if b[phase] == nil {
		b[phase] = &BirthPart{}
		if phase != "" {
			b[phase].Phase = &phase
		}
	}
	return b[phase]
}

// list returns the parts, the largest difference first.
func (b births) list() []BirthPart {
	out := []BirthPart{}
	for _, phase := range slices.Sorted(maps.Keys(b)) {
		e := b[phase]
		e.DeltaBytes = e.ToBytes - e.FromBytes
		out = append(out, *e)
	}
	slices.SortStableFunc(out, func(x, y BirthPart) int {
		return cmp.Or(cmp.Compare(magnitude(y.DeltaBytes), magnitude(x.DeltaBytes)),
			cmp.Compare(y.ToBytes, x.ToBytes))
	})
	return out
}

// Title returns the heading under which the phase is shown.
func (b *BirthPart) Title() string {
	if b.Phase == nil {
		return "–"
	}
	return *b.Phase
}
