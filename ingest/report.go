package ingest

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/ingest/join"
	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/units"
)

// report is the report while it is made.
type report struct {
	schemas.IngestReport
}

func newReport(m *schemas.Manifest, o Options) *report {
	return &report{schemas.IngestReport{RunID: m.RunID, Version: o.Version, Rules: RulesVersion, RulesHash: RulesHash(),
		Devices: []schemas.DeviceVerdict{}, Ranks: []schemas.RankVerdict{}, Cost: []schemas.InstrumentCost{},
		OOMs: []schemas.OOM{}, Metrics: []schemas.Metric{}, Warnings: []string{}}}
}

func (r *report) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

func (r *report) anomalies(rank int32, rec *recording, res *replay.Result) {
	if s := res.Anomalies.Reason(); s != "" {
		r.warn("rank %d, device %d: %s", rank, rec.device, s)
	}
	if rec.unknown > 0 {
		r.warn("rank %d, device %d: %d events have actions that this dpsight does not know; what they did is not "+
			"counted", rank, rec.device, rec.unknown)
	}
	if rec.backwards > 0 {
		r.warn("rank %d, device %d: times run backwards at %d events", rank, rec.device, rec.backwards)
	}
	if rec.unverified > 0 {
		r.warn("rank %d, device %d: the last %d events have no counters to be checked against", rank, rec.device,
			rec.unverified)
	}
	if rec.resetPeaks {
		r.warn("rank %d, device %d: the script reset torch's peak counters; they are compared interval by interval",
			rank, rec.device)
	}
}

// maxDamaged bounds the damaged frames that are named.
const maxDamaged = 5

// rank adds what a journal says of itself.
func (r *report) rank(m *schemas.Manifest, j *spool.Journal, s *steps.Result, ctx *join.Context, recs []*recording) {
	v := schemas.RankVerdict{Rank: j.Rank, Marks: int64(len(j.Marks)), Frames: j.Frames, Complete: j.End != nil}
	if j.Torn != nil {
		v.Torn, v.TornReason = true, j.Torn.Error()
	}
	v.FailedHooks = failedHooks(j, s)
	for _, f := range v.FailedHooks {
		r.warn("rank %d: %s", j.Rank, f.Words())
	}
	r.Ranks = append(r.Ranks, v)
	for i, err := range j.Damaged {
		if i == maxDamaged {
			r.warn("rank %d: %d more frames could not be read", j.Rank, len(j.Damaged)-i)
			break
		}
		r.warn("rank %d: %v", j.Rank, err)
	}
	if j.End == nil {
		r.warn("rank %d: the process ended without its last word; what came after the last drain is lost", j.Rank)
	}
	if e := j.Environment; e != nil && e.AllocatorBackend != nil && *e.AllocatorBackend != "native" {
		r.warn("rank %d: the allocator backend %s keeps no history: there are counters only", j.Rank,
			*e.AllocatorBackend)
	}
	// Of a run that died in its first step the update was yet to come.
	if s.Rule == steps.RuleBackward && (j.Exception == nil || len(s.Steps) > 1) {
		r.warn("rank %d: no optimizer step was seen; each backward pass counts as a step (dpsight.step() says it "+
			"better)", j.Rank)
	}
	// The rank with the most steps speaks for the run.
	if n := int64(len(s.Steps)); r.Steps.Rule == "" || n > r.Steps.Derived {
		r.Steps = schemas.StepDerivation{Rule: s.Rule, Derived: n, Optimizers: int64(s.Optimizers)}
	}
	r.Cost = append(r.Cost, cost(m, j, s, ctx))
	r.outOfMemory(j, ctx, recs)
	for _, x := range j.Metrics {
		r.Metrics = append(r.Metrics, schemas.Metric{Rank: j.Rank, K: int64(x.K), TimeNS: x.TimeNS, Name: x.Name,
			Value: x.Value})
	}
}

// failedHooks are the agent's hooks that failed, with the step that each failed in.
func failedHooks(j *spool.Journal, s *steps.Result) (out []schemas.FailedHook) {
	for i := range j.Failures {
		f := schemas.FailedHook{Hook: j.Failures[i].Hook, Error: j.Failures[i].Error, Step: -1, Fatal: j.Failures[i].Fatal}
		for k := range s.Steps {
			if s.Steps[k].StartNS <= j.Failures[i].TimeNS {
				f.Step = s.Steps[k].Number
			}
		}
		out = append(out, f)
	}
	return out
}

// maxBareSteps bounds the bare steps that are listed: a recording may have any number.
const maxBareSteps = 1000

// listed is the first bare steps, and the one of the peak.
func listed(all []schemas.BareStep, peak int64) []schemas.BareStep {
	out := all[:min(len(all), maxBareSteps)]
	if rest := all[len(out):]; len(rest) > 0 {
		if i := slices.IndexFunc(rest, func(b schemas.BareStep) bool { return b.Step == peak }); i >= 0 {
			out = append(slices.Clone(out), rest[i])
		}
	}
	return out
}

// sum adds what follows from all ranks together.
func (r *report) sum() {
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Verdict == schemas.Lossy {
			r.warn("rank %d, device %d: %s", d.Rank, d.Device, d.Reason)
		}
		if t := d.TorchPeakAllocatedBytes; d.Events > 0 && t != nil && *t > d.PeakAllocatedBytes &&
			d.Verdict == schemas.Exact {
			r.warn("rank %d, device %d: torch's peak of %s lies outside the recorded steps (there it is %s) and is "+
				"not broken down",
				d.Rank, d.Device, units.MiB(*t), units.MiB(d.PeakAllocatedBytes))
		}
		if d.UnboundTags > 0 {
			r.warn("rank %d: %d tags name addresses that the allocator never had", d.Rank, d.UnboundTags)
		}
	}
}

