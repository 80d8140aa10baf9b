package join

import (
	"iter"
	"sort"

	"github.com/dpsight/dpsight/schemas"
)

// Allocations returns the rows of allocations.parquet. Allocations makes the rows one by one, since all rows together
// would take five times the memory of the join's own data.
func (r *Result) Allocations() iter.Seq[schemas.Allocation] {
	f, events := r.facts, r.facts.device.Events
	return rowsOf(len(f.allocs), func(i int) schemas.Allocation {
		a, b, s := &f.allocs[i], &f.births[i], f.birthSpan(i)
		row := schemas.Allocation{RunID: f.context.rank.RunID, Rank: f.context.rank.Rank, Device: f.device.Device,
			AllocID: int64(i) + 1, Address: a.Address, RequestedBytes: a.Requested, BlockBytes: a.Block, OpenBytes: a.Open,
			Stream: a.Stream, Pool: a.Pool,
			AllocSeq: a.AllocSeq, FreeRequestedSeq: a.FreeRequestedSeq, FreeCompletedSeq: a.FreeCompletedSeq,
			Step: s.Step, Microbatch: s.Microbatch, Phase: s.Phase, Module: int64(b.module), DType: r.dtypes[i].name()}
		if len(r.lines) > 0 {
			row.Line = int64(r.lines[i])
		}
		switch {
		case !f.untraced(i):
			row.AllocTimeNS, row.Stack = events.TimeNS[a.AllocSeq-1], int64(events.Stack[a.AllocSeq-1])
		case a.AllocSeq > 0:
			row.Step, row.Microbatch, row.Phase = -1, 0, ""
		default:
			row.Step, row.Microbatch = -1, 0
			if a.FreeRequestedSeq <= 0 && a.FreeCompletedSeq == 0 {
				row.Stack = int64(f.device.Survivors[a.Address])
			}
		}
		if a.FreeRequestedSeq > 0 {
			row.FreeTimeNS = events.TimeNS[a.FreeRequestedSeq-1]
		}
		return row
	})
}

// Owners returns the rows of owners.parquet, and makes them one by one.
func (r *Result) Owners() iter.Seq[schemas.Owner] {
	rank := r.facts.context.rank
	return rowsOf(len(r.owners.all), func(i int) schemas.Owner {
		o := &r.owners.all[i]
		return schemas.Owner{RunID: rank.RunID, Rank: rank.Rank, Device: r.facts.device.Device,
			AllocID: int64(o.alloc) + 1, Category: schemas.Categories[o.category],
			Name: rank.Names[o.name], Module: int64(o.module),
			BeginSeq: o.begin, EndSeq: o.end, EndObserved: o.observed, Evidence: evidences[o.evidence]}
	})
}

// rowsOf returns a sequence of n rows that the function row makes.
func rowsOf[T any](n int, row func(i int) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := range n {
			if !yield(row(i)) {
				return
			}
		}
	}
}

// Phases returns the rows of phases.parquet for the rank's phases, with the bytes of this device.
func (r *Result) Phases() []schemas.Phase {
	f, replayed := r.facts, r.facts.device.Replay
	rows := make([]schemas.Phase, 0, len(f.context.times.Phases))
	for i, row := range f.context.times.Phases {
		row.Device = f.device.Device
		if s := &f.context.rank.Steps.Spans[i]; replayed != nil && !f.context.pausedIn(s) {
			row.BeginSeq, row.EndSeq = f.marks.seqAt(s.BeginK), f.marks.seqAt(s.EndK)
			if i == len(f.context.times.Phases)-1 {
				row.EndSeq = replayed.Events
			}
			row.AllocatedBegin = new(replayed.Allocated[row.BeginSeq])
			row.AllocatedEnd = new(replayed.Allocated[row.EndSeq])
			peak, at := replayed.PeakBetween(row.BeginSeq, row.EndSeq)
			row.PeakBytes, row.PeakSeq = &peak, at
		}
		rows = append(rows, row)
	}
	return rows
}

// Steps returns the rows of steps.parquet for the rank's steps, with the bytes of this device.
func (r *Result) Steps() []schemas.Step {
	f, replayed := r.facts, r.facts.device.Replay
	rows := make([]schemas.Step, 0, len(f.context.times.Steps))
	for i, row := range f.context.times.Steps {
		s := &f.context.rank.Steps.Steps[i]
		row.Device = f.device.Device
		if row.Recorded = s.Recorded && replayed != nil; row.Recorded {
			row.BeginSeq, row.EndSeq = f.marks.seqAt(s.BeginK), f.marks.seqAt(s.EndK)
			row.AllocatedBegin = new(replayed.Allocated[row.BeginSeq])
			row.AllocatedEnd = new(replayed.Allocated[row.EndSeq])
			row.ReservedBegin = new(replayed.Reserved.At(row.BeginSeq))
			row.ReservedEnd = new(replayed.Reserved.At(row.EndSeq))
			peak, _ := replayed.PeakBetween(row.BeginSeq, row.EndSeq)
			row.PeakBytes = &peak
		} else {
			if p := f.checkpointAt(s.BeginK); p != nil {
				row.AllocatedBegin, row.ReservedBegin = &p.AllocatedBytes, &p.ReservedBytes
			}
			if p := f.checkpointAt(s.EndK); p != nil {
				row.AllocatedEnd, row.ReservedEnd = &p.AllocatedBytes, &p.ReservedBytes
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// checkpointAt returns the checkpoint of the drain that follows the end of a step at mark k, before the next step; nil
// if there was no drain.
func (f *facts) checkpointAt(k uint32) *schemas.Checkpoint {
	if int(k) >= len(f.context.span) {
		return nil
	}
	checkpoints := f.device.Checkpoints
	at := sort.Search(len(checkpoints), func(i int) bool { return checkpoints[i].K >= int64(k) })
	if at == len(checkpoints) {
		return nil
	}
	p := &checkpoints[at]
	if p.K >= int64(len(f.context.span)) {
		return nil
	}
	a, b := &f.context.rank.Steps.Spans[f.context.span[k]], &f.context.rank.Steps.Spans[f.context.span[p.K]]
	if a.Step != b.Step || a.Group != b.Group || b.Phase != schemas.PhaseBetween {
		return nil
	}
	for i := f.context.span[k]; i <= f.context.span[p.K]; i++ {
		if f.context.rank.Steps.Spans[i].Phase != schemas.PhaseBetween {
			return nil
		}
	}
	return p
}
