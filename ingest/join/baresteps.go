package join

import (
	"slices"
	"sort"

	"github.com/dpsight/dpsight/schemas"
)

// matches maps allocations of bare steps to the corresponding allocations of instrumented steps. Training repeats the
// same allocations in each step, and only instrumented steps have tags.
type matches struct {
	program      *program
	matchByAlloc []int32 // match of each allocation, or -1; nil = no allocation has a match
	alignment    []int32 // alignment of the step, for each allocation that has a match
	crossing     []bool  // for each allocation that has a match: see [alignment]
	alignments   []*alignment
	prefetch     prefetch
}

// count returns how many allocations have a match.
func (m *matches) count() int {
	n := 0
	for _, match := range m.matchByAlloc {
		if match >= 0 {
			n++
		}
	}
	return n
}

// of returns the match of an allocation; ok is false if it has none.
func (m *matches) of(alloc int) (match int, ok bool) {
	if m.matchByAlloc == nil || m.matchByAlloc[alloc] < 0 {
		return 0, false
	}
	return int(m.matchByAlloc[alloc]), true
}

// unmatched reports whether an allocation was made in a bare step and has no match. The owner of an unmatched
// allocation is known only from its life and its phase.
func (m *matches) unmatched(f *facts, alloc int) bool {
	_, ok := m.of(alloc)
	return !ok && !f.context.instrumented(f.birthSpan(alloc))
}

// matchBareSteps finds, for each bare step, the instrumented steps that do the same, and matches their allocations.
// matchBareSteps also returns, for each bare step, with which step it was matched.
func matchBareSteps(f *facts) (*matches, []schemas.BareStep) {
	steps := f.context.rank.Steps.Steps
	m := &matches{}
	var all []schemas.BareStep
	bare := false
	for i := range steps {
		bare = bare || steps[i].Recorded && !steps[i].Instrumented
	}
	if !bare {
		return m, nil
	}
	s := newStepMatcher(f)
	m.program = s.program
	for i := range steps {
		if !s.comparable(i) {
			continue
		}
		if !steps[i].Instrumented {
			blocks := s.firstAfter(s.at[i].to) - s.firstAfter(s.at[i].from)
			step := schemas.BareStep{Step: steps[i].Number, Blocks: int64(blocks)}
			for n, al := range s.alignmentsOf(i) {
				if n == 0 {
					step.Like, step.How = new(steps[al.otherStep].Number), al.how
				}
				step.Known += m.take(s, al)
			}
			all = append(all, step)
		}
		if i+1 < len(steps) && !steps[i+1].Instrumented {
			m.prefetch.look(s, i)
		}
	}
	return m, all
}

// take matches the allocations of a bare step that have no match yet, and returns how many it matched.
func (m *matches) take(s *stepMatcher, al *alignment) (taken int64) {
	if m.matchByAlloc == nil {
		n := len(s.f.allocs)
		m.matchByAlloc, m.alignment, m.crossing = slices.Repeat([]int32{-1}, n), make([]int32, n), make([]bool, n)
	}
	m.alignments = append(m.alignments, al)
	al.pairAllocs(s, func(p matchedPair) {
		if m.matchByAlloc[p.alloc] >= 0 {
			return
		}
		m.matchByAlloc[p.alloc], m.crossing[p.alloc] = int32(p.match), p.crossing
		m.alignment[p.alloc] = int32(len(m.alignments) - 1)
		taken++
	})
	return taken
}

// stepMatcher finds, for each step, another step that does the same.
type stepMatcher struct {
	f            *facts
	program      *program
	at           []stretch        // the range of each step
	hashes       []uint64         // hash of what each step does
	instrumented []int            // indexes of the instrumented steps
	byHash       map[uint64][]int // instrumented steps by hash
	beforeByHash map[uint64][]int // steps before instrumented ones, by hash
	parts        partMatcher
	bench        workbench
}

func newStepMatcher(f *facts) *stepMatcher {
	steps := f.context.rank.Steps.Steps
	s := &stepMatcher{f: f, program: newProgram(f.actions), at: make([]stretch, len(steps)),
		hashes: make([]uint64, len(steps)), byHash: map[uint64][]int{}, beforeByHash: map[uint64][]int{}}
	for i := range steps {
		begin, end := f.marks.seqAt(steps[i].BeginK), f.marks.seqAt(steps[i].EndK)
		s.at[i] = stretch{s.program.number[begin], s.program.number[end]}
		if !s.comparable(i) {
			continue
		}
		hash := s.program.hash(f.actions, s.at[i])
		s.hashes[i] = hash
		if steps[i].Instrumented {
			s.instrumented = append(s.instrumented, i)
			s.byHash[hash] = append(s.byHash[hash], i)
		}
		if i+1 < len(steps) && steps[i+1].Instrumented {
			s.beforeByHash[hash] = append(s.beforeByHash[hash], i)
		}
	}
	return s
}

// comparable reports whether a step's events were recorded, so that they can be compared.
func (s *stepMatcher) comparable(i int) bool {
	return s.f.context.rank.Steps.Steps[i].Recorded && s.at[i].to > s.at[i].from
}

// firstAfter returns the index of the first allocation that was made after a program event. Allocations are in order of
// birth.
func (s *stepMatcher) firstAfter(event int32) int {
	return sort.Search(len(s.f.allocs), func(i int) bool { return s.program.number[s.f.allocs[i].AllocSeq] > event })
}

// alignmentsOf aligns a bare step with the instrumented step that does the same. If there is none, it aligns the bare
// step with parts of several instrumented steps.
func (s *stepMatcher) alignmentsOf(i int) []*alignment {
	if al := s.sameOrScaledStep(i, s.byHash); al != nil {
		return []*alignment{al}
	}
	return s.stepsWithSharedParts(i)
}

// sameOrScaledStep aligns step i with the most similar of the nearby steps that do the same; nil if no nearby step does
// the same.
func (s *stepMatcher) sameOrScaledStep(i int, byHash map[uint64][]int) *alignment {
	candidates := nearest(byHash[s.hashes[i]], i, 2)
	differ := make([]int, len(candidates))
	best := -1
	for n, o := range candidates {
		differ[n] = s.sizesThatDiffer(s.at[i], s.at[o])
		if differ[n] >= 0 && (best < 0 || differ[n] < differ[best]) {
			best = n
		}
	}
	// A few sizes may depend on the data, such as the number of distinct ids in a batch.
	if best >= 0 && differ[best] <= s.at[i].len()/20 {
		return s.newAlignment(i, candidates[best], schemas.LikeExact)
	}
	order := make([]int, len(candidates))
	for n := range order {
		order[n] = n
	}
	sort.SliceStable(order, func(a, b int) bool { return differ[order[a]] < differ[order[b]] })
	for _, n := range order {
		if o := candidates[n]; differ[n] >= 0 && s.isScaled(s.at[i], s.at[o]) {
			return s.newAlignment(i, o, schemas.LikeScaled)
		}
	}
	return nil
}

func (s *stepMatcher) newAlignment(i, o int, how string) *alignment {
	return &alignment{step: s.at[i], other: s.at[o], otherStep: o, how: how,
		limit: s.f.marks.seqAt(s.f.context.rank.Steps.Steps[o].EndK)}
}

// nearest returns, of the given steps, those that are closest to step i: at most each steps on either side. Comparing
// with all steps would take quadratic time.
func nearest(steps []int, i, each int) []int {
	n := sort.SearchInts(steps, i)
	return steps[max(n-each, 0):min(n+each, len(steps))]
}
