package join

import (
	"cmp"
	"slices"
	"sort"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// eachInterval calls f for every interval of GPU time that can be attributed. One that contains a drain measures the
// agent and is left out.
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

// gpuTimes is the GPU time of each span: that of the intervals that begin in it.
func (c *Context) gpuTimes() []int64 {
	out := make([]int64, len(c.rank.Steps.Spans))
	c.eachInterval(func(iv *spool.Interval) { out[c.span[iv.BeginK]] += iv.NS })
	return out
}

// ModuleTimes are the rows of module_times.parquet, in order of step, phase's first occurrence in it, and module. An
// interval belongs to the module whose call is innermost at its beginning: each call's edges have events of their own.
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
	began := map[key]uint32{} // of each step and phase
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
