package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/repeats"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// A pivot is a comparison while [Compare] builds it.
type pivot struct {
	value      Metric
	rows, cols axis
	run        *analyze.Summary  // the baseline
	pair       bool              // two runs are compared, whose names are shown instead of their places
	match      map[string]string // the baseline's parameters, unless two runs are compared
	cells      []CompareCell
	said       []Said
	lent       map[string]*Cell // cells whose energy comes from a bare run, by the run that lacks it
	placed     placing
}

// baseline decides what the cells are compared with.
func (p *pivot) baseline(runs []*analyze.Summary, match map[string]string) (Baseline, error) {
	if p.run != nil {
		return Baseline{RunID: &p.run.RunID, Label: p.run.Title()}, nil
	}
	var label []string
	for _, k := range identity.SortedKeys(match) {
		if !slices.Contains(p.rows.keys, k) && !slices.Contains(p.cols.keys, k) {
			return Baseline{}, fmt.Errorf("baseline %s=%s: %s is neither a row nor a column; these are %s", k,
				match[k], k, strings.Join(slices.Concat(p.rows.keys, p.cols.keys), ", "))
		}
		if !anyHas(runs, k, match[k]) {
			return Baseline{}, fmt.Errorf("baseline %s=%s: no run has that", k, match[k])
		}
		label = append(label, k+"="+match[k])
	}
	p.match = match
	return Baseline{Match: match, Label: strings.Join(label, ", ")}, nil
}

func anyHas(runs []*analyze.Summary, key, value string) bool {
	return slices.ContainsFunc(runs, func(r *analyze.Summary) bool {
		v, ok := axisValue(r, key)
		return ok &&
			v == value
	})
}

// preferred returns the values in prefer whose keys are rows or columns, if some run has these values. Without such a
// run, the function returns [pivot.firstPlace].
func (p *pivot) preferred(runs []*analyze.Summary, prefer map[string]any) map[string]string {
	match := map[string]string{}
	for k, v := range prefer {
		if (slices.Contains(p.rows.keys, k) || slices.Contains(p.cols.keys, k)) && anyHas(runs, k, identity.TextOf(v)) {
			match[k] = identity.TextOf(v)
		}
	}
	if len(match) > 0 {
		return match
	}
	return p.firstPlace()
}

// firstPlace returns the default baseline: the vanilla row or column, else the first row, or the first column if there
// is only one row.
func (p *pivot) firstPlace() map[string]string {
	for _, a := range []*axis{&p.rows, &p.cols} {
		if i := slices.Index(a.keys, "method"); i >= 0 {
			for _, at := range a.places {
				if at[i] != nil && *at[i] == identity.MethodVanilla {
					return map[string]string{"method": identity.MethodVanilla}
				}
			}
		}
	}
	for _, a := range []*axis{&p.rows, &p.cols} {
		if len(a.places) > 1 {
			m := map[string]string{}
			for i, k := range a.keys {
				if v := a.places[0][i]; v != nil {
					m[k] = *v
				}
			}
			return m
		}
	}
	return map[string]string{}
}

// fill computes the cells and the remarks on them.
func (p *pivot) fill(runs []*analyze.Summary) {
	at := map[string][]*analyze.Summary{}
	for _, r := range runs {
		id := keyOf(r, p.rows.keys) + "\x01" + keyOf(r, p.cols.keys)
		at[id] = append(at[id], r)
	}
	index := map[string]int{}
	for _, row := range p.rows.places {
		for _, col := range p.cols.places {
			id := row.id() + "\x01" + col.id()
			index[id] = len(p.cells)
			c := p.cell(at[id])
			c.Row, c.Col = p.rows.values(row), p.cols.values(col)
			p.cells = append(p.cells, c)
		}
	}
	lacking, none, every := p.lacking(runs), func(string) bool { return false }, func(string) bool { return true }
	i := 0
	for _, row := range p.rows.places {
		for _, col := range p.cols.places {
			c := &p.cells[i]
			i++
			id := row.id() + "\x01" + col.id()
			base, theirs := p.run, (*float64)(nil)
			if p.run != nil {
				theirs = p.value.ValueIn(p.run)
				c.IsBaseline = len(at[id]) == 1 && at[id][0].RunID == p.run.RunID
			} else {
				home := ""
				for _, without := range []func(string) bool{none, lacking, every} {
					if home = p.replaced(&p.rows, row, without).id() + "\x01" + p.replaced(&p.cols, col,
						without).id(); len(at[home]) > 0 {
						break
					}
				}
				if len(at[home]) == 0 {
					home = p.ofAnotherOrigin(at, row, col)
				}
				if k, ok := index[home]; ok {
					theirs, c.IsBaseline = p.cells[k].Value, home == id
					p.test(c, &p.cells[k])
					base = p.speaker(at[home])
				}
			}
			p.difference(c, theirs)
			p.caution(c, at[id], base, place(row, col))
		}
	}
}

