package join

import (
	"sort"

	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
)

// batchRows bounds the rows that exist at a time: a row of strings takes five times what the join keeps of it.
const batchRows = 16 << 10

// Allocations makes the rows of allocations.parquet and hands them to emit in batches, which it may not keep.
func (j *Joined) Allocations(emit func([]schemas.Allocation) error) error {
	if j.dev.Replay == nil {
		return nil
	}
	c, e := j.ctx, j.dev.Events
	rows := make([]schemas.Allocation, 0, batchRows)
	lives := j.dev.Replay.Allocs
	for l := range lives {
		a, b := &lives[l], &j.births[l]
		s := &c.rank.Steps.Spans[b.span]
		row := schemas.Allocation{RunID: c.rank.RunID, Rank: c.rank.Rank, Device: j.dev.Device, AllocID: int64(l) + 1,
			Address: a.Address, RequestedBytes: a.Requested, BlockBytes: a.Block, Stream: a.Stream, Pool: a.Pool,
			AllocSeq: a.AllocSeq, FreeRequestedSeq: a.FreeRequestedSeq, FreeCompletedSeq: a.FreeCompletedSeq,
			Step: s.Step, Microbatch: s.Microbatch, Phase: s.Phase, Module: int64(b.module), DType: b.dtypeName()}
		switch {
		case !j.untraced(a):
			row.AllocTimeNS, row.Stack = e.TimeNS[a.AllocSeq-1], int64(e.Stack[a.AllocSeq-1])
		case a.AllocSeq > 0:
			row.Step, row.Microbatch, row.Phase = -1, 0, ""
		default:
			row.Step, row.Microbatch = -1, 0
		}
		if a.FreeRequestedSeq > 0 {
			row.FreeTimeNS = e.TimeNS[a.FreeRequestedSeq-1]
		}
		if a.LiveAt(j.peak) {
			row.CategoryAtPeak = schemas.Categories[j.categoryAt(int32(l), j.peak)]
		}
		if rows = append(rows, row); len(rows) == batchRows {
			if err := emit(rows); err != nil {
				return err
			}
			rows = rows[:0]
		}
	}
	return emit(rows)
}

// categoryAt is the category that a life counts under just after event seq, at which it is live.
func (j *Joined) categoryAt(life int32, seq int64) categoryIndex {
	for i := j.ownerAt[life]; i < j.ownerAt[life+1]; i++ {
		if o := &j.owners[i]; o.begin <= seq && seq < lifeEnd(o.end) {
			return o.category
		}
	}
	return other
}

// Owners makes the rows of owners.parquet and hands them to emit in batches, which it may not keep.
func (j *Joined) Owners(emit func([]schemas.Owner) error) error {
	rows := make([]schemas.Owner, 0, batchRows)
	for i := range j.owners {
		o := &j.owners[i]
		row := schemas.Owner{RunID: j.ctx.rank.RunID, Rank: j.ctx.rank.Rank, Device: j.dev.Device,
			AllocID:  int64(o.life) + 1,
			Category: schemas.Categories[o.category], Name: j.ctx.rank.Names[o.name], Module: int64(o.module),
			BeginSeq: o.begin, EndSeq: o.end, EndObserved: o.observed, Evidence: evidences[o.evidence]}
		if rows = append(rows, row); len(rows) == batchRows {
			if err := emit(rows); err != nil {
				return err
			}
			rows = rows[:0]
		}
	}
	return emit(rows)
}

// Phases are the rows of phases.parquet.
func (j *Joined) Phases() []schemas.Phase {
	c, spans := j.ctx, j.ctx.rank.Steps.Spans
	gpu := c.gpuTimes()
	rows := make([]schemas.Phase, 0, len(spans))
	for i := range spans {
		s := &spans[i]
		row := schemas.Phase{RunID: c.rank.RunID, Rank: c.rank.Rank, Device: j.dev.Device, Step: s.Step,
			Microbatch: s.Microbatch,
			Phase:      s.Phase, BeginK: int64(s.BeginK), EndK: int64(s.EndK), StartNS: s.StartNS, EndNS: s.EndNS,
			GPUNS: gpu[i]}
		if r := j.dev.Replay; r != nil && !c.pausedIn(s) {
			row.BeginSeq, row.EndSeq = j.seqAt(s.BeginK), j.seqAt(s.EndK)
			if i == len(spans)-1 {
				row.EndSeq = r.Events
			}
			row.AllocatedBegin, row.AllocatedEnd = r.Allocated[row.BeginSeq], r.Allocated[row.EndSeq]
			row.PeakBytes, row.PeakSeq = r.PeakBetween(row.BeginSeq, row.EndSeq)
		}
		rows = append(rows, row)
	}
	return rows
}

