package ingest

import (
	"github.com/dpsight/dpsight/ingest/annotations"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// markPhases makes marks for the phases of a snapshot's device, in the form that recordings have. markPhases adds the
// marks to the journal after the marks of earlier devices, and gives each event the last mark before it. The device
// number serves as the thread. The phases of a snapshot only name moments: rules find the categories of its blocks from
// stacks and lives, and do not use these phases.
func markPhases(rec *recording, found []annotations.Interval, marked *spool.Journal) *steps.Result {
	if len(found) == 0 {
		return steps.Derive(nil, nil)
	}
	ids := map[string]uint32{}
	for id, name := range marked.Names {
		ids[name] = id
	}
	k, at := uint32(len(marked.Marks)), int64(0)
	carry := uint32(0) // the number that events before the first mark carry
	times := rec.events.TimeNS
	spans := []steps.Span{{Phase: schemas.PhaseBetween, Under: schemas.PhaseBetween, Step: -1, StartNS: times[0]}}
	open := func(phase string, begin, ns int64) {
		for ; at < begin; at++ {
			rec.events.Mark[at] = carry
		}
		k++
		carry = k
		last := &spans[len(spans)-1]
		last.EndK, last.EndNS = k, max(ns, last.StartNS)
		spans = append(spans, steps.Span{Phase: phase, Under: schemas.PhaseBetween, Step: -1,
			Group: int32(len(spans)), BeginK: k, StartNS: ns})
		mark := spool.Mark{K: k, Thread: uint16(rec.device), TimeNS: ns, Kind: spool.PhaseEnd}
		if phase != schemas.PhaseBetween {
			if ids[phase] == 0 {
				ids[phase] = uint32(len(marked.Names)) + 1
				marked.Names[ids[phase]] = phase
			}
			mark.Kind, mark.A = spool.PhaseBegin, uint64(ids[phase])
		}
		marked.Marks = append(marked.Marks, mark)
	}
	for i, iv := range found {
		if i > 0 && found[i-1].End < iv.Begin {
			open(schemas.PhaseBetween, found[i-1].End, found[i-1].EndNS)
		}
		open(iv.Phase, iv.Begin, iv.StartNS)
	}
	if last := found[len(found)-1]; last.End < int64(len(times)) {
		open(schemas.PhaseBetween, last.End, last.EndNS)
	}
	for ; at < int64(len(times)); at++ {
		rec.events.Mark[at] = carry
	}
	last := &spans[len(spans)-1]
	last.EndK, last.EndNS = k+1, max(times[len(times)-1], last.StartNS)
	return &steps.Result{Spans: spans, Groups: int32(len(spans)), TailInstrumented: true}
}
