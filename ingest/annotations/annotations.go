package annotations

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// Input is the data of one device in a snapshot from which [Find] derives phases.
type Input struct {
	Events      *schemas.EventColumns
	Annotations []torchsnap.Annotation // annotations of all devices: a range belongs to the whole program
	Text        func(event int) string // gives the text of a user_defined event, by index from 0
	// Phases has, by stack id, the phase that the user's rules give a stack; empty = none. Phases is nil if there are
	// no rules for phases. Python says which stacks have a frame of Python, which a rule could match.
	Phases []string
	Python []bool
	// Allocated has the bytes allocated just after each event. Index 0 is the value before the first event.
	Allocated []int64
	// Late is true if there were events before the first event that the file has.
	Late bool
}

// An Interval is a stretch of events, Begin+1 to End, in one phase. If Begin equals End, the interval has no event, and
// only the bytes allocated just after event Begin count.
type Interval struct {
	Phase          string
	Begin, End     int64
	StartNS, EndNS int64 // by the allocator's clock; for a rule's phase, times of its first and last events
	By             Source

	// The interval begins between widest.from and narrowest.from, and ends between narrowest.to and widest.to. Events
	// in the same microsecond as one of its ends may lie on either side of that end.
	widest, narrowest stretch
}

// A Source says what names a phase: a range, a user_defined event or a rule.
type Source uint8

const (
	ByAnnotation Source = iota
	ByMarker            // a user_defined event bounds the interval
	ByRule
	sources
)

// Sources returns, in words, where the names of phases come from; it is empty if there are no phases.
func Sources(phases []Interval) string {
	var n [sources]int
	for i := range phases {
		n[phases[i].By]++
	}
	var out []string
	for by, words := range [sources][2]string{{"stretch of annotations", "stretches of annotations"},
		{"stretch after a user_defined event", "stretches after user_defined events"},
		{"stretch of a rule's frames", "stretches of rules' frames"}} {
		if n[by] > 0 {
			out = append(out, units.Plural(n[by], words[0], words[1]))
		}
	}
	return strings.Join(out, ", ")
}

// A stretch is a range of events, with the states just after each of them.
type stretch struct{ from, to int64 }

// MaxIntervals is the largest number of phases of a device. If a script has more names, they name calls and not phases.
const MaxIntervals = 100_000

// Find returns the phases of a device in order, without overlaps. The notes say what could not be determined.
func Find(in Input) (phases []Interval, notes []string) {
	ranges, notes := in.ranges()
	all := overlay(in.markers(), ranges)
	if all = overlay(all, in.ruled()); len(all) > MaxIntervals {
		return nil, append(notes, fmt.Sprintf("%d named ranges are too many to be phases", len(all)))
	}
	return all, notes
}

// nameOf returns the name of the phase for a range. For the ranges that torch itself opens, it returns the phase names
// of recorded runs.
func nameOf(annotation string) string {
	switch {
	case strings.HasPrefix(annotation, "Optimizer.step#"):
		return schemas.PhaseOptimizer
	case strings.HasPrefix(annotation, "Optimizer.zero_grad#"):
		return schemas.PhaseZeroGrad
	case strings.HasPrefix(annotation, "enumerate(DataLoader)"):
		return schemas.PhaseSetupData
	}
	return phaseName(annotation)
}

// maxName is the largest length of a phase's name. A longer text does not count as a name.
const maxName = 200

// phaseName turns a text into a name that a user can write in --at phase=NAME, where a comma is a separator.
func phaseName(text string) string {
	text = strings.TrimSpace(strings.ReplaceAll(text, ",", ";"))
	if len(text) > maxName {
		text = strings.ToValidUTF8(text[:maxName], "") + "…"
	}
	return text
}

// An edge is one end of a range.
type edge struct {
	name  string
	start bool
	ns    int64
	// At least lo and at most hi events came before the edge. The events between lo and hi happened in the same
	// microsecond as the edge.
	lo, hi int64
}

// edges finds between which events each annotation lies. ok is false if the times do not determine this.
func (in *Input) edges() (edges []edge, ok bool) {
	times := in.Events.TimeNS
	if len(times) == 0 || times[0] <= 0 || !slices.IsSorted(times) {
		return nil, false
	}
	for _, a := range in.Annotations {
		e := edge{name: nameOf(a.Name), start: a.Stage == "START", ns: a.TimeNS}
		if e.name == "" || a.TimeNS <= 0 || !e.start && a.Stage != "END" {
			continue
		}
		e.lo = int64(sort.Search(len(times), func(i int) bool { return times[i] >= a.TimeNS }))
		for e.hi = e.lo; e.hi < int64(len(times)) && times[e.hi] == a.TimeNS; e.hi++ {
		}
		if !slices.ContainsFunc(in.Events.Action[e.lo:e.hi], allocates) {
			e.lo = e.hi
		}
		edges = append(edges, e)
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.ns, b.ns) })
	return edges, true
}