// replaced returns the row or column that the row or column at is compared with. replaced takes the baseline's values
// where the baseline has them, and the values of at for all other keys. Keys for which without is true have no value:
// plain training, for example, has no grad_sample_mode.
func (p *pivot) replaced(a *axis, at axisPlace, without func(key string) bool) axisPlace {
	out := slices.Clone(at)
	for i, k := range a.keys {
		if v, ok := p.match[k]; ok {
			out[i] = &v
		} else if without(k) {
			out[i] = nil
		}
	}
	return out
}

// ofAnotherOrigin finds the baseline cell for a cell if no baseline cell has the same origin: the first cell with runs
// that agrees in all keys except the origin.
func (p *pivot) ofAnotherOrigin(at map[string][]*analyze.Summary, row, col axisPlace) string {
	match := func(a *axis, have, want axisPlace) bool {
		for i, k := range a.keys {
			if k != originKey && (have[i] == nil) != (want[i] == nil) || k != originKey && have[i] != nil &&
				*have[i] != *want[i] {
				return false
			}
		}
		return true
	}
	wantRow := p.replaced(&p.rows, row, func(string) bool { return false })
	wantCol := p.replaced(&p.cols, col, func(string) bool { return false })
	for _, r := range p.rows.places {
		for _, c := range p.cols.places {
			id := r.id() + "\x01" + c.id()
			if len(at[id]) > 0 && match(&p.rows, r, wantRow) && match(&p.cols, c, wantCol) {
				return id
			}
		}
	}
	return ""
}

// lacking returns a function that reports whether no run of the baseline has a given parameter. Plain training, for
// example, has no clipping norm.
func (p *pivot) lacking(runs []*analyze.Summary) func(key string) bool {
	has := map[string]bool{}
	for _, r := range runs {
		if slices.ContainsFunc(identity.SortedKeys(p.match), func(k string) bool {
			v, ok := axisValue(r, k)
			return !ok || v != p.match[k]
		}) {
			continue
		}
		for _, k := range slices.Concat(p.rows.keys, p.cols.keys) {
			_, ok := axisValue(r, k)
			has[k] = has[k] || ok
		}
	}
	return func(key string) bool { return !has[key] }
}

// cell makes the pivot's cell of the runs with one row and one column.
func (p *pivot) cell(runs []*analyze.Summary) CompareCell {
	c := CompareCell{RunIDs: []string{}, Failed: []FailedRun{}, Marks: []string{}}
	var values []float64
	var counted []*analyze.Summary
	clock := p.clockOf(runs)
	for _, r := range runs {
		c.RunIDs = append(c.RunIDs, r.RunID)
		if m := r.Badge(); m != "" && !slices.Contains(c.Marks, m) {
			c.Marks = append(c.Marks, m)
		}
		if r.Status != schemas.StatusOK {
			c.Failed = append(c.Failed, FailedRun{r.RunID, r.Status})
		} else if v := p.value.ValueIn(r); v != nil && p.value.clock(r) == clock {
			values, counted = append(values, *v), append(counted, r)
		}
	}
	if c.N = len(values); c.N == 0 {
		return c
	}
	if groups := repeats.By(counted, p.placed); len(groups) > 1 {
		c.Experiments = len(groups)
		return c
	}
	slices.Sort(values)
	m, low, high := timing.Middle(values), values[0], values[len(values)-1]
	if p.value.Unit() == UnitBytes {
		m = values[(len(values)-1)/2]
	}
	if p.value.Name == MetricPeak { // a bounded peak may be higher than its lower bound
		for _, r := range counted {
			high = max(high, float64(*r.PeakAtMost()))
		}
	}
	c.Value, c.Low, c.High, c.values = &m, &low, &high, values
	return c
}

// clockOf returns the clock for the runs of one cell: the GPU's if one of the runs has GPU time. GPU time and wall time
// have no common median. Runs with the other clock are left out, and [pivot.caution] says so.
func (p *pivot) clockOf(runs []*analyze.Summary) string {
	clock := ""
	for _, r := range runs {
		if r.Status != schemas.StatusOK || p.value.ValueIn(r) == nil {
			continue
		}
		if c := p.value.clock(r); clock == "" || c == timing.ClockGPU {
			clock = c
		}
	}
	return clock
}

