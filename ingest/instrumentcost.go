package ingest

import (
	"slices"

	"github.com/dpsight/dpsight/ingest/join"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// instrumentCost returns how much time the agent cost a rank.
func instrumentCost(m *schemas.Manifest, j *spool.Journal, s *steps.Result, ctx *join.Context) schemas.InstrumentCost {
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
		if j.OOMs[i].Listed && c.Windows > 0 { // such a list of blocks belongs to no step
			c.Windows--
		}
	}
	if c.RecordedSteps > 0 {
		c.Windows++ // the first window needs no drain to open
	}
	if n := len(j.Marks); n > 0 {
		c.RecordedNS = j.Marks[n-1].TimeNS - j.Marks[0].TimeNS
	}
	if j.Lines != nil && j.Lines.By != "" {
		c.LinesNS, c.LineEvents = &j.Lines.SpentNS, j.Lines.Events
	}
	if m.Source == schemas.Measured { // a phantom GPU has no times
		addStepTimes(&c, ctx.Times())
	}
	return c
}

// addStepTimes adds the median times of bare and of instrumented steps. addStepTimes leaves out steps whose times are
// unknown.
func addStepTimes(c *schemas.InstrumentCost, times join.Times) {
	captured := schemas.Captured(times.Phases)
	rows := slices.Clone(times.Steps)
	for i := range rows {
		if !rows[i].Warmup && captured[schemas.RankStep{Rank: rows[i].Rank, Step: rows[i].Step}] {
			c.CapturedSteps++
		}
	}
	rows = slices.DeleteFunc(rows, func(r schemas.Step) bool {
		return captured[schemas.RankStep{Rank: r.Rank, Step: r.Step}] || r.Unphased && r.GPUNS == 0
	})
	bare, instrumented := stepTimesOf(rows, false), stepTimesOf(rows, true)
	c.InstrumentNS = instrumentNS(bare, instrumented)
	c.BareStepNS, c.InstrumentedStepNS = median(bare.ns), median(instrumented.ns)
	c.BareSteps, c.InstrumentedSteps = int64(len(bare.ns)), int64(len(instrumented.ns))
}

// stepTimes has the times of several steps, and the number of samples in each step.
type stepTimes struct{ ns, samples []int64 }

// stepTimesOf returns the times of all bare steps, or of all instrumented steps: GPU times if each step has one, else
// wall times.
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

// medianFor returns the median time of the steps, each step scaled to the given number of samples.
func (t stepTimes) medianFor(samples int64) int64 {
	scaled := make([]int64, len(t.ns))
	for i, ns := range t.ns {
		scaled[i] = int64(float64(ns) * float64(samples) / float64(t.samples[i]))
	}
	return *median(scaled)
}

// instrumentNS estimates the extra time of an instrumented step, for the median batch size of bare steps. Plain medians
// would compare batches of different sizes. instrumentNS returns nil if all batches have the same size, or if any batch
// size is unknown.
func instrumentNS(bare, instrumented stepTimes) *int64 {
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
