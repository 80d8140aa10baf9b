package join

import (
	"sort"

	"github.com/dpsight/dpsight/schemas"
)

// program numbers the events that the program caused: allocs and requests to free, and gaps, which hide some. Segments
// come and go, and frees complete, as the allocator sees fit; so one step repeats another in these events only.
type program struct {
	number []int32 // by seq: program events up to it
	seq    []int32 // by number: its seq
}

func newProgram(e *schemas.EventColumns) *program {
	p := &program{number: make([]int32, e.Len()+1), seq: []int32{0}}
	for i, a := range e.Action {
		if a == schemas.ActionAlloc || a == schemas.ActionFreeRequested || a == schemas.ActionGap {
			p.seq = append(p.seq, int32(i+1))
		}
		p.number[i+1] = int32(len(p.seq) - 1)
	}
	return p
}

// stretch is the program events of one step: (from, to].
type stretch struct{ from, to int32 }

func (s stretch) len() int { return int(s.to - s.from) }

// death is the program event that ends a life, or the first one after the step if it outlives that.
func (p *program) death(free int64, to int32) int32 {
	if free == 0 || p.number[free] > to {
		return to + 1
	}
	return p.number[free]
}

// born is the first life that was born after a program event: lives are in order of birth.
func (j *Joined) born(p *program, after int32) int {
	lives := j.dev.Replay.Allocs
	return sort.Search(len(lives), func(l int) bool { return p.number[lives[l].AllocSeq] > after })
}

// at is the event that lies as far behind program event n as event seq behind the one before it: between two program
// events there are those of the allocator.
func (p *program) at(n int32, seq int64) int64 {
	n = min(n, int32(len(p.seq)-1))
	next := int64(len(p.number))
	if int(n)+1 < len(p.seq) {
		next = int64(p.seq[n+1])
	}
	return min(int64(p.seq[n])+seq-int64(p.seq[p.number[seq]]), next-1)
}

// later is the event that lies so many program events after another.
func (p *program) later(seq int64, events int32) int64 { return p.at(p.number[seq]+events, seq) }
