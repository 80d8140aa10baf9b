package join

import (
	"testing"

	"github.com/dpsight/dpsight/schemas/spool"
)

// Once the agent has stopped following lines, the last line of a thread says nothing about the thread's later requests.
// Older journals do not say when lines were followed. In these, lines were followed in instrumented steps, and in all
// steps of a prediction. Blocks of bare steps have the lines of their matches.
func TestLinesOfTimesInWhichTheyAreFollowed(t *testing.T) {
	const on = instrumented | spool.FlagLines
	for name, c := range map[string]struct {
		first, middle, last uint8
		untimed             bool
		want                [3]uint32
	}{
		"older":            {instrumented, instrumented, bareMode, false, [3]uint32{1, 2, 1}},
		"older, predicted": {instrumented, instrumented, bareMode, true, [3]uint32{1, 2, 3}},
		"for a while":      {on, instrumented, on, false, [3]uint32{1, 0, 3}},
		"predicted":        {on, bareMode | spool.FlagLines, instrumented, true, [3]uint32{1, 2, 0}},
	} {
		w := newWorld(t)
		modes := []uint8{c.first, c.middle, c.last}
		w.mode(c.first)
		var events [3]int
		for i := range modes {
			w.forward(func() {
				w.alloc(main, "logits", 3*mib)
				w.events.SetLine(w.events.Len()-1, uint32(i)+1)
				events[i] = w.events.Len()
			})
			w.backward(0, func() {})
			w.drop(main, "logits")
			w.span(spool.OptimizerBegin, main, 1, func() {})
			w.mode(modes[min(i+1, 2)])
		}
		j := w.join(func(r *Rank) { r.Untimed = c.untimed })
		for i, allocated := range events {
			for l := range j.facts.allocs {
				if j.facts.allocs[l].AllocSeq == int64(allocated) && j.lines[l] != c.want[i] {
					t.Errorf("%s: in step %d the line is %d, want %d", name, i, j.lines[l], c.want[i])
				}
			}
		}
	}
}

// If the agent stops following lines within a phase, later requests of the phase have no line.
func TestLinesThatEndWithinAPhase(t *testing.T) {
	w := newWorld(t)
	w.mode(instrumented | spool.FlagLines)
	w.mark(main, spool.ForwardBegin, fwdFlags, 1)
	before := uint32(len(w.marks))
	w.mode(instrumented)
	after := uint32(len(w.marks))
	w.alloc(engine, "late", 3*mib)
	w.events.SetLine(w.events.Len()-1, 7)
	w.mark(main, spool.ForwardEnd, fwdFlags, 1)
	j := w.join()
	if j.lines[len(j.lines)-1] != 0 {
		t.Error("what another thread asks for has the line that it was on")
	}
	if c := j.facts.context; !c.LinesFollowed(before) || c.LinesFollowed(after) {
		t.Errorf("lines are followed before: %v, after: %v", c.LinesFollowed(before), c.LinesFollowed(after))
	}
}
