package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
)

// A Trend is the picture named trend, which has a panel for each experiment with the experiment's value at each point,
// oldest first. Where the value changes, the panel has a line with words. Points have equal distances: a revision
// counts as much after a week as after a minute.
type Trend struct {
	Title  string
	Bytes  bool   // whether values are bytes
	Unit   string // unit of values other than bytes
	Panels []TrendPanel
	Notes  []string
}

// A TrendPanel has the values of one experiment.
type TrendPanel struct {
	Label  string // label, which is unique in the picture
	Badge  string
	Points []TrendPoint
	Steps  []TrendStep
}

// A TrendPoint is a value with its range over repeats. A point without a value leaves its place empty.
type TrendPoint struct {
	Name             string
	Has              bool
	Value, Low, High float64
}

// A TrendStep is a change of the value between two points. The change is drawn before the second point.
type TrendStep struct {
	At    int
	Delta float64
	Text  string
}

// Sizes in logical pixels.
const (
	trendWidth  = 720.0
	trendHeight = 150.0
	mostTrends  = 12 // most panels in a picture
	mostSteps   = 10 // most changes that a panel shows: the largest
	stepLine    = insideSize * lineHeight
	nameLine    = badgeSize * lineHeight
	mostNames   = 3 // most lines of names below a panel
)

// trendPanel is the panel of one experiment with its place.
type trendPanel struct {
	m      *TrendPanel
	title  []string
	top    float64
	plot   canvas.Box
	y      tradeAxis
	steps  []TrendStep // changes that are drawn
	listed float64     // the top of the list of changes, above the plot
}

// x returns the middle of point i's place.
func (p *trendPanel) x(i int) float64 {
	return p.plot.X0 + (float64(i)+0.5)*(p.plot.X1-p.plot.X0)/float64(len(p.m.Points))
}

type trendLayout struct {
	m             *Trend
	width, height float64
	title         []string
	panels        []trendPanel
	legend        legend
}

func (m *Trend) layout() *trendLayout {
	l := &trendLayout{m: m}
	shown := m.Panels[:min(len(m.Panels), mostTrends)]
	left := margin + 40.0
	for i := range shown {
		p := trendPanel{m: &shown[i]}
		low, high := p.m.reach()
		u := unit{1, ""}
		if m.Bytes {
			u = unitOf(int64(high))
		}
		p.y = axisOver(low, high, u)
		for _, v := range p.y.ticks(4) {
			left = max(left, margin+canvas.Measure(m.tick(&p, v), valueSize)+8)
		}
		l.panels = append(l.panels, p)
	}
	l.width = left + trendWidth + margin
	l.title = canvas.Wrap(m.Title, titleSize, l.width-2*margin, 2)
	y := margin + float64(len(l.title))*titleSize*lineHeight + 10
	for i := range l.panels {
		p := &l.panels[i]
		label := numbered(i, p.m.Label)
		if p.m.Badge != "" {
			label += " [" + p.m.Badge + "]"
		}
		p.title, p.top = canvas.Wrap(label, nameSize, trendWidth, 2), y
		y += float64(len(p.title))*nameSize*lineHeight + 4
		p.steps, p.listed = largestSteps(p.m.Steps), y
		y += float64(len(p.steps))*stepLine + 4
		if len(p.steps) > 0 { // room for the changes' numbers
			y += stepLine
		}
		p.plot = canvas.Box{X0: left, Y0: y, X1: left + trendWidth, Y1: y + trendHeight}
		p.y.from, p.y.to = p.plot.Y1, p.plot.Y0
		y += trendHeight + valueSize + 20
		if rows := p.nameRows(); rows > 1 {
			y += float64(rows-1) * nameLine
		}
	}
	l.legend, y = layLegend(nil, l.footnotes(), y, l.width)
	l.height = math.Ceil(y + margin)
	return l
}

