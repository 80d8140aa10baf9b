package join

import (
	"slices"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/stackrules"
	"github.com/dpsight/dpsight/schemas"
)

// stackFinder determines the categories of allocations in recordings without marks, from the roles of their stacks and
// from their lives.
type stackFinder struct {
	f *facts
	// The events, in order, at which each part of the program requested or freed memory.
	forward, backward, update []int64
	elsewhere                 []int64      // allocations that do not belong to the optimizer
	recorded                  bool         // allocations have stacks, so Python did not make one without a stack
	workspaces                map[int]bool // allocations that are workspaces
}

// ownByStack assigns owners from stacks to allocations whose owner is known only by phase, or that are untraced.
// ownByStack changes nothing for recordings with marks, since their stacks have no meanings.
func ownByStack(f *facts, owners lists[owner]) lists[owner] {
	if f.device.Meanings == nil {
		return owners
	}
	s := newStackFinder(f)
	for i := range owners.all {
		o := &owners.all[i]
		if o.evidence != byPhase && o.category != untraced {
			continue
		}
		if c, ok := s.claim(int(o.alloc)); ok {
			o.category, o.evidence = c, byStack
		}
	}
	return owners
}

func newStackFinder(f *facts) *stackFinder {
	s := &stackFinder{f: f}
	for i, a := range f.actions {
		s.recorded = s.recorded || a == schemas.ActionAlloc && f.device.Events.Stack[i] != 0
	}
	for i, a := range f.actions {
		seq, role := int64(i)+1, stackrules.None
		switch a {
		case schemas.ActionAlloc:
			if role = s.at(i).Role; role != stackrules.Optimizer && role != stackrules.State {
				s.elsewhere = append(s.elsewhere, seq)
			}
		case schemas.ActionFreeRequested:
			role = f.device.Meanings[f.device.Events.Stack[i]].Role
		}
		switch role {
		case stackrules.Forward:
			s.forward = append(s.forward, seq)
		case stackrules.Backward, stackrules.Gradient:
			s.backward = append(s.backward, seq)
		case stackrules.Optimizer, stackrules.State:
			s.update = append(s.update, seq)
		}
	}
	s.findWorkspaces()
	return s
}

// findWorkspaces finds the workspaces that torch keeps for cuBLAS. A block is one if it has the size of a workspace, is
// not freed, and is the only such block of its stream and thread. If a stream and a thread keep several blocks of that
// size, the blocks may be tensors.
func (s *stackFinder) findWorkspaces() {
	type key struct {
		stream   uint64
		size     int64
		backward bool // autograd runs on a thread of its own
	}
	kept := map[key][]int{}
	for i := range s.f.allocs {
		a := &s.f.allocs[i]
		role := s.meaning(a).Role
		if lives(a) && slices.Contains(workspaceSizes, a.Requested) &&
			(role == stackrules.Forward || role == stackrules.Backward) {
			k := key{a.Stream, a.Requested, role == stackrules.Backward}
			kept[k] = append(kept[k], i)
		}
	}
	s.workspaces = map[int]bool{}
	for _, of := range kept {
		if len(of) == 1 {
			s.workspaces[of[0]] = true
		}
	}
}

// at returns the meaning of an event's stack. An event without a stack counts as backward, on autograd's threads, if
// other events have stacks.
func (s *stackFinder) at(event int) stackrules.Meaning {
	stack := s.f.device.Events.Stack[event]
	if stack == 0 && s.recorded {
		return stackrules.Meaning{Role: stackrules.Backward}
	}
	return s.f.device.Meanings[stack]
}

// meaning returns the meaning of the stack that requested an allocation, if it is known.
func (s *stackFinder) meaning(a *replay.Alloc) stackrules.Meaning {
	switch {
	case a.AllocSeq > 0 && (s.recorded || s.f.device.Events.Stack[a.AllocSeq-1] != 0):
		return s.at(int(a.AllocSeq) - 1)
	case a.FreeRequestedSeq <= 0 && a.FreeCompletedSeq == 0:
		// The allocator's list may have stacks for blocks without an allocation event. A block without a stack in the
		// list was made before torch recorded stacks.
		if stack := s.f.device.Survivors[a.Address]; stack != 0 {
			return s.f.device.Meanings[stack]
		}
	}
	return stackrules.Meaning{}
}

