package join

import (
	"cmp"
	"slices"
	"sort"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// eachInterval calls f for each interval of GPU time that can be attributed to a phase or a module. eachInterval leaves
// out intervals that contain a drain, since these measure the agent.
func (c *Context) eachInterval(f func(*spool.Interval)) {
	if c.rank.Untimed {
		return
	}
	for i := range c.rank.Intervals {
		iv := &c.rank.Intervals[i]
		if int(iv.BeginK) >= len(c.span) || iv.EndK <= iv.BeginK || iv.NS < 0 {
			continue
		}
		d := sort.Search(len(c.drains), func(i int) bool { return c.drains[i] > iv.BeginK })
		if d < len(c.drains) && c.drains[d] < iv.EndK {
			continue
		}
		f(iv)
	}
}

// gpuTimes returns the GPU time of each span: the sum of the intervals that begin in it.
func (c *Context) gpuTimes() []int64 {
	out := make([]int64, len(c.rank.Steps.Spans))
	c.eachInterval(func(iv *spool.Interval) { out[c.span[iv.BeginK]] += iv.NS })
	return out
}

// Times has the steps and phases of a rank, without the bytes of any device.
type Times struct {
	Phases []schemas.Phase
	Steps  []schemas.Step
}

// Times returns the rank's steps and phases. If the rank used no device, they are also the rows of steps.parquet and
// phases.parquet.
func (c *Context) Times() Times { return c.times }

func findTimes(c *Context) (t Times) {
	derived := c.rank.Steps
	gpu := c.gpuTimes()
	for i := range derived.Spans {
		s := &derived.Spans[i]
		t.Phases = append(t.Phases, schemas.Phase{RunID: c.rank.RunID, Rank: c.rank.Rank, Step: s.Step,
			Microbatch: s.Microbatch, Phase: s.Phase, BeginK: int64(s.BeginK), EndK: int64(s.EndK),
			StartNS: s.StartNS, EndNS: s.EndNS})
		if gpu[i] > 0 {
			t.Phases[i].GPUNS = &gpu[i]
		}
	}
	stepGPU := make([]int64, len(derived.Steps))
	for i := range t.Phases {
		if p := &t.Phases[i]; p.Step >= 0 && p.Step < int64(len(stepGPU)) {
			stepGPU[p.Step] += schemas.OrZero(p.GPUNS)
		}
	}
	for s := range schemas.Captured(t.Phases) { // the kernels of a captured step did not run
		if s.Step < int64(len(stepGPU)) {
			stepGPU[s.Step] = 0
		}
	}
	for i := range derived.Steps {
		s := &derived.Steps[i]
		t.Steps = append(t.Steps, schemas.Step{RunID: c.rank.RunID, Rank: c.rank.Rank, Step: s.Number,
			Microbatches: s.Microbatches, Warmup: s.Warmup, Instrumented: s.Instrumented, Unphased: s.Unphased,
			Samples: s.Samples, Tokens: s.Tokens, BeginK: int64(s.BeginK), EndK: int64(s.EndK),
			StartNS: s.StartNS, EndNS: s.EndNS, WallNS: max(s.EndNS-s.StartNS-s.DrainNS, 0), GPUNS: stepGPU[i]})
	}
	return t
}

// ModuleTimes returns the rows of module_times.parquet, in order of step, of the phase's first occurrence in the step,
// and of module. An interval belongs to the module whose call is innermost at the interval's beginning. Each call has
// CUDA events at its beginning and its end.
func (c *Context) ModuleTimes() []schemas.ModuleTime {
	steps := c.rank.Steps
	type key struct {
		step   int64
		phase  string
		module uint32
		hook   bool
	}
	type sum struct {
		key
		first uint32
		ns    int64
	}
	sums := map[key]*sum{}
	began := map[key]uint32{} // first mark of each step and phase
	c.eachInterval(func(iv *spool.Interval) {
		s := &steps.Spans[c.span[iv.BeginK]]
		if s.Step < 0 || s.Step >= int64(len(steps.Steps)) || !steps.Steps[s.Step].Instrumented {
			return
		}
		k := key{s.Step, s.Phase, c.module[iv.BeginK], c.dp[iv.BeginK]}
		if sums[k] == nil {
			sums[k] = &sum{key: k}
		}
		sums[k].ns += iv.NS
		phase := key{step: s.Step, phase: s.Phase}
		if first, ok := began[phase]; !ok || iv.BeginK < first {
			began[phase] = iv.BeginK
		}
	})
	all := make([]*sum, 0, len(sums))
	for k, s := range sums {
		s.first = began[key{step: k.step, phase: k.phase}]
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *sum) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.first, b.first), cmp.Compare(a.module, b.module),
			schemas.CompareDPHook(a.hook, b.hook))
	})
	rows := make([]schemas.ModuleTime, 0, len(all))
	for _, s := range all {
		rows = append(rows, schemas.ModuleTime{RunID: c.rank.RunID, Rank: c.rank.Rank, Step: s.step, Phase: s.phase,
			Module: int64(s.module),
			DPHook: s.hook, GPUNS: s.ns})
	}
	return rows
}
