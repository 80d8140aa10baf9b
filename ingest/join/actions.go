package join

import "github.com/dpsight/dpsight/schemas"

// action describes one program event: whether it allocates or frees, how far away its block ends or began, and the
// family of the phase.
type action uint32

const (
	frees     action = 1 << 8
	allocates action = 2 << 8
)

// samePhase and the following values say how far from an event its block ends or begins: in the same phase, unit or
// step, or beyond.
const (
	samePhase action = iota << 4
	sameUnit
	sameStep
	outside
	reach action = 15 << 4 // these bits hold the reach
)

// crosses reports whether an event belongs to a block that is not both allocated and freed within the event's unit.
func (t action) crosses() bool { return t&reach >= sameStep }

// stepActions has the actions of one step, divided into units.
type stepActions struct {
	of    []action // actions by place in the step, from 1
	size  []int64
	units []unit
}

// unit is a part of a step's events: one forward-backward pair, with the events around it.
type unit struct {
	stretch // range of places in the step
	hash    hash
}

func (t *stepActions) sequence(u *unit) sequence {
	return sequence{t.of[u.from+1 : u.to+1], t.size[u.from+1 : u.to+1]}
}

// actionsOf returns the actions of step i, or nil if some are unknown.
func (s *stepMatcher) actionsOf(i int) *stepActions {
	m := &s.parts
	if t, ok := m.actions[i]; ok {
		return t
	}
	if m.actions == nil {
		m.actions = map[int]*stepActions{}
	}
	t := s.readActions(i)
	m.actions[i] = t
	return t
}

func (s *stepMatcher) readActions(i int) *stepActions {
	at, buffer := s.at[i], &s.parts.buffer
	n := int32(at.len())
	t := &stepActions{}
	if spare := len(s.parts.spare); spare > 0 {
		t, s.parts.spare = s.parts.spare[spare-1], s.parts.spare[:spare-1]
	}
	t.of, t.size, t.units = grown(t.of, int(n)+1), grown(t.size, int(n)+1), t.units[:0]
	s.readPhases(i)
	for e := int32(1); e <= n; e++ {
		if e == 1 || buffer.microbatch[e] != buffer.microbatch[e-1] {
			t.units = append(t.units, unit{stretch: stretch{e - 1, e - 1}})
		}
		t.units[len(t.units)-1].to = e
		event := s.program.seq[at.from+e] - 1
		t.size[e] = s.f.device.Events.Size[event]
		does := allocates
		switch s.f.actions[event] {
		case schemas.ActionGap:
			return nil
		case schemas.ActionFreeRequested:
			does = frees
		}
		t.of[e] = does | outside | action(buffer.phase[e])
	}
	s.readReaches(t, at)
	for u := range t.units {
		h := newHash
		for _, x := range t.of[t.units[u].from+1 : t.units[u].to+1] {
			h = h.add(uint64(x))
		}
		t.units[u].hash = h
	}
	return t
}

// readPhases fills the buffers, by place in step i, with the phase's family, the number of its occurrence, and the
// microbatch.
func (s *stepMatcher) readPhases(i int) {
	at, buffer, f := s.at[i], &s.parts.buffer, s.f
	n := int32(at.len())
	buffer.phase = grown(buffer.phase, int(n)+1)
	buffer.run, buffer.microbatch = grown(buffer.run, int(n)+1), grown(buffer.microbatch, int(n)+1)
	phase, run, microbatch := buffer.phase, buffer.run, buffer.microbatch
	runs := int32(0)
	spans := f.context.rank.Steps.Spans
	first := f.context.span[f.context.rank.Steps.Steps[i].BeginK]
	for k := int(first); k < len(spans) && spans[k].Step == spans[first].Step; k++ {
		from := s.program.number[f.marks.seqAt(spans[k].BeginK)] - at.from
		to := s.program.number[f.marks.seqAt(spans[k].EndK)] - at.from
		family := families[spans[k].Under].recorded()
		for e := max(from, 0) + 1; e <= min(to, n); e++ {
			if e == 1 || phase[e-1] != family {
				runs++
			}
			phase[e], run[e], microbatch[e] = family, runs, spans[k].Microbatch
		}
	}
}

// readReaches sets, for both events of each block that is allocated and freed in the step, how far apart the two events
// lie.
func (s *stepMatcher) readReaches(t *stepActions, at stretch) {
	allocs, p, buffer := s.f.allocs, s.program, &s.parts.buffer
	for a := s.firstAfter(at.from); a < len(allocs) && p.number[allocs[a].AllocSeq] <= at.to; a++ {
		birth := p.number[allocs[a].AllocSeq] - at.from
		death := p.freedAt(allocs[a].FreeRequestedSeq, at.to) - at.from
		if int(death) > at.len() {
			continue
		}
		where := sameStep
		if buffer.run[birth] == buffer.run[death] {
			where = samePhase
		} else if buffer.microbatch[birth] == buffer.microbatch[death] {
			where = sameUnit
		}
		t.of[birth] = t.of[birth]&^reach | where
		t.of[death] = t.of[death]&^reach | where
	}
}