// claim returns the category that follows from an allocation's stack and life; false = none follows.
func (s *stackFinder) claim(alloc int) (categoryIndex, bool) {
	a := &s.f.allocs[alloc]
	of := s.meaning(a)
	switch {
	case of.Category != "":
		return index(of.Category), true
	case s.workspaces[alloc]:
		return workspace, true
	}
	switch of.Role {
	case stackrules.Workspace:
		return workspace, true
	case stackrules.Data:
		return inputs, true
	case stackrules.State:
		return optimizerState, true
	case stackrules.Gradient:
		return gradients, true
	case stackrules.Clip:
		return clipTemporaries, true
	case stackrules.PerSample:
		if s.reaches(a, s.update) {
			return perSampleGradients, true
		}
		return clipTemporaries, true
	case stackrules.Optimizer:
		if s.reaches(a, s.elsewhere) || a.AllocSeq == 0 {
			return optimizerState, true
		}
		return optimizerTemporaries, true
	case stackrules.Setup:
		return parameters, a.AllocSeq == 0 || lives(a) || s.reaches(a, s.forward)
	case stackrules.Backward:
		if a.AllocSeq == 0 || lives(a) || s.reaches(a, s.update) || len(s.update) == 0 && s.reaches(a, s.forward) {
			return gradients, true
		}
		return activationGradients, true
	case stackrules.Forward:
		return s.ofForward(a)
	}
	return 0, false
}

// ofForward returns the category of a block that a module's call made. The block is an activation if it lives when a
// backward pass begins, or if recording ended before a backward pass began. The owner of a block that survives two
// updates is unknown. If no backward pass was recorded, a block is an activation if other code than a module's call
// frees it.
func (s *stackFinder) ofForward(a *replay.Alloc) (categoryIndex, bool) {
	switch {
	case s.count(a, s.update) > 1, a.AllocSeq == 0 && len(s.backward) > 0:
		return 0, false
	case s.reaches(a, s.backward), lives(a), len(s.backward) == 0 && !s.freedIn(a, stackrules.Forward):
		return activations, true
	}
	return forwardTemporaries, true
}

// freedIn reports whether a part of the program freed an allocation, according to the stack of the free.
func (s *stackFinder) freedIn(a *replay.Alloc, role stackrules.Role) bool {
	if a.FreeRequestedSeq <= 0 {
		return false
	}
	stack := s.f.device.Events.Stack[a.FreeRequestedSeq-1]
	return stack == 0 || s.f.device.Meanings[stack].Role == role
}

// lives reports whether an allocation is still live when recording ends.
func lives(a *replay.Alloc) bool { return a.FreeRequestedSeq == 0 }

// reaches reports whether any of the events happens while an allocation is live.
func (s *stackFinder) reaches(a *replay.Alloc, events []int64) bool {
	i, _ := slices.BinarySearch(events, a.AllocSeq+1)
	return i < len(events) && events[i] < endOf(a.FreeRequestedSeq)
}

// count returns through how many groups of the given events an allocation lives. Events belong to one group if no other
// part of the program acts between them.
func (s *stackFinder) count(a *replay.Alloc, events []int64) int {
	n := 0
	for i, _ := slices.BinarySearch(events, a.AllocSeq+1); i < len(events) && events[i] < endOf(a.FreeRequestedSeq); n++ {
		next, _ := slices.BinarySearch(s.forward, events[i])
		if next == len(s.forward) {
			return n + 1
		}
		i, _ = slices.BinarySearch(events, s.forward[next])
	}
	return n
}

// Shares divides the bytes allocated at one moment by evidence.
type Shares struct{ Stack, Other, Untraced, Rest int64 }

// SharesAt divides the requested bytes that are allocated just after an event by their evidence.
func (r *Result) SharesAt(seq int64) (s Shares) {
	for i := range r.facts.allocs {
		a := &r.facts.allocs[i]
		if !a.LiveAt(seq) {
			continue
		}
		into := &s.Other
		for _, o := range r.owners.of(i) {
			if o.begin > seq || o.end != 0 && o.end <= seq {
				continue
			}
			switch {
			case o.category == untraced:
				into = &s.Untraced
			case o.evidence == byStack:
				into = &s.Stack
			case o.category != other:
				into = &s.Rest
			}
			break
		}
		*into += a.Requested
	}
	return s
}
