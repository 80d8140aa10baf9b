package analyze

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// ExplainedBirth is the part in the difference of the peaks of the blocks that were born in one phase, in whichever
// step.
type ExplainedBirth struct {
	Phase      *string `json:"phase"` // or "before recording", or "between windows"; null = not known
	FromBytes  int64   `json:"from_bytes"`
	ToBytes    int64   `json:"to_bytes"`
	DeltaBytes int64   `json:"delta_bytes"`
}

// explainBirths splits the peaks, and each category's part in them, by the phases that the blocks were born in. A run
// without phases, as of an imported file, has nothing to set beside the other's.
func (doc *ExplainDocument) explainBirths(from, to *Dissection) {
	if !from.born || !to.born {
		return
	}
	whole, byCategory := births{}, make([]births, nCategories)
	for i := range byCategory {
		byCategory[i] = births{}
	}
	add := func(d *Dissection, bytes func(*ExplainedBirth) *int64) {
		for _, p := range d.parts {
			*bytes(whole.of(p.phase)) += p.bytes
			*bytes(byCategory[p.place].of(p.phase)) += p.bytes
		}
	}
	add(from, func(b *ExplainedBirth) *int64 { return &b.FromBytes })
	add(to, func(b *ExplainedBirth) *int64 { return &b.ToBytes })
	doc.MemoryPhases = whole.list()
	for i := range doc.Categories {
		c := &doc.Categories[i]
		c.Phases = byCategory[schemas.Precedence(c.Category)].list()
	}
}

// births are the parts by phase.
type births map[string]*ExplainedBirth

func (b births) of(phase string) *ExplainedBirth {
	if b[phase] == nil {
		b[phase] = &ExplainedBirth{}
		if phase != "" {
			b[phase].Phase = &phase
		}
	}
	return b[phase]
}

// list has the largest difference first.
func (b births) list() []ExplainedBirth {
	out := []ExplainedBirth{}
	for _, phase := range slices.Sorted(maps.Keys(b)) {
		e := b[phase]
		e.DeltaBytes = e.ToBytes - e.FromBytes
		out = append(out, *e)
	}
	slices.SortStableFunc(out, func(x, y ExplainedBirth) int {
		return cmp.Or(cmp.Compare(magnitude(y.DeltaBytes), magnitude(x.DeltaBytes)), cmp.Compare(y.ToBytes, x.ToBytes))
	})
	return out
}

// Title is what the phase is shown as.
func (b *ExplainedBirth) Title() string {
	if b.Phase == nil {
		return "–"
	}
	return *b.Phase
}

// prose is what sentences call the blocks.
func (b *ExplainedBirth) prose() string {
	switch {
	case b.Phase == nil:
		return "blocks born in no known phase"
	case *b.Phase == beforeRecording || *b.Phase == betweenWindows:
		return "blocks born " + *b.Phase
	}
	return "blocks born in " + *b.Phase
}

// tellBirths says in which phases the blocks were born that make the difference of the peaks.
func (doc *ExplainDocument) tellBirths(say func(string, ...any)) {
	a, b := &doc.Runs[0], &doc.Runs[1]
	var terms []term
	for i := range doc.MemoryPhases {
		p := &doc.MemoryPhases[i]
		t := term{name: p.prose(), delta: float64(p.DeltaBytes)}
		t.lacking(p.FromBytes == 0, a.Label+"'s peak", p.ToBytes == 0, b.Label+"'s peak")
		terms = append(terms, t)
	}
	delta := float64(*doc.PeakDeltaBytes)
	if text := account(delta, excess(delta, b.Label+"'s peak", a.Label+"'s", bytesText), "are of", "phases", terms,
		bytesText); text != "" {
		say("%s.", text)
	}
}