// allocates reports whether an event with this action may change the allocated bytes.
func allocates(a schemas.Action) bool {
	return a == schemas.ActionAlloc || a == schemas.ActionFreeRequested || a == schemas.ActionFreeCompleted
}

// ranges returns the intervals of the annotations. Where ranges are nested, the innermost names the events.
func (in *Input) ranges() (found []Interval, notes []string) {
	if len(in.Annotations) == 0 {
		return nil, nil
	}
	edges, ok := in.edges()
	if !ok {
		return nil, []string{"the file has annotations, and no times of events, or times that run backwards: no range " +
			"of them is a phase"}
	}
	lost := 0
	if in.Late {
		edges, lost = in.withoutEarly(edges)
	}
	dropped := map[string]string{} // reasons for which ranges were dropped, by name
	open := 0
	for {
		edges = slices.DeleteFunc(edges, func(e edge) bool { return dropped[e.name] != "" })
		n := len(dropped)
		inside, halves, crossing := in.nest(edges)
		found = inside
		for name := range crossing {
			dropped[name] = "cross others"
		}
		if len(crossing) == 0 {
			for name := range in.unsure(found, halves) {
				dropped[name] = "cannot be told from what lies beside them"
			}
		}
		if open = len(halves); len(dropped) == n {
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dropped)) {
		notes = append(notes, fmt.Sprintf("annotations named %s %s: they are no phase", name, dropped[name]))
	}
	if open > 0 {
		notes = append(notes, units.Plural(open, "annotation has", "annotations have")+" no end, or no beginning")
	}
	if lost > 0 {
		notes = append(notes, units.Plural(lost, "annotation", "annotations")+
			" began before the first event that the file has")
	}
	return found, notes
}

// withoutEarly leaves out the ranges that began before the first event, and ends without a beginning.
func (in *Input) withoutEarly(edges []edge) (kept []edge, lost int) {
	open := map[string]int{} // early ranges that are open, by name
	for _, e := range edges {
		switch {
		case e.start && e.ns <= in.Events.TimeNS[0]:
			open[e.name]++
			lost++
		case !e.start && open[e.name] > 0:
			open[e.name]--
		default:
			kept = append(kept, e)
		}
	}
	return kept, lost
}

// nest matches the ends of ranges with their beginnings. halves are the ranges that lack an end or a beginning, at
// their longest possible extent. crossing has the names of ranges that overlap without being nested.
func (in *Input) nest(edges []edge) (found, halves []Interval, crossing map[string]bool) {
	closed, crossing := match(edges)
	if len(crossing) > 0 {
		return nil, nil, crossing
	}
	type opened struct {
		edge
		from edge // where the innermost range continued
	}
	var stack []opened
	last := int64(in.Events.Len())
	// A range includes the events in the same microsecond as its beginning or its end, even if a neighbouring range
	// includes them too.
	piece := func(name string, from, to edge) {
		iv := Interval{Phase: name, StartNS: from.ns, EndNS: to.ns, Begin: from.hi, End: to.lo,
			widest: stretch{from.lo, to.hi}, narrowest: stretch{from.hi, to.lo}}
		if from.start {
			iv.Begin = from.lo
		}
		if !to.start {
			iv.End = to.hi
		}
		if n := len(found); n > 0 {
			iv.Begin = max(iv.Begin, found[n-1].End)
		}
		iv.End = max(iv.End, iv.Begin)
		found = append(found, iv)
	}
	for i, e := range edges {
		switch {
		case !closed[i] && e.start:
			halves = append(halves, Interval{Phase: e.name, widest: stretch{e.lo, last}})
		case !closed[i]:
			halves = append(halves, Interval{Phase: e.name, widest: stretch{0, e.hi}})
		case e.start:
			if n := len(stack); n > 0 {
				piece(stack[n-1].name, stack[n-1].from, e)
			}
			stack = append(stack, opened{e, e})
		default:
			n := len(stack) - 1
			piece(stack[n].name, stack[n].from, e)
			if stack = stack[:n]; n > 0 {
				stack[n-1].from = e
			}
		}
	}
	return found, halves, nil
}

// match finds, by index, the ends of ranges that have a beginning. An end closes the latest open range of its name. A
// range that began within that range and is still open crosses it, unless it never ends.
func match(edges []edge) (closed map[int]bool, crossing map[string]bool) {
	closed, crossing = map[int]bool{}, map[string]bool{}
	other := map[int]int{} // index of an interval, by its beginning
	var open []int
	for i, e := range edges {
		if e.start {
			open = append(open, i)
			continue
		}
		for k := len(open) - 1; k >= 0; k-- {
			if at := open[k]; edges[at].name == e.name {
				closed[at], closed[i], other[at] = true, true, i
				open = slices.Delete(open, k, k+1)
				break
			}
		}
	}
	var around []int // beginnings of the surrounding intervals
	for i, e := range edges {
		switch {
		case !closed[i]:
		case e.start:
			around = append(around, i)
		default:
			for n := len(around) - 1; other[around[n]] != i; n-- {
				crossing[edges[around[n]].name], crossing[e.name] = true, true
			}
			around = slices.DeleteFunc(around, func(at int) bool { return other[at] == i })
		}
	}
	return closed, crossing
}

