package ingest

import (
	"github.com/dpsight/dpsight/ingest/join"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// addFailures adds the failed requests for memory to the report, each with its step, phase and module.
func (r *report) addFailures(j *spool.Journal, ctx *join.Context, recs []*recording) {
	paths := map[uint32]string{}
	for _, m := range j.Modules {
		paths[m.ID] = m.Path
		if m.Path == "" {
			paths[m.ID] = m.Class
		}
	}
	noted, raised := map[uint32]bool{}, map[uint32]bool{}
	for i := range j.Marks {
		switch m := &j.Marks[i]; {
		case m.Kind == spool.OOM && m.Flags&spool.FlagNoted != 0:
			noted[m.K] = true
		case m.Kind == spool.Raised:
			raised[uint32(m.A)] = true
		}
	}
	fatal := -1
	if j.Exception != nil && j.Exception.OOM { // the exception is of the last request from which torch did not recover
		for i, o := range j.OOMs {
			if !noted[o.K] || raised[o.K] {
				fatal = i
			}
		}
	}
	seen := map[int32]int{}
	for i, o := range j.OOMs {
		step, phase, module := ctx.At(o.K)
		if o.Module > 0 {
			module = o.Module
		}
		row := schemas.OOM{Rank: j.Rank, Device: o.Device, RequestedBytes: o.Requested, DeviceFreeBytes: o.Free,
			LimitBytes: o.Limit,
			Step:       step, Phase: phase, Module: paths[module],
			Fatal: i == fatal}
		if noted[o.K] {
			row.Raised = new(raised[o.K])
		}
		for _, rec := range recs {
			switch {
			case rec.device != o.Device:
			case o.Listed:
				row.Seq = rec.listedAfter(o.K)
			case o.Recorded == nil || *o.Recorded:
				row.Seq = rec.failure(seen[o.Device])
				if row.Seq > 0 && ctx.LinesFollowed(o.K) {
					row.Line = int64(rec.events.LineOf(int(row.Seq) - 1))
				}
			}
		}
		if row.Line == 0 {
			row.Line = int64(o.Line)
		}
		if o.Recorded == nil || *o.Recorded {
			seen[o.Device]++
		}
		// An attached process's record does not show what the process did after its last failed request.
		row.EndUnknown = r.attached && i == len(j.OOMs)-1
		r.OOMs = append(r.OOMs, row)
	}
}

// addTraceFailures adds the failed requests for memory in torch's own trace to the report. The trace shows neither the
// step and phase nor whether the script went on.
func (r *report) addTraceFailures(rank int32, rec *recording) {
	for i, a := range rec.events.Action {
		if a == schemas.ActionOOM {
			r.OOMs = append(r.OOMs, schemas.OOM{Rank: rank, Device: rec.device, Seq: int64(i) + 1,
				RequestedBytes: max(rec.events.Size[i], 0), DeviceFreeBytes: int64(rec.events.Addr[i]), Step: -1,
				EndUnknown: true})
		}
	}
}

// listedAfter returns the last event before the drain that follows the failed request at mark k; 0 if there is none.
// The drain after a failed request has a list of the allocator's blocks, which were tagged before it.
func (rec *recording) listedAfter(k uint32) int64 {
	for i := range rec.checkpoints {
		if c := &rec.checkpoints[i]; c.Reason == schemas.ReasonOOM && c.Recorded && c.K > int64(k) {
			return c.Seq
		}
	}
	return 0
}

// failure returns the event of the n-th failed request (from 0); 0 if the recording has no such event.
func (rec *recording) failure(n int) int64 {
	for i, a := range rec.events.Action {
		if a == schemas.ActionOOM {
			if n == 0 {
				return int64(i) + 1
			}
			n--
		}
	}
	return 0
}
