package explain

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

// BirthPart is the part in the difference of the peaks of the blocks that were born in one phase, in whichever
// step.
type BirthPart struct {
	Phase      *string `json:"phase"` // or "before recording", or "between windows"; null = not known
	FromBytes  int64   `json:"from_bytes"`
	ToBytes    int64   `json:"to_bytes"`
	DeltaBytes int64   `json:"delta_bytes"`
}

// explainBirths splits the peaks, and each category's part in them, by the phases that the blocks were born in. A run
// without phases, as of an imported file, has nothing to set beside the other's.
func (doc *Document) explainBirths(from, to *Input) {
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

// births are the parts by phase.
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

// list has the largest difference first.
func (b births) list() []BirthPart {
	out := []BirthPart{}
	for _, phase := range slices.Sorted(maps.Keys(b)) {
		e := b[phase]
		e.DeltaBytes = e.ToBytes - e.FromBytes
		out = append(out, *e)
	}
	slices.SortStableFunc(out, func(x, y BirthPart) int {
		return cmp.Or(cmp.Compare(prose.Magnitude(y.DeltaBytes), prose.Magnitude(x.DeltaBytes)),
			cmp.Compare(y.ToBytes, x.ToBytes))
	})
	return out
}

// Title is what the phase is shown as.
func (b *BirthPart) Title() string {
	if b.Phase == nil {
		return "–"
	}
	return *b.Phase
}

// prose is what sentences call the blocks.
func (b *BirthPart) prose() string {
	switch {
	case b.Phase == nil:
		return "blocks born in no known phase"
	case *b.Phase == grouping.BeforeRecording || *b.Phase == grouping.BetweenWindows:
		return "blocks born " + *b.Phase
	}
	return "blocks born in " + *b.Phase
}

// tellBirths says in which phases the blocks were born that make the difference of the peaks.
func (doc *Document) tellBirths(say func(string, ...any)) {
	a, b := &doc.Runs[0], &doc.Runs[1]
	var terms []prose.Term
	for i := range doc.MemoryPhases {
		p := &doc.MemoryPhases[i]
		t := prose.Term{Name: p.prose(), Delta: float64(p.DeltaBytes)}
		t.Lacking(p.FromBytes == 0, a.Label+"'s peak", p.ToBytes == 0, b.Label+"'s peak")
		terms = append(terms, t)
	}
	delta := float64(*doc.PeakDeltaBytes)
	if text := prose.Account(delta, prose.Excess(delta, b.Label+"'s peak", a.Label+"'s", prose.Bytes), "are of",
		"phases", terms,
		prose.Bytes); text != "" {
		say("%s.", text)
	}
}
