package join

import "github.com/dpsight/dpsight/schemas"

// program numbers the program events: allocations, requests to free, and gaps, which hide program events. Only program
// events repeat from step to step. All other events depend on the allocator, which decides when to reserve and release
// segments and when frees complete.
type program struct {
	number []int32 // number of program events up to each event
	seq    []int32 // event with each number
}

func newProgram(actions []schemas.Action) *program {
	p := &program{number: make([]int32, len(actions)+1), seq: []int32{0}}
	for i, a := range actions {
		if a == schemas.ActionAlloc || a == schemas.ActionFreeRequested || a == schemas.ActionGap {
			p.seq = append(p.seq, int32(i+1))
		}
		p.number[i+1] = int32(len(p.seq) - 1)
	}
	return p
}

// stretch is a range of program events, such as those of one step: the events after from, up to and including to.
type stretch struct{ from, to int32 }

func (s stretch) len() int { return int(s.to - s.from) }

// hash returns a hash of the actions of a step.
func (p *program) hash(actions []schemas.Action, s stretch) uint64 {
	h := newHash
	for _, seq := range p.seq[s.from+1 : s.to+1] {
		h = h.add(uint64(actions[seq-1]))
	}
	return uint64(h)
}

// hash is an FNV-1a hash of numbers.
type hash uint64

const newHash hash = 14695981039346656037

func (h hash) add(n uint64) hash { return (h ^ hash(n)) * 1099511628211 }

// freedAt returns the program event that frees an allocation, or the first program event after the step if the
// allocation outlives the step.
func (p *program) freedAt(free int64, to int32) int32 {
	if free == 0 || p.number[free] > to {
		return to + 1
	}
	return p.number[free]
}

// at returns the event that lies as many events after program event n as event seq lies after the program event before
// seq. Events of the allocator itself lie between program events.
func (p *program) at(n int32, seq int64) int64 {
	n = min(n, int32(len(p.seq)-1))
	next := int64(len(p.number))
	if int(n)+1 < len(p.seq) {
		next = int64(p.seq[n+1])
	}
	return min(int64(p.seq[n])+seq-int64(p.seq[p.number[seq]]), next-1)
}

// later returns the event that lies the given number of program events after event seq.
func (p *program) later(seq int64, events int32) int64 { return p.at(p.number[seq]+events, seq) }