// test sets the p-value of a rank test between the times of two cells, if both cells have several runs.
func (p *pivot) test(c, base *CompareCell) {
	if p.value.Timed() && !c.IsBaseline && len(c.values) > 1 && len(base.values) > 1 {
		c.P = new(timing.RankTest(c.values, base.values))
	}
}

func (p *pivot) difference(c *CompareCell, theirs *float64) {
	if c.Value == nil || theirs == nil {
		return
	}
	d := *c.Value - *theirs
	c.Delta, c.Ratio = &d, timing.Ratio(*c.Value, *theirs)
}

// caution collects the reasons not to take the cell's value at face value, or not to compare it with the baseline's.
// caution leaves out differences that rows and columns state already.
func (p *pivot) caution(c *CompareCell, runs []*analyze.Summary, base *analyze.Summary, place []string) {
	run := p.speaker(runs)
	if run == nil {
		return
	}
	if p.pair || len(place) == 0 { // the commands have no parameters
		place = []string{run.Title()}
	}
	say := func(remarks ...Remark) {
		for _, r := range remarks {
			p.said = append(p.said, Said{r, place})
		}
	}
	if left := p.otherClock(runs, p.value.clock(run)); len(left) > 0 {
		say(Remark{Kind: RemarkWallLeftOut, Names: left})
	}
	good := slices.DeleteFunc(slices.Clone(runs), func(r *analyze.Summary) bool { return r.Status != schemas.StatusOK })
	if groups := repeats.By(good, p.placed); len(groups) > 1 {
		say(Remark{Kind: RemarkExperiments, N: len(groups), Names: tellExperiments(groups)})
	} else {
		say(poolingRemarks(good)...)
	}
	for _, r := range likeFirst(runs, run.Bare()) {
		if r.Status == schemas.StatusOK { // a run that did not end well counts in no cell
			say(p.remarksOf(r)...)
		}
	}
	if base == nil || c.IsBaseline || base.RunID == run.RunID || c.Delta == nil && !p.pair {
		return
	}
	a, b := p.withoutAxes(base), p.withoutAxes(run)
	if p.value.clock(&a) != p.value.clock(&b) {
		c.Delta, c.Ratio = nil, nil
		say(Remark{Kind: RemarkTimes})
		return
	}
	say(Unfair(&a, &b)...)
}

// withoutAxes returns a copy of the run without the facts that rows and columns name, and without facts that do not
// matter for the value: a slow clock changes no bytes, and kept gradients change hardly any time.
func (p *pivot) withoutAxes(s *analyze.Summary) analyze.Summary {
	out := *s
	keys := slices.Concat(p.rows.keys, p.cols.keys)
	if slices.Contains(keys, argumentsKey) {
		out.Command = nil
	}
	if slices.Contains(keys, originKey) {
		out.Origin = identity.Origin{}
	} else {
		out.Origin = s.Origin.Without(keys...)
	}
	if p.pair { // of a pair all values are shown, since no row or column shows what differs
		return out
	}
	if p.value.Unit() == UnitBytes {
		out.Throttled = timing.Throttle{}
	} else {
		out.KeptGradientBytes = nil
	}
	out.RunFacts = slices.DeleteFunc(slices.Clone(s.RunFacts), func(f identity.Fact) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, f.What) })
	})
	return out
}

// speaker returns the run whose conditions stand for its cell: the first that ended well and counts in the cell's
// value, else the first that ended well.
func (p *pivot) speaker(runs []*analyze.Summary) *analyze.Summary {
	var first *analyze.Summary
	clock := p.clockOf(runs)
	for _, r := range runs {
		switch {
		case r.Status != schemas.StatusOK:
		case p.value.ValueIn(r) != nil && p.value.clock(r) == clock:
			return r
		case first == nil:
			first = r
		}
	}
	return first
}

// otherClock returns the ids of the runs whose value was measured by another clock than the given one.
func (p *pivot) otherClock(runs []*analyze.Summary, clock string) (names []string) {
	for _, r := range runs {
		if r.Status == schemas.StatusOK && p.value.ValueIn(r) != nil && p.value.clock(r) != clock {
			names = append(names, r.RunID)
		}
	}
	return names
}

// place names a cell by the values of its row and its column.
func place(row, col axisPlace) (values []string) {
	for _, v := range slices.Concat(row, col) {
		if v != nil {
			values = append(values, *v)
		}
	}
	return values
}

// remarksOf returns the remarks on a run. If the run took energy from a bare twin, it returns the remarks on their
// cell.
func (p *pivot) remarksOf(r *analyze.Summary) []Remark {
	if c := p.lent[r.RunID]; c != nil {
		return c.Remarks
	}
	return RemarksOf(r)
}
