package timeline

import (
	"cmp"
	"slices"
	"sort"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// A stretch is a sequence of events, from and to included, reduced to the extremes of the allocated bytes just after
// them.
type stretch struct {
	from, to        int64
	low, high       int64
	lowSeq, highSeq int64   // the first event at the lowest, and the first at the highest
	parts           []int64 // bytes by category, just after highSeq
	most            []int64 // highest bytes by category, at any event
}

// A maximum is the state at the moment at which a category has the most bytes.
type maximum struct {
	bytes, seq int64
	parts      []int64 // bytes of all categories at that moment
}

// stretches is a range of events that is cut into parts.
type stretches struct {
	all    []stretch
	maxima []maximum // highest bytes by category, over all stretches
}

// newStretches cuts the range from..to into the given number of stretches of nearly equal length; 0 = one for each
// event.
func newStretches(from, to int64, points int) *stretches {
	events := to - from + 1
	n := events
	if points > 0 {
		n = min(n, int64(points))
	}
	s := &stretches{all: make([]stretch, n), maxima: make([]maximum, memory.NCategories)}
	for i := range s.all {
		k := int64(i)
		s.all[i] = stretch{from: from + events*k/n, to: from + events*(k+1)/n - 1}
	}
	return s
}

// fill goes through the changes once. fill evaluates the state only after all changes of an event, so bytes that an
// event moves from one category to another do not count twice.
func (s *stretches) fill(changes []memory.Change) {
	bytes, sum, next := make([]int64, memory.NCategories), int64(0), 0
	apply := func(seq int64) {
		for ; next < len(changes) && changes[next].Seq() <= seq; next++ {
			bytes[changes[next].Place()] += changes[next].Bytes
			sum += changes[next].Bytes
		}
	}
	for i := range s.all {
		w := &s.all[i]
		apply(w.from)
		w.low, w.lowSeq, w.high, w.highSeq = sum, w.from, sum, w.from
		w.parts = slices.Clone(bytes)
		if w.most = w.parts; w.to > w.from { // a stretch of one event has one state
			w.most = slices.Clone(bytes)
		}
		s.see(w.from, bytes)
		for next < len(changes) && changes[next].Seq() <= w.to {
			seq := changes[next].Seq()
			apply(seq)
			w.see(seq, sum, bytes)
			s.see(seq, bytes)
		}
	}
}

func (w *stretch) see(seq, sum int64, bytes []int64) {
	if sum < w.low {
		w.low, w.lowSeq = sum, seq
	}
	if sum > w.high {
		w.high, w.highSeq = sum, seq
		copy(w.parts, bytes)
	}
	for c, b := range bytes {
		w.most[c] = max(w.most[c], b)
	}
}

func (s *stretches) see(seq int64, bytes []int64) {
	for c, b := range bytes {
		if m := &s.maxima[c]; m.parts == nil || b > m.bytes {
			m.bytes, m.seq = b, seq
			m.parts = append(m.parts[:0], bytes...)
		}
	}
}

// categories lists the maxima of the categories that have bytes in the range or at the peak.
func (s *stretches) categories(atPeak []int64, m *moments) (out []CategoryMaximum) {
	for c := range s.maxima {
		if x := &s.maxima[c]; x.bytes > 0 || atPeak[c] > 0 {
			out = append(out, CategoryMaximum{Category: schemas.Categories[c], MaxBytes: x.bytes, At: m.of(x.seq),
				AllocatedBytes: Total(x.parts), AtPeakBytes: atPeak[c],
				Parts: x.parts})
		}
	}
	return out
}

// findMaxima sets the moment at which each category has the most bytes: in the whole run, and in the step of the peak.
func (t *Timeline) findMaxima(in *schemas.Tables, p identity.Place, l *memory.Ledger, last int64) {
	atPeak, m := partsAt(l, t.Peak.Event), newMoments(in, p)
	run := newStretches(0, last, 1)
	run.fill(l.Changes())
	t.Maxima = run.categories(atPeak, m)
	// The time outside the steps need not be contiguous. So each segment of that time is one stretch, and the gaps
	// between segments are ignored.
	step := &stretches{maxima: make([]maximum, memory.NCategories)}
	for i := range t.Segments {
		if s := &t.Segments[i]; t.InPeakStep(s) {
			step.all = append(step.all, stretch{from: s.BeginSeq + 1, to: s.EndSeq})
		}
	}
	if len(step.all) > 0 {
		step.fill(l.Changes())
		t.StepMaxima = step.categories(atPeak, m)
	}
}

// highest returns the first stretch with the range's highest total.
func (s *stretches) highest() *stretch {
	best := &s.all[0]
	for i := range s.all {
		if s.all[i].high > best.high {
			best = &s.all[i]
		}
	}
	return best
}

func Total(parts []int64) (sum int64) {
	for _, b := range parts {
		sum += b
	}
	return sum
}

// partsAt returns each category's bytes just after event seq.
func partsAt(l *memory.Ledger, seq int64) []int64 {
	parts := make([]int64, memory.NCategories)
	for i := range l.Len() {
		if l.LiveAt(i, seq) {
			p, _ := l.Category(i, seq)
			requested, slack := l.Bytes(i)
			parts[p] += requested
			parts[memory.SlackPlace] += slack
		}
	}
	return parts
}

// evidenceAt returns how each category's bytes just after event seq are known.
func evidenceAt(l *memory.Ledger, seq int64) []memory.Evidence {
	known := make([]memory.Evidence, memory.NCategories)
	for i := range l.Len() {
		if l.LiveAt(i, seq) {
			p, evidence := l.Category(i, seq)
			requested, slack := l.Bytes(i)
			known[p].Add(requested, evidence)
			known[memory.SlackPlace].Add(slack, "")
		}
	}
	return known
}

// moments finds the step and phase of many events of one device. moments is faster than [memory.PhaseOf], which goes
// through all phases for each event.
type moments struct {
	phases []*schemas.Phase // phases that have events, in order; phases do not overlap
	steps  []*schemas.Step
}

func newMoments(in *schemas.Tables, p identity.Place) *moments {
	m := &moments{}
	for i := range in.Phases {
		f := &in.Phases[i]
		unmarked := f.Step < 0 && f.Phase == schemas.PhaseBetween && in.Manifest.Source == schemas.Imported
		if f.Rank == p.Rank && f.Device == p.Device && f.EndSeq > f.BeginSeq && !unmarked {
			m.phases = append(m.phases, f)
		}
	}
	for i := range in.Steps {
		if s := &in.Steps[i]; s.Rank == p.Rank && s.Device == p.Device && s.EndSeq > s.BeginSeq {
			m.steps = append(m.steps, s)
		}
	}
	slices.SortStableFunc(m.phases, func(a, b *schemas.Phase) int { return cmp.Compare(a.EndSeq, b.EndSeq) })
	slices.SortStableFunc(m.steps, func(a, b *schemas.Step) int { return cmp.Compare(a.EndSeq, b.EndSeq) })
	return m
}

// find returns the step and the phase of event seq, or nil for each that is missing. The pointers refer to copies.
func (m *moments) find(seq int64) (step *int64, phase *string) {
	if i := sort.Search(len(m.phases), func(i int) bool {
		return m.phases[i].EndSeq >= seq
	}); i < len(m.phases) && m.phases[i].BeginSeq < seq {
		if m.phases[i].Step >= 0 {
			step = new(m.phases[i].Step)
		}
		return step, new(m.phases[i].Phase)
	}
	if i := sort.Search(len(m.steps), func(i int) bool {
		return m.steps[i].EndSeq >= seq
	}); i < len(m.steps) && m.steps[i].BeginSeq < seq {
		return new(m.steps[i].Step), nil
	}
	return nil, nil
}

// of returns the moment just after event seq.
func (m *moments) of(seq int64) memory.Moment {
	at := memory.Moment{Event: seq}
	at.Step, at.Phase = m.find(seq)
	return at
}