// largestSteps returns the largest changes in their order, few enough to keep the list short.
func largestSteps(steps []TrendStep) []TrendStep {
	if len(steps) <= mostSteps {
		return steps
	}
	largest := slices.SortedStableFunc(slices.Values(steps), func(a, b TrendStep) int {
		return cmp.Compare(math.Abs(b.Delta), math.Abs(a.Delta))
	})[:mostSteps]
	slices.SortFunc(largest, func(a, b TrendStep) int { return a.At - b.At })
	return largest
}

// reach returns the lowest and the highest value of a panel.
func (p *TrendPanel) reach() (low, high float64) {
	low = math.Inf(1)
	for _, at := range p.Points {
		if at.Has {
			low, high = min(low, at.Low), max(high, at.High)
		}
	}
	if math.IsInf(low, 1) {
		low = 0
	}
	return low, high
}

// tick returns a tick's text with its unit.
func (m *Trend) tick(p *trendPanel, v float64) string {
	name := m.Unit
	if m.Bytes {
		name = p.y.unit.name
	}
	return strings.TrimSpace(tickText(v) + " " + name)
}

func (l *trendLayout) footnotes() (notes []string) {
	var labels []string
	off := false
	for i := range l.panels {
		labels = append(labels, l.panels[i].m.Label)
		off = off || l.panels[i].y.low > 0
	}
	notes = append(notes, "from left to right: the oldest point first, at equal distances")
	if off {
		notes = append(notes, "vertical axes do not all begin at zero")
	}
	more := 0
	for i := range l.panels {
		more += len(l.panels[i].m.Steps) - len(l.panels[i].steps)
	}
	if more > 0 {
		notes = append(notes, fmt.Sprintf("the %d largest steps of a panel are marked; %d more are in the table", mostSteps,
			more))
	}
	if n := len(l.m.Panels) - len(l.panels); n > 0 {
		notes = append(notes, fmt.Sprintf("%d more experiments are in the table only", n))
	}
	return append(append(notes, missingNote(labels)...), l.m.Notes...)
}

func (m *Trend) draw(svg bool) (*canvas.Canvas, error) {
	l := m.layout()
	c, err := canvas.New(l.width, l.height, svg)
	if err != nil {
		return nil, err
	}
	for n, line := range l.title {
		c.Text(line, margin, margin+titleSize+float64(n)*titleSize*lineHeight, titleSize, canvas.Start, ink)
	}
	for i := range l.panels {
		l.drawPanel(c, &l.panels[i])
	}
	l.legend.draw(c)
	return c, nil
}

func (l *trendLayout) drawPanel(c *canvas.Canvas, p *trendPanel) {
	for n, line := range p.title {
		c.Text(line, p.plot.X0, p.top+nameSize+float64(n)*nameSize*lineHeight, nameSize, canvas.Start, ink)
	}
	for _, v := range p.y.ticks(4) {
		y := p.y.at(v * p.y.unit.bytes)
		c.Line(p.plot.X0, y, p.plot.X1, y, 1, gridColor)
		c.Text(l.m.tick(p, v), p.plot.X0-6, y+valueSize*0.36, valueSize, canvas.End, softInk)
	}
	numbered := math.Inf(-1) // the right end of the last number
	for k := range p.steps {
		numbered = l.drawStep(c, p, k, numbered)
	}
	half := min(4, (p.plot.X1-p.plot.X0)/float64(max(1, len(p.m.Points)))*0.4)
	was := -1
	for i, at := range p.m.Points {
		if !at.Has {
			continue
		}
		x, y := p.x(i), p.y.at(at.Value)
		if was >= 0 {
			c.Segment(p.x(was), p.y.at(p.m.Points[was].Value), x, y, 1, errorColor)
		}
		was = i
		box := canvas.Box{X0: x - half, Y0: p.y.at(at.High), X1: x + half, Y1: p.y.at(at.Low)}
		if at.High > at.Low {
			c.Line(x, box.Y0, x, box.Y1, 1.2, errorColor)
		}
		c.Diamond(x, y, half, pointColor)
		c.Shape("point of "+at.Name, canvas.Box{X0: x, Y0: box.Y0, X1: x, Y1: box.Y1}, p.plot)
	}
	l.drawNames(c, p)
	c.Line(p.plot.X0, p.plot.Y1, p.plot.X1, p.plot.Y1, 1.5, ink)
	c.Line(p.plot.X0, p.plot.Y0, p.plot.X0, p.plot.Y1, 1.5, ink)
}

