package trend

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/timing"
)

// A Level is a stretch of successive points over which an experiment's value does not jump.
type Level struct {
	First, Last int // indexes of the level's first and last point with a value
	Points      int // number of the level's points with a value
	Runs        int
	Value       float64 // the median over the runs
	Low, High   float64
	Step        *Step // the jump with which the level begins; nil for the first level
}

// Levels returns the levels of the experiment's value, oldest first. Levels returns none if no point has a value.
func (e *Experiment) Levels() (out []Level) {
	var values []float64
	end := func() {
		if len(values) == 0 {
			return
		}
		slices.Sort(values)
		l := &out[len(out)-1]
		l.Runs, l.Value, l.Low, l.High = len(values), timing.Middle(values), values[0], values[len(values)-1]
		values = nil
	}
	next := 0
	for i := range e.Points {
		p := &e.Points[i]
		if p.N == 0 {
			continue
		}
		var step *Step
		if next < len(e.Steps) && e.Steps[next].To == i {
			step = &e.Steps[next]
			next++
		}
		if len(out) == 0 || step != nil {
			end()
			out = append(out, Level{First: i, Step: step})
		}
		l := &out[len(out)-1]
		l.Last = i
		l.Points++
		values = append(values, p.values...)
	}
	end()
	return out
}
