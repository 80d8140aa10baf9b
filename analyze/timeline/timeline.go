package timeline

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// Timeline is the bytes that one device had allocated and reserved over the events of a run. A timeline's axis is
// events, not time: the GPU may do the work long after the allocator's calls for it, and many neighbouring events share
// a microsecond.
type Timeline struct {
	Device string
	Rank   int32
	// Peak is the moment of the device's breakdown; PeakBytes is the allocated at that moment.
	Peak      memory.Moment
	PeakBytes int64
	Segments  []TimelineSegment // segments in the order of events, without gaps
	// Maxima are the moments at which each category has the most bytes in the whole run, and StepMaxima those in the
	// step of the peak. Maxima and StepMaxima are in the order of precedence, and leave out categories without bytes.
	Maxima, StepMaxima []CategoryMaximum
}

// TimelineSegment is one occurrence of a phase, or a stretch outside phases. Phases and stretches without events are
// left out.
type TimelineSegment struct {
	Step     *int64 // number of the step; nil = outside any step
	Phase    string // name of the phase; empty = no phase, or a whole step of a run with very many
	BeginSeq int64  // events (BeginSeq, EndSeq] belong to the segment
	EndSeq   int64
	Columns  []TimelineColumn
}

// TimelineColumn is a stretch of events reduced to its extremes, so that a narrow drawing still shows each extreme.
type TimelineColumn struct {
	BeginSeq, EndSeq    int64 // events (BeginSeq, EndSeq]
	LowBytes, HighBytes int64 // lowest and highest allocated just after any of these events
	HighSeq             int64 // the first event with HighBytes allocated
	// Parts are the categories' bytes just after HighSeq, in the order of [schemas.Categories]; they sum to HighBytes.
	Parts []int64
	// ReservedBytes is the highest reserved in this column. ReservedBytes is -1 if unknown, for example without segment
	// events.
	ReservedBytes int64
}

const (
	// fineColumns is the largest number of columns of one phase in the step of the peak. No figure has as many pixels
	// for a phase.
	fineColumns = 320
	// coarseColumns is about how many columns all phases outside the step of the peak have together.
	coarseColumns = 2400
	// mostSegments is the number of segments from which on [Timeline.mergeSteps] merges the segments of each step,
	// except the step of the peak.
	mostSegments = 600
)

// TimelineOf reduces device p to columns. The extremes are exact at any number of columns.
func TimelineOf(in *schemas.Tables, p identity.Place, l *memory.Ledger, peak memory.Moment, peakBytes int64) *Timeline {
	t := &Timeline{Device: p.String(), Rank: p.Rank, Peak: peak, PeakBytes: peakBytes}
	last := int64(0)
	if v := identity.Verdict(in, p); v != nil {
		last = v.Events
	}
	for _, c := range l.Changes() {
		last = max(last, c.Seq())
	}
	if last == 0 {
		return nil
	}
	t.Segments = segments(in, p, last)
	if len(t.Segments) > mostSegments {
		t.mergeSteps()
	}
	coarse := max(4, coarseColumns/len(t.Segments))
	for i := range t.Segments {
		s := &t.Segments[i]
		most := coarse
		if t.InPeakStep(s) {
			most = fineColumns
		}
		s.split(int(min(int64(most), s.EndSeq-s.BeginSeq)))
	}
	t.fill(l)
	t.fillReserved(in, p)
	t.findMaxima(in, p, l, last)
	return t
}

// InPeakStep reports whether a segment belongs to the step of the peak. If the peak lies outside all steps, InPeakStep
// reports whether the segment does, too.
func (t *Timeline) InPeakStep(s *TimelineSegment) bool {
	if t.Peak.Step == nil || s.Step == nil {
		return t.Peak.Step == nil && s.Step == nil
	}
	return *t.Peak.Step == *s.Step
}

// HasSteps reports whether any event belongs to a step.
func (t *Timeline) HasSteps() bool {
	return slices.ContainsFunc(t.Segments, func(s TimelineSegment) bool { return s.Step != nil })
}