// drawStep lists the k-th change above the plot and draws a line before its second point. drawStep writes the change's
// number at the line if there is room after the previous number, and returns the right end of the last number.
func (l *trendLayout) drawStep(c *canvas.Canvas, p *trendPanel, k int, numbered float64) float64 {
	s := p.steps[k]
	text := fmt.Sprintf("%d. %s: %s", k+1, p.m.Points[s.At].Name, s.Text)
	c.Text(canvas.Fit(text, insideSize, trendWidth), p.plot.X0, p.listed+float64(k)*stepLine+insideSize, insideSize,
		canvas.Start, ink)
	x := (p.x(s.At) + p.x(max(0, s.At-1))) / 2
	c.Line(x, p.plot.Y0, x, p.plot.Y1, 1, softInk)
	number := fmt.Sprint(k + 1)
	half := canvas.Measure(number, insideSize) / 2
	if x-half < numbered+2 {
		return numbered
	}
	c.Text(number, x, p.plot.Y0-4, insideSize, canvas.Middle, ink)
	return x + half
}

// drawNames writes the names of points below the axis: of the first, of the last, and of the points after changes.
func (l *trendLayout) drawNames(c *canvas.Canvas, p *trendPanel) {
	for _, n := range p.names() {
		c.Text(n.text, n.x, p.plot.Y1+badgeSize+5+float64(n.row)*nameLine, badgeSize, canvas.Start, softInk)
	}
}

// pointName is a name below the axis, in one line if there is room.
type pointName struct {
	text string
	x    float64
	row  int
}

// names places the names of the first point, the last point, and then the points after changes. Each takes the first
// line that has room. A name without room appears only in the list of changes.
func (p *trendPanel) names() (names []pointName) {
	n := len(p.m.Points)
	if n == 0 {
		return nil
	}
	order := []int{0, n - 1}
	for _, s := range p.steps {
		order = append(order, s.At)
	}
	var taken [mostNames][]canvas.Box
	done := map[int]bool{}
	for _, i := range order {
		if done[i] {
			continue
		}
		done[i] = true
		w := canvas.Measure(p.m.Points[i].Name, badgeSize)
		x := min(max(p.x(i)-w/2, p.plot.X0), p.plot.X1-w)
		box := canvas.Box{X0: x - 6, Y0: 0, X1: x + w + 6, Y1: 1}
		for row := range taken {
			if !slices.ContainsFunc(taken[row], func(t canvas.Box) bool { return box.Overlaps(t) }) {
				taken[row] = append(taken[row], box)
				names = append(names, pointName{p.m.Points[i].Name, x, row})
				break
			}
		}
	}
	return names
}

// nameRows returns the number of lines of names below the axis.
func (p *trendPanel) nameRows() (rows int) {
	for _, n := range p.names() {
		rows = max(rows, n.row+1)
	}
	return rows
}

func (m *Trend) describe() string {
	var b strings.Builder
	size := func(v float64) string {
		if m.Bytes {
			return table.Size(int64(v))
		}
		return tickText(v) + " " + m.Unit
	}
	for i := range m.Panels {
		p := &m.Panels[i]
		low, high := p.reach()
		fmt.Fprintf(&b, "%s: %d points, %s to %s", p.Label, len(p.Points), size(low), size(high))
		for _, s := range p.Steps {
			fmt.Fprintf(&b, "; at %s %s", p.Points[s.At].Name, s.Text)
		}
		b.WriteString(". ")
	}
	return strings.TrimSpace(b.String())
}