// unsure returns the names of phases whose figures may be wrong. A figure may be wrong if it depends on events in the
// same microsecond as a range's end, or on a range without an end.
func (in *Input) unsure(found, halves []Interval) map[string]bool {
	type bounds struct {
		high, low, surelyHigh, surelyLow int64     // peaks of the interval, at its widest and at its narrowest
		highest, surelyHighest           *Interval // the first intervals with these peaks
	}
	by, out := map[string]*bounds{}, map[string]bool{}
	for i := range found {
		iv := &found[i]
		if iv.narrowest.from > iv.narrowest.to { // the interval begins and ends in one microsecond
			out[iv.Phase] = true
			continue
		}
		wide, narrow := in.peak(iv.widest), int64(0)
		if narrow = wide; iv.widest != iv.narrowest {
			narrow = in.peak(iv.narrowest)
		}
		b := by[iv.Phase]
		if b == nil {
			b = &bounds{wide, wide, narrow, narrow, iv, iv}
			by[iv.Phase] = b
		}
		if wide > b.high {
			b.high, b.highest = wide, iv
		}
		if narrow > b.surelyHigh {
			b.surelyHigh, b.surelyHighest = narrow, iv
		}
		b.low, b.surelyLow = min(b.low, wide), min(b.surelyLow, narrow)
	}
	for name, b := range by {
		w, n := b.highest.widest, b.highest.narrowest
		if b.high != b.surelyHigh || b.low != b.surelyLow || b.highest != b.surelyHighest ||
			in.Allocated[w.from] != in.Allocated[n.from] || in.Allocated[w.to] != in.Allocated[n.to] {
			out[name] = true
		}
	}
	for i := range halves {
		h := &halves[i]
		if b := by[h.Phase]; b != nil && (in.peak(h.widest) > b.high || in.lowest(h.widest) < b.low) {
			out[h.Phase] = true
		}
	}
	return out
}

// peak returns the highest allocated in a stretch, and lowest the lowest allocated.
func (in *Input) peak(s stretch) int64   { return slices.Max(in.Allocated[s.from : s.to+1]) }
func (in *Input) lowest(s stretch) int64 { return slices.Min(in.Allocated[s.from : s.to+1]) }

// markers returns the phases that user_defined events begin.
func (in *Input) markers() (found []Interval) {
	for i, a := range in.Events.Action {
		if a != schemas.ActionUserDefined {
			continue
		}
		text := phaseName(in.Text(i))
		if text == "" {
			continue
		}
		at, ns := int64(i)+1, in.Events.TimeNS[i]
		if n := len(found); n > 0 {
			found[n-1].End, found[n-1].EndNS = at, ns
		}
		found = append(found, Interval{Phase: text, Begin: at, End: int64(in.Events.Len()), StartNS: ns,
			EndNS: in.Events.TimeNS[in.Events.Len()-1], By: ByMarker})
	}
	return found
}

// ruled returns the phases that follow from the user's rules on stacks.
func (in *Input) ruled() (found []Interval) {
	if in.Phases == nil {
		return nil
	}
	begun := false
	for i, stack := range in.Events.Stack {
		if !in.Python[stack] {
			continue
		}
		switch phase := in.Phases[stack]; {
		case phase == "":
			begun = false
		case begun && found[len(found)-1].Phase == phase:
			last := &found[len(found)-1]
			last.End, last.EndNS = int64(i)+1, in.Events.TimeNS[i]
		default:
			found = append(found, Interval{Phase: phase, Begin: int64(i), End: int64(i) + 1,
				StartNS: in.Events.TimeNS[i], EndNS: in.Events.TimeNS[i], By: ByRule})
			begun = true
		}
	}
	return found
}

// overlay puts upper intervals over lower intervals, and leaves out the covered parts of the lower ones.
func overlay(lower, upper []Interval) []Interval {
	if len(lower) == 0 || len(upper) == 0 {
		return append(lower, upper...)
	}
	out := slices.Clone(upper)
	at := 0
	for _, iv := range lower {
		for at < len(upper) && upper[at].End <= iv.Begin && upper[at].Begin < iv.Begin {
			at++
		}
		for k := at; k < len(upper) && upper[k].Begin <= iv.End; k++ {
			if before := iv; before.Begin < upper[k].Begin {
				before.End = upper[k].Begin
				before.EndNS = upper[k].StartNS
				out = append(out, before)
			}
			iv.Begin, iv.StartNS = max(iv.Begin, upper[k].End), max(iv.StartNS, upper[k].EndNS)
			if iv.Begin >= iv.End {
				break
			}
		}
		if iv.Begin < iv.End {
			out = append(out, iv)
		}
	}
	slices.SortStableFunc(out, func(a, b Interval) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End))
	})
	return out
}
