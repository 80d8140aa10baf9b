package ingest

import (
	"fmt"

	"github.com/dpsight/dpsight/ingest/join"
	"github.com/dpsight/dpsight/ingest/modelnames"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// ingestJournal makes the tables of one rank from its journal.
func ingestJournal(m *schemas.Manifest, j *spool.Journal, t *tables, r *report) error {
	t.modules = append(t.modules, moduleRows(m.RunID, j)...)
	stacks := torchsnap.NewStacks()
	recs := read(j, stacks)
	s := steps.Derive(j.Marks, j.Names)
	ctx := join.NewContext(rankOf(m, j, s))
	devices, verdicts, err := replayDevices(j, recs, r)
	if err != nil {
		return err
	}
	joined, unbound := join.Join(ctx, devices)
	for i, jd := range joined {
		v := &verdicts[i]
		v.AmbiguousTags, v.InstrumentedPeakSeq = jd.AmbiguousTags, jd.InstrumentedPeakSeq
		v.BareSteps = listed(jd.BareSteps, jd.StepAt(v.PeakSeq))
		if i == 0 { // an address that no device has belongs to none of them
			v.UnboundTags = unbound
		}
		r.warnOfTags(j.Rank, recs[i].device, jd)
		events := t.addEvents(m.RunID, j.Rank, recs[i])
		if err := t.add(m.RunID, j.Rank, recs[i], devices[i].Replay, jd, events); err != nil {
			return err
		}
	}
	if len(joined) == 0 {
		times := ctx.Times()
		t.phases, t.steps = append(t.phases, times.Phases...), append(t.steps, times.Steps...)
	}
	r.Devices = append(r.Devices, verdicts...)
	r.addRank(m, j, s, ctx, recs)
	if j.Process != nil && j.Process.ModuleTimes {
		t.moduleTimes = append(t.moduleTimes, ctx.ModuleTimes()...)
	}
	t.addStacks(m.RunID, j.Rank, stacks)
	t.addLines(m.RunID, j)
	t.addHost(m.RunID, j)
	t.processes = append(t.processes, processes(m, j, recs, r)...)
	return t.marks.WriteAll(markRows(m.RunID, j, ctx.Tags()))
}

// moduleRows returns the rows of modules.parquet. moduleRows also renames the journal's modules so that their names
// distinguish its models.
func moduleRows(runID string, j *spool.Journal) []schemas.Module {
	rows := join.Modules(runID, j.Rank, j.Modules) // roles follow from the names that the model itself gives
	modelnames.Disambiguate(j)
	paths := map[int64]string{} // the last row of a module counts
	for _, m := range j.Modules {
		paths[int64(m.ID)] = m.Path
	}
	for i := range rows {
		rows[i].Path = paths[rows[i].ID]
	}
	return rows
}

// rankOf returns the part of a journal that the join needs.
func rankOf(m *schemas.Manifest, j *spool.Journal, s *steps.Result) *join.Rank {
	rank := &join.Rank{RunID: m.RunID, Rank: j.Rank, Marks: j.Marks, Tags: j.Tags, Names: j.Names, Holders: j.Holders,
		Intervals: j.Intervals, Steps: s, LastK: lastRecorded(j), Untimed: m.Source != schemas.Measured}
	if j.Environment != nil {
		rank.Workspace = join.Workspaces(j.Environment.Variables["CUBLAS_WORKSPACE_CONFIG"])
	}
	return rank
}

// replayDevices replays the events of each device, and checks the result against torch's counters.
func replayDevices(j *spool.Journal, recs []*recording, r *report) (devices []join.Device,
	verdicts []schemas.DeviceVerdict, err error) {
	for _, rec := range recs {
		d := join.Device{Device: rec.device}
		res, v, err := rec.replayed()
		if err != nil {
			return nil, nil, fmt.Errorf("device %d: %w", rec.device, err)
		}
		if res != nil {
			d.Events, d.Replay = &rec.events, res
			r.warnOfReplay(j.Rank, rec, res)
		}
		v.Rank = j.Rank
		if v.Events == 0 && bare(j) {
			v.Reason = "a bare run: counters and timers only"
		}
		for i := range rec.checkpoints {
			rec.checkpoints[i].Rank = j.Rank
		}
		d.Checkpoints = rec.checkpoints
		devices, verdicts = append(devices, d), append(verdicts, v)
	}
	return devices, verdicts, nil
}

// lastRecorded returns the mark of the last drain with events, or 0 if no events can have been lost after it.
func lastRecorded(j *spool.Journal) uint32 {
	for i := len(j.Chunks) - 1; i >= 0; i-- {
		switch c := &j.Chunks[i]; {
		case c.Pickle != nil && c.Checkpoint != nil:
			return c.Checkpoint.K
		case c.Pickle != nil: // the process died before it wrote its counters
			return 0
		}
	}
	return 0
}

func bare(j *spool.Journal) bool { return j.Process != nil && j.Process.Mode == "bare" }