// cost is what the agent cost a rank.
func cost(m *schemas.Manifest, j *spool.Journal, s *steps.Result, ctx *join.Context) schemas.InstrumentCost {
	c := schemas.InstrumentCost{Rank: j.Rank, Marks: int64(len(j.Marks))}
	for i := range j.Chunks {
		if p := j.Chunks[i].Checkpoint; p != nil && p.Drain > 0 {
			c.Drains++
			c.DrainNS += p.DrainNS
			if p.Reason == schemas.ReasonWindow {
				c.Windows++
			}
		}
	}
	for i := range s.Steps {
		if s.Steps[i].Recorded {
			c.RecordedSteps++
		}
	}
	for i := range j.OOMs {
		if j.OOMs[i].Listed && c.Windows > 0 { // of no step
			c.Windows--
		}
	}
	if c.RecordedSteps > 0 {
		c.Windows++ // the first needs no drain to open
	}
	if n := len(j.Marks); n > 0 {
		c.RecordedNS = j.Marks[n-1].TimeNS - j.Marks[0].TimeNS
	}
	if m.Source != schemas.Measured { // a phantom GPU has no times
		return c
	}
	captured := schemas.Captured(ctx.Times().Phases)
	rows := slices.Clone(ctx.Times().Steps)
	for i := range rows {
		if !rows[i].Warmup && captured[schemas.RankStep{Rank: rows[i].Rank, Step: rows[i].Step}] {
			c.CapturedSteps++
		}
	}
	rows = slices.DeleteFunc(rows, func(r schemas.Step) bool {
		return captured[schemas.RankStep{Rank: r.Rank, Step: r.Step}] || r.Unphased && r.GPUNS == 0
	})
	bare, instrumented := stepTimesOf(rows, false), stepTimesOf(rows, true)
	c.InstrumentNS = instrumentOf(bare, instrumented)
	c.BareStepNS, c.InstrumentedStepNS = median(bare.ns), median(instrumented.ns)
	c.BareSteps, c.InstrumentedSteps = int64(len(bare.ns)), int64(len(instrumented.ns))
	return c
}

// stepTimes are the times of several steps, and the samples that each took.
type stepTimes struct{ ns, samples []int64 }

// stepTimesOf gives the times of all bare or of all instrumented steps: GPU times where each step has one, else wall
// times.
func stepTimesOf(rows []schemas.Step, instrumented bool) stepTimes {
	var gpu, wall, samples []int64
	for i := range rows {
		row := &rows[i]
		if row.Warmup || row.Instrumented != instrumented {
			continue
		}
		wall, samples = append(wall, row.WallNS), append(samples, row.Samples)
		if row.GPUNS > 0 {
			gpu = append(gpu, row.GPUNS)
		}
	}
	if len(gpu) == len(wall) {
		return stepTimes{gpu, samples}
	}
	return stepTimes{wall, samples}
}

// medianFor is the median time of the steps if each had so many samples.
func (t stepTimes) medianFor(samples int64) int64 {
	scaled := make([]int64, len(t.ns))
	for i, ns := range t.ns {
		scaled[i] = int64(float64(ns) * float64(samples) / float64(t.samples[i]))
	}
	return *median(scaled)
}

// instrumentOf is what instrumented steps take more than bare ones if both had as many samples as the median bare step;
// null where all have as many, or some did not report them. Medians of steps of different batches compare the batches.
func instrumentOf(bare, instrumented stepTimes) *int64 {
	all := slices.Concat(bare.samples, instrumented.samples)
	if len(bare.ns) == 0 || len(instrumented.ns) == 0 || slices.Min(all) <= 0 || slices.Min(all) == slices.Max(all) {
		return nil
	}
	size := *median(bare.samples)
	return new(instrumented.medianFor(size) - bare.medianFor(size))
}

func median(v []int64) *int64 {
	if len(v) == 0 {
		return nil
	}
	v = slices.Sorted(slices.Values(v))
	n := len(v) / 2
	m := v[n]
	if len(v)%2 == 0 {
		m = v[n-1] + (v[n]-v[n-1])/2
	}
	return &m
}

// outOfMemory adds the allocations that failed, each with what the script was doing.
func (r *report) outOfMemory(j *spool.Journal, ctx *join.Context, recs []*recording) {
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
	if j.Exception != nil && j.Exception.OOM { // of the last that torch did not go on without
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
			}
		}
		if o.Recorded == nil || *o.Recorded {
			seen[o.Device]++
		}
		r.OOMs = append(r.OOMs, row)
	}
}

// failuresOf adds the allocations that failed of a trace that torch wrote. It says neither what the script was doing
// nor whether it went on.
func (r *report) failuresOf(rec *recording) {
	for i, a := range rec.events.Action {
		if a == schemas.ActionOOM {
			r.OOMs = append(r.OOMs, schemas.OOM{Device: rec.device, Seq: int64(i) + 1,
				RequestedBytes: max(rec.events.Size[i], 0), DeviceFreeBytes: int64(rec.events.Addr[i]), Step: -1,
				EndUnknown: true})
		}
	}
}

// listedAfter is the last event before the drain of the failure at mark k, which lists the blocks; 0 if there is none.
// What it is the list of was tagged by then.
func (rec *recording) listedAfter(k uint32) int64 {
	for i := range rec.checkpoints {
		if c := &rec.checkpoints[i]; c.Reason == schemas.ReasonOOM && c.Recorded && c.K > int64(k) {
			return c.Seq
		}
	}
	return 0
}

// failure is the event of the n-th allocation that failed (from 0); 0 if the recording has no such event.
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
