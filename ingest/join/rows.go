package join

import (
	"sort"

	"github.com/dpsight/dpsight/schemas"
)

// batchRows bounds the rows that exist at a time: a row of strings takes five times what the join keeps of it.
const batchRows = 16 << 10

// Allocations makes the rows of allocations.parquet and hands them to emit in batches, which it may not keep.
func (r *Result) Allocations(emit func([]schemas.Allocation) error) error {
	f, events := r.facts, r.facts.device.Events
	if f.device.Replay == nil {
		return nil
	}
	return batches(len(f.allocs), emit, func(i int) schemas.Allocation {
		a, b, s := &f.allocs[i], &f.births[i], f.birthSpan(i)
		row := schemas.Allocation{RunID: f.context.rank.RunID, Rank: f.context.rank.Rank, Device: f.device.Device,
			AllocID: int64(i) + 1, Address: a.Address, RequestedBytes: a.Requested, BlockBytes: a.Block, OpenBytes: a.Open,
			Stream: a.Stream, Pool: a.Pool,
			AllocSeq: a.AllocSeq, FreeRequestedSeq: a.FreeRequestedSeq, FreeCompletedSeq: a.FreeCompletedSeq,
			Step: s.Step, Microbatch: s.Microbatch, Phase: s.Phase, Module: int64(b.module), DType: r.dtypes[i].name()}
		switch {
		case !f.untraced(i):
			row.AllocTimeNS, row.Stack = events.TimeNS[a.AllocSeq-1], int64(events.Stack[a.AllocSeq-1])
		case a.AllocSeq > 0:
			row.Step, row.Microbatch, row.Phase = -1, 0, ""
		default:
			row.Step, row.Microbatch = -1, 0
		}
		if a.FreeRequestedSeq > 0 {
			row.FreeTimeNS = events.TimeNS[a.FreeRequestedSeq-1]
		}
		return row
	})
}

// Owners makes the rows of owners.parquet and hands them to emit in batches, which it may not keep.
func (r *Result) Owners(emit func([]schemas.Owner) error) error {
	rank := r.facts.context.rank
	return batches(len(r.owners.all), emit, func(i int) schemas.Owner {
		o := &r.owners.all[i]
		return schemas.Owner{RunID: rank.RunID, Rank: rank.Rank, Device: r.facts.device.Device,
			AllocID: int64(o.alloc) + 1, Category: schemas.Categories[o.category],
			Name: rank.Names[o.name], Module: int64(o.module),
			BeginSeq: o.begin, EndSeq: o.end, EndObserved: o.observed, Evidence: evidences[o.evidence]}
	})
}

// batches hands n rows made by row to emit, a batch at a time.
func batches[T any](n int, emit func([]T) error, row func(i int) T) error {
	rows := make([]T, 0, min(n, batchRows))
	for i := range n {
		if rows = append(rows, row(i)); len(rows) == batchRows {
			if err := emit(rows); err != nil {
				return err
			}
			rows = rows[:0]
		}
	}
	return emit(rows)
}

// Phases are the rows of phases.parquet: the rank's, with the bytes of this device.
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
			row.AllocatedBegin, row.AllocatedEnd = replayed.Allocated[row.BeginSeq], replayed.Allocated[row.EndSeq]
			row.PeakBytes, row.PeakSeq = replayed.PeakBetween(row.BeginSeq, row.EndSeq)
		}
		rows = append(rows, row)
	}
	return rows
}

// Steps are the rows of steps.parquet: the rank's, with the bytes of this device.
func (r *Result) Steps() []schemas.Step {
	f, replayed := r.facts, r.facts.device.Replay
	rows := make([]schemas.Step, 0, len(f.context.times.Steps))
	for i, row := range f.context.times.Steps {
		s := &f.context.rank.Steps.Steps[i]
		row.Device = f.device.Device
		if row.Recorded = s.Recorded && replayed != nil; row.Recorded {
			row.BeginSeq, row.EndSeq = f.marks.seqAt(s.BeginK), f.marks.seqAt(s.EndK)
			row.AllocatedBegin, row.AllocatedEnd = replayed.Allocated[row.BeginSeq], replayed.Allocated[row.EndSeq]
			row.ReservedBegin, row.ReservedEnd = replayed.Reserved.At(row.BeginSeq), replayed.Reserved.At(row.EndSeq)
			row.PeakBytes, _ = replayed.PeakBetween(row.BeginSeq, row.EndSeq)
		} else {
			if p := f.checkpointAt(s.BeginK); p != nil {
				row.AllocatedBegin, row.ReservedBegin = p.AllocatedBytes, p.ReservedBytes
			}
			if p := f.checkpointAt(s.EndK); p != nil {
				row.AllocatedEnd, row.ReservedEnd = p.AllocatedBytes, p.ReservedBytes
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// checkpointAt is the drain between the end of a step at mark k and whatever comes next; nil if there was none.
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