// segments lists the device's phases and the gaps between them.
func segments(in *schemas.Tables, p identity.Place, last int64) []TimelineSegment {
	var phases []*schemas.Phase
	for i := range in.Phases {
		if f := &in.Phases[i]; f.Rank == p.Rank && f.Device == p.Device && f.EndSeq > f.BeginSeq {
			phases = append(phases, f)
		}
	}
	slices.SortStableFunc(phases, func(a, b *schemas.Phase) int { return cmp.Compare(a.BeginSeq, b.BeginSeq) })
	var out []TimelineSegment
	at := int64(0)
	edges := stepEdges(in, p)
	gap := func(to int64) { // the steps of a script need not have phases
		for at < to {
			k, _ := slices.BinarySearch(edges, at+1)
			end := to
			if k < len(edges) {
				end = min(to, edges[k])
			}
			step, _ := memory.PhaseOf(in, p, end)
			out = append(out, TimelineSegment{Step: step, BeginSeq: at, EndSeq: end})
			at = end
		}
	}
	for _, f := range phases {
		gap(min(f.BeginSeq, last))
		if end := min(f.EndSeq, last); end > at {
			s := TimelineSegment{Phase: f.Phase, BeginSeq: at, EndSeq: end}
			if f.Step >= 0 {
				s.Step = new(f.Step)
			}
			at = end
			// An inner phase without events (a zero_grad that frees nothing) does not divide the outer phase into two
			// segments.
			if k := len(out) - 1; k >= 0 && out[k].Phase == s.Phase && sameStep(out[k].Step, s.Step) {
				out[k].EndSeq = end
				continue
			}
			out = append(out, s)
		}
	}
	gap(last)
	return out
}

// stepEdges lists the events after which a step begins or ends.
func stepEdges(in *schemas.Tables, p identity.Place) []int64 {
	var edges []int64
	for i := range in.Steps {
		if s := &in.Steps[i]; s.Rank == p.Rank && s.Device == p.Device {
			edges = append(edges, s.BeginSeq, s.EndSeq)
		}
	}
	slices.Sort(edges)
	return slices.Compact(edges)
}

// mergeSteps merges the segments of each step into one, except in the step of the peak.
func (t *Timeline) mergeSteps() {
	var out []TimelineSegment
	for _, s := range t.Segments {
		if k := len(out) - 1; k >= 0 && !t.InPeakStep(&s) && sameStep(out[k].Step, s.Step) {
			out[k].Phase, out[k].EndSeq = "", s.EndSeq
			continue
		}
		out = append(out, s)
	}
	t.Segments = out
}

func sameStep(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// split divides the segment into n columns with about the same number of events.
func (s *TimelineSegment) split(n int) {
	events := s.EndSeq - s.BeginSeq
	s.Columns = make([]TimelineColumn, n)
	for i := range s.Columns {
		s.Columns[i] = TimelineColumn{BeginSeq: s.BeginSeq + events*int64(i)/int64(n), EndSeq: s.BeginSeq +
			events*int64(i+1)/int64(n), ReservedBytes: -1}
	}
}

// columns calls each for every column in the order of events.
func (t *Timeline) columns(each func(*TimelineColumn)) {
	for i := range t.Segments {
		for k := range t.Segments[i].Columns {
			each(&t.Segments[i].Columns[k])
		}
	}
}

// fill sets the lowest and the highest allocated of each column from the categories' changes.
func (t *Timeline) fill(l *memory.Ledger) {
	s := &stretches{maxima: make([]maximum, memory.NCategories)}
	t.columns(func(c *TimelineColumn) { s.all = append(s.all, stretch{from: c.BeginSeq + 1, to: c.EndSeq}) })
	s.fill(l.Changes())
	next := 0
	t.columns(func(c *TimelineColumn) {
		w := &s.all[next]
		c.LowBytes, c.HighBytes, c.HighSeq, c.Parts = w.low, w.high, w.highSeq, w.parts
		next++
	})
}

// fillReserved sets the highest reserved of each column, if it is known.
func (t *Timeline) fillReserved(in *schemas.Tables, p identity.Place) {
	steps := memory.ReservedSteps(in, p)
	if steps == nil {
		return
	}
	now, next := steps[0].Bytes, 0
	t.columns(func(c *TimelineColumn) {
		for ; next < len(steps) && steps[next].Seq <= c.BeginSeq+1; next++ {
			now = steps[next].Bytes
		}
		c.ReservedBytes = now
		for ; next < len(steps) && steps[next].Seq <= c.EndSeq; next++ {
			now = steps[next].Bytes
			c.ReservedBytes = max(c.ReservedBytes, now)
		}
	})
}