// pausedIn reports whether some of a span was not recorded: nothing is known of its bytes.
func (c *Context) pausedIn(s *steps.Span) bool {
	n := uint32(len(c.paused))
	return s.BeginK < n && c.paused[s.BeginK] || s.EndK > s.BeginK && s.EndK <= n && c.paused[s.EndK-1]
}

// Steps are the rows of steps.parquet.
func (j *Joined) Steps() []schemas.Step {
	c := j.ctx
	gpu, spans := make([]int64, len(c.rank.Steps.Steps)), make([]schemas.Phase, len(c.rank.Steps.Spans))
	for i, ns := range c.gpuTimes() {
		s := &c.rank.Steps.Spans[i]
		if spans[i] = (schemas.Phase{Step: s.Step, Phase: s.Phase, GPUNS: ns}); s.Step >= 0 &&
			s.Step < int64(len(gpu)) {
			gpu[s.Step] += ns
		}
	}
	for s := range schemas.Captured(spans) { // it did not run
		if s.Step < int64(len(gpu)) {
			gpu[s.Step] = 0
		}
	}
	var rows []schemas.Step
	for i := range c.rank.Steps.Steps {
		s := &c.rank.Steps.Steps[i]
		row := schemas.Step{RunID: c.rank.RunID, Rank: c.rank.Rank, Device: j.dev.Device, Step: s.Number,
			Microbatches: s.Microbatches,
			Warmup:       s.Warmup, Instrumented: s.Instrumented, Recorded: s.Recorded && j.dev.Replay != nil,
			Unphased: s.Unphased, Samples: s.Samples, Tokens: s.Tokens,
			BeginK: int64(s.BeginK), EndK: int64(s.EndK), StartNS: s.StartNS, EndNS: s.EndNS,
			WallNS: max(s.EndNS-s.StartNS-s.DrainNS, 0), GPUNS: gpu[i]}
		if row.Recorded {
			r := j.dev.Replay
			row.BeginSeq, row.EndSeq = j.seqAt(s.BeginK), j.seqAt(s.EndK)
			row.AllocatedBegin, row.AllocatedEnd = r.Allocated[row.BeginSeq], r.Allocated[row.EndSeq]
			row.ReservedBegin, row.ReservedEnd = r.Reserved.At(row.BeginSeq), r.Reserved.At(row.EndSeq)
			row.PeakBytes, _ = r.PeakBetween(row.BeginSeq, row.EndSeq)
		} else {
			if p := j.checkpointAt(s.BeginK); p != nil {
				row.AllocatedBegin, row.ReservedBegin = p.AllocatedBytes, p.ReservedBytes
			}
			if p := j.checkpointAt(s.EndK); p != nil {
				row.AllocatedEnd, row.ReservedEnd = p.AllocatedBytes, p.ReservedBytes
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// checkpointAt is the drain between the end of a step at mark k and whatever comes next; nil if there was none.
func (j *Joined) checkpointAt(k uint32) *schemas.Checkpoint {
	c := j.ctx
	if int(k) >= len(c.span) {
		return nil
	}
	at := sort.Search(len(j.dev.Checkpoints), func(i int) bool { return j.dev.Checkpoints[i].K >= int64(k) })
	if at == len(j.dev.Checkpoints) {
		return nil
	}
	p := &j.dev.Checkpoints[at]
	if p.K >= int64(len(c.span)) {
		return nil
	}
	a, b := &c.rank.Steps.Spans[c.span[k]], &c.rank.Steps.Spans[c.span[p.K]]
	if a.Step != b.Step || a.Group != b.Group || b.Phase != schemas.PhaseBetween {
		return nil
	}
	for i := c.span[k]; i <= c.span[p.K]; i++ {
		if c.rank.Steps.Spans[i].Phase != schemas.PhaseBetween {
			return nil
		}
	}
	return p
}

// Times are the rows of phases.parquet and steps.parquet of a rank that used no device at all.
func Times(c *Context) ([]schemas.Phase, []schemas.Step) {
	j := &Joined{ctx: c}
	return j.Phases(), j.Steps()
}
