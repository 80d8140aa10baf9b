package trend

import (
	"cmp"
	"math"
	"slices"

	"github.com/aclements/go-moremath/mathx"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// Step is a jump of an experiment's value between two successive points that have a value; it is no training step.
type Step struct {
	From   int      `json:"from"`   // index of the last point before the jump
	To     int      `json:"to"`     // index of the first point after the jump
	Before float64  `json:"before"` // for bytes, the value of point From; for times, the median of the level before
	After  float64  `json:"after"`
	Delta  float64  `json:"delta"`
	Ratio  *float64 `json:"ratio"`
	P      *float64 `json:"p"` // p-value of Mann and Whitney's test of the two levels; null for bytes
	// Categories are the categories of the peak whose bytes changed, the largest change first. Categories is empty if
	// the value is not the peak, or if one of the two peaks is not broken down.
	Categories []CategoryChange `json:"categories"`
	// Modules are the modules whose bytes changed, the largest change first. Only bytes of one category count: the
	// value's, or for the peak the first of Categories. Modules is empty if the runs' tables were not read.
	Modules []ModuleChange `json:"modules"`
	// Phases are the phases whose time changed, the largest change first. Phases is empty if the value is not the time
	// of a training step.
	Phases []PhaseChange `json:"phases"`

	// Runs are the two runs that represent the points From and To. Remarks say in what these two runs differ besides
	// the code.
	Runs    [2]*analyze.Summary `json:"-"`
	Remarks []compare.Remark    `json:"-"`
}

// CategoryChange is by how many bytes a category of the peak changed at a jump of the value.
type CategoryChange struct {
	Category   schemas.Category `json:"category"`
	DeltaBytes int64            `json:"delta_bytes"`
	Percent    *float64         `json:"percent"` // percentage of the value before; null if that was 0
}

// PhaseChange is by how much the time that a training step spends in a phase changed at a jump of the value.
type PhaseChange struct {
	Phase   string  `json:"phase"`
	DeltaMS float64 `json:"delta_ms"`
}

// byteSteps finds the jumps of a value in bytes: where two successive points differ by more than the repeats of any one
// point.
func (e *Experiment) byteSteps(value compare.Metric) {
	for i := range e.Points {
		if p := &e.Points[i]; p.N > 1 {
			spread := *p.High - *p.Low
			if e.Spread != nil {
				spread = max(spread, *e.Spread)
			}
			e.Spread = &spread
		}
	}
	before := -1
	for i := range e.Points {
		p := &e.Points[i]
		if p.N == 0 {
			continue
		}
		if before >= 0 {
			b := &e.Points[before]
			apart := *p.Low > *b.High || *p.High < *b.Low
			if apart && math.Abs(*p.Value-*b.Value) > timing.OrZero(e.Spread) {
				e.step(before, i, *b.Value, *p.Value, nil, value)
			}
		}
		before = i
	}
}

// timeSteps finds the jumps of a time: it divides the points into levels whose times differ by a rank test. timeSteps
// divides where the test's p-value is lowest, then divides each part, as long as the p-value is low enough for the
// number of places tried.
func (e *Experiment) timeSteps(value compare.Metric) {
	var timed []int // indexes of the points that have values
	for i := range e.Points {
		if e.Points[i].N > 0 {
			timed = append(timed, i)
		}
	}
	e.Undecided = len(timed) > 1 && !e.testable(timed)
	var cuts []int // indexes in timed at which a level begins
	var divide func(from, to int)
	divide = func(from, to int) {
		best, at := math.Inf(1), 0
		for k := from + 1; k < to; k++ {
			if p := timing.RankTest(e.values(timed[from:k]), e.values(timed[k:to])); p < best {
				best, at = p, k
			}
		}
		if at == 0 || best*float64(to-from-1) >= timing.Significant {
			return
		}
		cuts = append(cuts, at)
		divide(from, at)
		divide(at, to)
	}
	divide(0, len(timed))
	slices.Sort(cuts)
	for i, at := range cuts {
		from, to := 0, len(timed)
		if i > 0 {
			from = cuts[i-1]
		}
		if i+1 < len(cuts) {
			to = cuts[i+1]
		}
		before, after := e.values(timed[from:at]), e.values(timed[at:to])
		// Once a part was divided further, the piece beside this cut may no longer differ from the level on the other
		// side.
		if p := timing.RankTest(before, after); p < timing.Significant {
			slices.Sort(before)
			slices.Sort(after)
			e.step(timed[at-1], timed[at], timing.Middle(before), timing.Middle(after), &p, value)
		}
	}
}

// testable reports whether there are enough values for a rank test to be able to find a jump at some place.
func (e *Experiment) testable(timed []int) bool {
	n := len(e.values(timed))
	for k := 1; k < len(timed); k++ {
		least := 2 / mathx.Choose(n, len(e.values(timed[:k])))
		if least*float64(len(timed)-1) < timing.Significant {
			return true
		}
	}
	return false
}

// values returns the values of the points with the given indexes.
func (e *Experiment) values(places []int) (out []float64) {
	for _, i := range places {
		out = append(out, e.Points[i].values...)
	}
	return out
}

// step records a jump of the value between two points.
func (e *Experiment) step(from, to int, before, after float64, p *float64, value compare.Metric) {
	s := Step{From: from, To: to, Before: before, After: after, Delta: after - before, Ratio: timing.Ratio(after, before),
		P: p, Categories: []CategoryChange{}, Modules: []ModuleChange{}, Phases: []PhaseChange{}}
	was, is := e.Points[from].middle(value), e.Points[to].middle(value)
	s.Runs = [2]*analyze.Summary{was, is}
	switch value.Name {
	case compare.MetricPeak:
		s.Categories = categoryChanges(was, is)
	case compare.MetricTime:
		s.Phases = phaseChanges(was, is)
	}
	s.Remarks = elsewhere(was, is, value)
	e.Steps = append(e.Steps, s)
}

// elsewhere lists the differences between the two runs on both sides of a jump. elsewhere leaves out the revision,
// which the trend is about.
func elsewhere(was, is *analyze.Summary, value compare.Metric) []compare.Remark {
	code := func(s *analyze.Summary) *analyze.Summary {
		out := *s
		out.Origin = s.Origin.Without("revision")
		if value.Unit() == compare.UnitBytes {
			out.Throttled = timing.Throttle{}
		}
		out.KeptGradientBytes = nil // whether a loop keeps .grad depends on its code
		return &out
	}
	return compare.Unfair(code(was), code(is))
}

func categoryChanges(was, is *analyze.Summary) []CategoryChange {
	out := []CategoryChange{}
	if !was.BrokenDown() || !is.BrokenDown() {
		return out
	}
	for _, c := range schemas.Categories {
		before := was.Main().Category(c).Bytes
		if d := is.Main().Category(c).Bytes - before; d != 0 {
			out = append(out, CategoryChange{c, d, timing.PercentOf(float64(d), float64(before))})
		}
	}
	slices.SortStableFunc(out, func(a, b CategoryChange) int {
		return cmp.Compare(magnitude(b.DeltaBytes), magnitude(a.DeltaBytes))
	})
	return out
}

func phaseChanges(was, is *analyze.Summary) []PhaseChange {
	out := []PhaseChange{}
	for i := range is.Phases.Phases {
		name := is.Phases.Phases[i].Phase
		m := compare.Metric{Name: compare.MetricPhase, Of: name}
		if a, b := m.ValueIn(was), m.ValueIn(is); a != nil && b != nil && *a != *b &&
			!slices.ContainsFunc(out, func(c PhaseChange) bool { return c.Phase == name }) {
			out = append(out, PhaseChange{name, *b - *a})
		}
	}
	slices.SortStableFunc(out, func(a, b PhaseChange) int {
		return cmp.Compare(math.Abs(b.DeltaMS), math.Abs(a.DeltaMS))
	})
	return out
}

func magnitude(n int64) int64 { return max(n, -n) }
