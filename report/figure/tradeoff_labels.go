package figure

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/report/canvas"
)

// placed is one line of a label with its place.
type placed struct {
	text string
	x, y float64 // start of the baseline
}

// nearPoints is the distance, in pixels, below which two points share a label.
const nearPoints = 2.5 * pointRadius

// clusters groups a panel's points that lie near one another.
func (l *tradeoffLayout) clusters(p *tradePanel) (out [][]int) {
	near := func(i, k int) bool {
		x0, y0, _ := l.geometry(p, &l.m.Points[i])
		x1, y1, _ := l.geometry(p, &l.m.Points[k])
		return math.Hypot(x1-x0, y1-y0) < nearPoints
	}
	for _, i := range p.points {
		joined := []int{i}
		var apart [][]int
		for _, c := range out {
			if slices.ContainsFunc(c, func(k int) bool { return near(i, k) }) {
				joined = append(c, joined...)
			} else {
				apart = append(apart, c)
			}
		}
		out = append(apart, joined)
	}
	return out
}

// name places the labels of a panel. Points get names if there is room, or else numbers. name returns the points with
// numbers, whose names are written under the picture.
func (l *tradeoffLayout) name(p *tradePanel) (byNumber []int) {
	var taken []canvas.Box
	for _, i := range p.points {
		x, y, bars := l.geometry(p, &l.m.Points[i])
		taken = append(taken, canvas.Box{X0: x - pointRadius - 2, Y0: y - pointRadius - 2, X1: x + pointRadius + 2,
			Y1: y + pointRadius + 2})
		for _, b := range bars {
			taken = append(taken, canvas.Box{X0: b.X0 - 3, Y0: b.Y0 - 3, X1: b.X1 + 3, Y1: b.Y1 + 3})
		}
	}
	var unnamed [][]int
	for _, c := range l.clusters(p) {
		var names []string
		for _, i := range c {
			names = append(names, l.m.text(i, p.short, (p.plot.X1-p.plot.X0)*mostOfName))
		}
		if !l.beside(p, c, names, &taken) {
			unnamed = append(unnamed, c)
		}
	}
	for _, c := range unnamed {
		var numbers []string
		for _, i := range c {
			numbers = append(numbers, strconv.Itoa(i+1))
		}
		l.beside(p, c, numbers, &taken) // without room, the names under the picture are the only label
		byNumber = append(byNumber, c...)
	}
	return byNumber
}

// mostOfName is the largest share of a panel's width that a name may take.
const mostOfName = 0.6

// beside writes names near their points without covering anything. beside uses as few lines as find room, and reports
// whether any found room.
func (l *tradeoffLayout) beside(p *tradePanel, c []int, names []string, taken *[]canvas.Box) bool {
	around := canvas.Box{X0: math.Inf(1), Y0: math.Inf(1), X1: math.Inf(-1), Y1: math.Inf(-1)}
	for _, i := range c {
		x, y, _ := l.geometry(p, &l.m.Points[i])
		around = canvas.Box{X0: min(around.X0, x), Y0: min(around.Y0, y), X1: max(around.X1, x), Y1: max(around.Y1, y)}
	}
	for n := 1; n <= len(names); n++ {
		var lines []string
		for part := range slices.Chunk(names, (len(names)+n-1)/n) {
			lines = append(lines, strings.Join(part, ", "))
		}
		for i := range lines[:len(lines)-1] {
			lines[i] += ","
		}
		if at, ok := l.room(p, lines, around, *taken); ok {
			for k, line := range lines {
				y := at.Y0 + nameSize + float64(k)*nameSize*lineHeight
				p.labels = append(p.labels, placed{line, at.X0, y})
				*taken = append(*taken, canvas.TextBox(line, at.X0, y, nameSize))
			}
			return true
		}
	}
	return false
}

// room finds a place for lines near a box, within the plot.
func (l *tradeoffLayout) room(p *tradePanel, lines []string, around canvas.Box, taken []canvas.Box) (canvas.Box, bool) {
	width, height := 0.0, nameSize*1.25+float64(len(lines)-1)*nameSize*lineHeight
	for _, line := range lines {
		width = max(width, canvas.Measure(line, nameSize))
	}
	midX, midY := (around.X0+around.X1)/2, (around.Y0+around.Y1)/2
	for _, off := range []float64{9, 14, 20} {
		right, left := around.X1+off, around.X0-off-width
		above, below := around.Y0-off-height, around.Y1+off
		for _, at := range [][2]float64{{right, midY - height/2}, {left, midY - height/2}, {midX - width/2, above},
			{midX - width/2, below}, {around.X1 + 3, above}, {around.X1 + 3, below}, {around.X0 - 3 - width, above},
			{around.X0 - 3 - width, below}} {
			b := canvas.Box{X0: at[0], Y0: at[1], X1: at[0] + width, Y1: at[1] + height}
			inside := b.X0 >= p.plot.X0+2 && b.X1 <= p.plot.X1-2 && b.Y0 >= p.plot.Y0+2 && b.Y1 <= p.plot.Y1-2
			if inside && !slices.ContainsFunc(taken, b.Overlaps) {
				return b, true
			}
		}
	}
	return canvas.Box{}, false
}
