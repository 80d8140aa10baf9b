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

// Step is a change of an experiment's level from one point to the next that has the value.
type Step struct {
	From   int      `json:"from"`   // the last point of the level before, by its place
	To     int      `json:"to"`     // the first point of the level after
	Before float64  `json:"before"` // of bytes, what the two points have; of times, the medians of the two levels
	After  float64  `json:"after"`
	Delta  float64  `json:"delta"`
	Ratio  *float64 `json:"ratio"`
	P      *float64 `json:"p"` // by Mann and Whitney's test of the two levels; null for bytes
	// Categories are the categories of the peak whose bytes changed, the largest change first. They are empty if
	// the value is not the peak, or if one of the two peaks is not broken down.
	Categories []CategoryChange `json:"categories"`
	// Modules are the modules of the first category, or of the value's category, whose bytes changed, the largest
	// change first. They are empty if the runs' tables were not read.
	Modules []ModuleChange `json:"modules"`
	// Phases are the phases whose time changed, the largest change first; none if the value is not the step's time.
	Phases []PhaseChange `json:"phases"`

	// Runs are the runs whose parts are compared. Remarks say how they differ besides the code.
	Runs    [2]*analyze.Summary `json:"-"`
	Remarks []compare.Remark    `json:"-"`
}

// CategoryChange is by how much a category changed.
type CategoryChange struct {
	Category   schemas.Category `json:"category"`
	DeltaBytes int64            `json:"delta_bytes"`
	Percent    *float64         `json:"percent"` // of the value before; null if that was 0
}

// PhaseChange is by how much the time of a phase changed, a step.
type PhaseChange struct {
	Phase   string  `json:"phase"`
	DeltaMS float64 `json:"delta_ms"`
}

// byteSteps finds where bytes change by more than repeats at any point do.
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

// timeSteps divides the points into levels whose times differ by their ranks. It divides where the test is most
// certain, then divides each part, as long as the test is certain enough for the number of places tried.
func (e *Experiment) timeSteps(value compare.Metric) {
	var timed []int // the points that have values, by their places
	for i := range e.Points {
		if e.Points[i].N > 0 {
			timed = append(timed, i)
		}
	}
	e.Undecided = len(timed) > 1 && !e.testable(timed)
	var cuts []int // places in timed at which a level begins
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
		// A part that was divided further may no longer differ from the level beside it.
		if p := timing.RankTest(before, after); p < timing.Significant {
			slices.Sort(before)
			slices.Sort(after)
			e.step(timed[at-1], timed[at], timing.Middle(before), timing.Middle(after), &p, value)
		}
	}
}

// testable is whether there are values enough for some division to be sure.
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

// values returns the values of the points at the given places.
func (e *Experiment) values(places []int) (out []float64) {
	for _, i := range places {
		out = append(out, e.Points[i].values...)
	}
	return out
}

// step adds a step between two points.
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

// elsewhere lists the differences between the runs on both sides of a step, without the revision, which the trend
// is about.
func elsewhere(was, is *analyze.Summary, value compare.Metric) []compare.Remark {
	code := func(s *analyze.Summary) *analyze.Summary {
		out := *s
		out.Origin = s.Origin.Without("revision")
		if value.Unit() == compare.UnitBytes {
			out.Throttled = timing.Throttle{}
		}
		out.KeptGradientBytes = nil // whether a loop keeps .grad is part of its code
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
