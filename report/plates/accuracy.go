package plates

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Prediction is a predicted peak with the measured peak, both in bytes.
type Prediction struct {
	Label               string
	Predicted, Measured float64
}

// Accuracy shows how close predictions are to measurements: a point for each, the line of exact predictions, and the
// names of the points farthest from the line.
type Accuracy struct {
	Points []Prediction
}

const (
	farNames = 5    // the most points that are named
	farOff   = 0.01 // the smallest relative error of a named point
	farRatio = 20.  // ratio of the largest to the smallest value from which on axes are logarithmic
)

// Draw draws the figure.
func (f Accuracy) Draw(s Style) (*Drawing, error) {
	d := newDrawing(s)
	var points []Prediction
	low, high := math.Inf(1), 0.0
	for _, p := range f.Points {
		if p.Predicted > 0 && p.Measured > 0 {
			points = append(points, p)
			low, high = min(low, p.Predicted, p.Measured), max(high, p.Predicted, p.Measured)
		}
	}
	if len(points) == 0 {
		return nil, ErrEmpty
	}
	of := unitOfBytes(high)
	place := func(v float64) float64 { return v / of.size }
	a := &axes{xLine: true, yLine: true, xGrid: true, yGrid: true, x1: place(high) * 1.06}
	a.xTicks = ticks(0, a.x1, 5)
	if high > farRatio*low {
		place = func(v float64) float64 { return math.Log10(v / of.size) }
		room := 0.05 * (place(high) - place(low))
		a.x0, a.x1 = place(low)-room, place(high)+room
		a.xTicks = decades(a.x0, a.x1)
	}
	a.y0, a.y1, a.yTicks = a.x0, a.x1, a.xTicks
	a.xLabel, a.yLabel = "Measured peak ("+of.name+")", "Predicted peak ("+of.name+")"
	tall := Centimetres(5)
	if s.slide() {
		tall = s.Height - d.below(a) - s.Label
	}
	top := 0.5 * s.Label
	a.box = box{d.left(a), top, s.Width - 1.5*s.Label, top + tall}
	if s.Width > 2*tall { // nearly square, with room for names
		a.box.x1 = a.box.x0 + 1.6*tall
	}
	d.open(a)
	d.dashed(soft, 0.5, point{a.box.x0, a.box.y1}, point{a.box.x1, a.box.y0})
	var right []point // pieces of the line of exact predictions, which no name may touch
	const pieces = 100
	for i := range pieces + 1 {
		part := float64(i) / pieces
		right = append(right, point{a.box.x0 + part*a.box.width(), a.box.y1 - part*a.box.height()})
	}
	var marks []box
	radius := d.scaled(1.6)
	off := func(p Prediction) float64 { return math.Abs(math.Log(p.Predicted / p.Measured)) }
	slices.SortStableFunc(points, func(a, b Prediction) int { return cmp.Compare(off(b), off(a)) })
	for i, p := range points {
		at := point{a.x(place(p.Measured)), a.y(place(p.Predicted))}
		marks = append(marks, box{at.x - radius, at.y - radius, at.x + radius, at.y + radius})
		if i < farNames && off(p) > farOff {
			d.circle(at, radius, accent, accent, 0.3)
		} else {
			d.circle(at, radius-0.1, page, text, d.scaled(0.6))
		}
	}
	limits := box{a.box.x0 + 1, a.box.y0 - 1, s.Width, a.box.y1 - 1}
	for i, p := range points[:min(len(points), farNames)] {
		name := Short(p.Label) + " " + percent(p.Predicted, p.Measured)
		if off(p) > farOff && !d.nameBeside(limits, []string{name}, marks[i], right, marks, nil) {
			d.LeftOut = append(d.LeftOut, p.Label)
		}
	}
	d.open(nil)
	d.height = a.box.y1 + d.below(a) + 0.2*s.Label
	return d, nil
}

// decades returns the ticks of a logarithmic axis: at 1, 2 and 5 of each power of ten, or only at powers of ten if
// there are many.
func decades(from, to float64) (out []tick) {
	steps := []float64{1, 2, 5}
	if to-from > 2 {
		steps = steps[:1]
	}
	every := max(1, math.Ceil((to-from)/8))
	for power := math.Floor(from); power <= to; power += every {
		for _, m := range steps {
			v := m * math.Pow(10, power)
			if at := math.Log10(v); at >= from && at <= to {
				out = append(out, tick{at, power10(v)})
			}
		}
	}
	return out
}

// power10 formats a number for a logarithmic axis: 0.05, 200, or 1e−9.
func power10(v float64) string {
	if v >= 1e-3 && v < 1e5 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 0, 64), "e")
	power, _ := strconv.Atoi(exponent)
	return mantissa + "e" + strings.Replace(strconv.Itoa(power), "-", "−", 1)
}
