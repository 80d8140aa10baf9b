package join

import (
	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
)

// facts is the data about one device that all passes may look up. facts is computed before the first pass, and no pass
// changes it.
type facts struct {
	context *Context   // the phase, module and further facts at each mark
	marks   *positions // where each mark lies among the events
	device  Device
	actions []schemas.Action // action of each event
	allocs  []replay.Alloc   // the allocations, in order of birth
	births  []birth          // facts of each allocation's birth
}

// birth says in which span and module an allocation was made.
type birth struct {
	span   int32 // index in the rank's spans
	module uint32
	dp     bool // in the computation of a DP hook
}

func newFacts(c *Context, d Device) *facts {
	f := &facts{context: c, marks: locateMarks(c, d), device: d, actions: d.Events.Action, allocs: d.Replay.Allocs}
	f.births = findBirths(f)
	return f
}

// findBirths finds the span and module in which each allocation was made. The phase comes from the highest mark so far.
// The module comes from the last mark of the thread that made the allocation, if the phase is still the same.
func findBirths(f *facts) []birth {
	births := make([]birth, len(f.allocs))
	spans := f.context.rank.Steps.Spans
	highest, event := uint32(0), 0
	for i := range f.allocs {
		seq := f.allocs[i].AllocSeq
		for ; event < int(seq); event++ {
			highest = max(highest, f.context.markOf(f.device.Events, event))
		}
		if f.untraced(i) {
			continue
		}
		b := birth{span: f.context.span[highest]}
		own := f.birthMark(i)
		if own != 0 && spans[f.context.span[own]].Group == spans[b.span].Group {
			b.module, b.dp = f.context.module[own], f.context.dp[own]
		}
		births[i] = b
	}
	return births
}

// untraced reports whether an allocation has no birth event: it was made before recording, or in a gap.
func (f *facts) untraced(alloc int) bool {
	seq := f.allocs[alloc].AllocSeq
	return seq == 0 || f.actions[seq-1] == schemas.ActionGap
}

// birthMark returns the mark that a traced allocation's event carries.
func (f *facts) birthMark(alloc int) uint32 {
	return f.context.markOf(f.device.Events, int(f.allocs[alloc].AllocSeq)-1)
}

// birthSpan returns the span in which an allocation was made.
func (f *facts) birthSpan(alloc int) *steps.Span {
	return &f.context.rank.Steps.Spans[f.births[alloc].span]
}

// family returns the family of the phase in which an allocation was made.
func (f *facts) family(alloc int) family { return families[f.birthSpan(alloc).Under] }

// never stands for an event after the last possible one.
const never = 1<<62 - 1

// endOf returns seq, or [never] if seq is 0, which means that there is no end. So ends can be compared.
func endOf(seq int64) int64 {
	if seq == 0 {
		return never
	}
	return seq
}

// end returns the event from which on an allocation no longer counts as allocated.
func (f *facts) end(alloc int) int64 { return endOf(f.allocs[alloc].FreeRequestedSeq) }

// instrumentedPeak returns the first event in set-up or in an instrumented step at which the allocated is as high as
// the peak. instrumentedPeak returns nil if only bare steps reach the peak.
func instrumentedPeak(f *facts) *int64 {
	r := f.device.Replay
	spans := f.context.rank.Steps.Spans
	for i := range spans {
		if !f.context.instrumented(&spans[i]) {
			continue
		}
		from, to := f.marks.seqAt(spans[i].BeginK), f.marks.seqAt(spans[i].EndK)
		if i == 0 {
			from = -1
		}
		if i == len(spans)-1 {
			to = r.Events
		}
		if to <= from { // the span has no event of its own
			continue
		}
		if bytes, seq := r.PeakBetween(from+1, to); bytes == r.PeakAllocated {
			return &seq
		}
	}
	return nil
}
