package ingest

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/dpsight/dpsight/ingest/join"
	"github.com/dpsight/dpsight/ingest/modelnames"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// RulesVersion is the version of the rules of attribution.
const RulesVersion = join.RulesVersion

// RulesHash is a hash of their tables.
func RulesHash() string { return join.RulesHash() }

// Options of ingesting.
type Options struct {
	Version string // of dpsight, for the report
	Again   bool   // [Import]: also what was ingested before
	// Prepare is called with each run folder of [Import] first: what a killed collector left is put together there. May
	// be nil.
	Prepare func(dir string) error
}

// Run ingests a run folder: it seals the journals that a killed collector left, and derives all tables from them,
// whatever was derived before. It never touches run.json.
func Run(dir string, o Options) (*schemas.IngestReport, error) {
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	if m.Import != nil {
		return ingestSnapshot(dir, m, o)
	}
	var warnings []string
	folder := filepath.Join(dir, spool.Dir)
	if running, err := living(folder); err != nil {
		return nil, err
	} else if len(running) > 0 {
		warnings = append(warnings, fmt.Sprintf("process %d still runs: its journal is read as far as it goes",
			running[0]))
	} else if _, err := spool.Seal(folder); err != nil {
		return nil, fmt.Errorf("sealing the journals: %w", err)
	}
	journals, err := spool.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	if err := allThere(dir, journals); err != nil {
		return nil, err
	}
	r := newReport(m, o)
	r.Warnings = append(r.Warnings, warnings...)
	if len(journals) == 0 && len(m.Warnings) == 0 { // the collector says why, if it lived to see the end
		r.warn("the run has no journal: no process of it used torch with the agent in place")
	}
	err = write(dir, r, func(t *tables) error {
		for _, j := range journals {
			if err := ingestJournal(m, j, t, r); err != nil {
				return fmt.Errorf("rank %d: %w", j.Rank, err)
			}
		}
		r.sum()
		if r.Prediction = prediction(m, journals); r.Prediction != nil {
			r.Prediction.Band = band(m, &r.IngestReport)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &r.IngestReport, nil
}

// allThere refuses a run that has lost journals of which there are tables: nothing else makes those again. A run that
// never had a journal has a report of no rank, and a table of no mark where the report cannot be read.
func allThere(dir string, journals []*spool.Journal) error {
	switch before, err := schemas.ReadIngestReport(dir); {
	case err == nil:
		for _, rank := range before.Ranks {
			if !slices.ContainsFunc(journals, func(j *spool.Journal) bool {
				return j.Rank == rank.Rank
			}) && len(journals) < len(before.Ranks) {
				return refuse("the journal of rank %d is gone: the tables made from it stay, as nothing makes them "+
					"again", rank.Rank)
			}
		}
	case len(journals) == 0:
		if marks, err := schemas.Marks.ReadOptional(dir); err != nil || len(marks) > 0 {
			return refuse("its journal is gone: the tables made from it stay, as nothing makes them again")
		}
	}
	return nil
}

// ingestJournal ingests one rank.
func ingestJournal(m *schemas.Manifest, j *spool.Journal, t *tables, r *report) error {
	modules := join.Modules(m.RunID, j.Rank, j.Modules) // roles are by the names that the model itself gives
	modelnames.Disambiguate(j)
	paths := map[int64]string{} // a module's last row counts
	for _, m := range j.Modules {
		paths[int64(m.ID)] = m.Path
	}
	for i := range modules {
		modules[i].Path = paths[modules[i].ID]
	}
	stacks := torchsnap.NewStacks()
	recs := read(j, stacks)
	s := steps.Derive(j.Marks, j.Names)
	rank := &join.Rank{RunID: m.RunID, Rank: j.Rank, Marks: j.Marks, Tags: j.Tags, Names: j.Names,
		Intervals: j.Intervals, Steps: s,
		LastK: lastRecorded(j), Untimed: m.Source != schemas.Measured}
	if j.Environment != nil {
		rank.Workspace = join.Workspaces(j.Environment.Variables["CUBLAS_WORKSPACE_CONFIG"])
	}
	ctx := join.NewContext(rank)
	var devices []join.Device
	var verdicts []schemas.DeviceVerdict
	for _, rec := range recs {
		d := join.Device{Device: rec.device}
		res, v, err := rec.replayed()
		if err != nil {
			return fmt.Errorf("device %d: %w", rec.device, err)
		}
		if res != nil {
			d.Events, d.Replay = &rec.events, res
			r.anomalies(j.Rank, rec, res)
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
	joined, unbound := join.Join(ctx, devices)
	for i, jd := range joined {
		v := &verdicts[i]
		v.AmbiguousTags, v.InstrumentedPeakSeq = jd.AmbiguousTags, jd.InstrumentedPeakSeq
		v.BareSteps = listed(jd.BareSteps, jd.StepAt(v.PeakSeq))
		if i == 0 { // an address that no device knows belongs to none of them
			v.UnboundTags = unbound
		}
		for _, a := range jd.Ambiguous {
			r.warn("rank %d, device %d: %s", j.Rank, recs[i].device, a)
		}
		if more := jd.AmbiguousTags - int64(len(jd.Ambiguous)); more > 0 {
			r.warn("rank %d, device %d: %d more ambiguous tags", j.Rank, recs[i].device, more)
		}
		if err := t.add(m.RunID, j.Rank, recs[i], devices[i].Replay, jd); err != nil {
			return err
		}
	}
	if len(joined) == 0 {
		times := ctx.Times()
		t.phases, t.steps = append(t.phases, times.Phases...), append(t.steps, times.Steps...)
	}
	r.Devices = append(r.Devices, verdicts...)
	r.rank(m, j, s, ctx, recs)
	t.modules = append(t.modules, modules...)
	if j.Process != nil && j.Process.ModuleTimes {
		t.moduleTimes = append(t.moduleTimes, ctx.ModuleTimes()...)
	}
	t.addStacks(m.RunID, j.Rank, stacks)
	t.processes = append(t.processes, processes(m, j, recs, r)...)
	return t.addMarks(m.RunID, j, ctx.Tags())
}

// lastRecorded is the mark of the last drain with events, 0 if nothing can have come after it.
func lastRecorded(j *spool.Journal) uint32 {
	for i := len(j.Chunks) - 1; i >= 0; i-- {
		switch c := &j.Chunks[i]; {
		case c.Pickle != nil && c.Checkpoint != nil:
			return c.Checkpoint.K
		case c.Pickle != nil: // the process died before its counters were written
			return 0
		}
	}
	return 0
}

func bare(j *spool.Journal) bool { return j.Process != nil && j.Process.Mode == "bare" }
