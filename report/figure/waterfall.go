package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/schemas"
)

// A StepKind says how a step of a waterfall is drawn.
type StepKind int

const (
	StepStart  StepKind = iota // the beginning, which has only text
	StepChange                 // begins where the change before it ends
	StepPart                   // one of the parts that the change above it consists of
	StepTotal                  // the whole difference, from the start to the end
)

// A WaterfallStep is one row of a waterfall.
type WaterfallStep struct {
	Kind     StepKind
	Label    string
	Category schemas.Category // gives the row its colour; empty for no category
	Delta    int64            // bytes or nanoseconds
	Text     string           // the size in words; changes of bytes are drawn in the unit of the axis instead
}

// A WaterfallPanel is one difference with its parts. The changes of a panel sum to its total.
type WaterfallPanel struct {
	Title string
	Axis  string // what 0 stands for; the unit is appended
	Time  bool   // values are nanoseconds, shown as ms, instead of bytes
	Steps []WaterfallStep
}

// A Waterfall is the pictures named explain_waterfall and overhead: the parts of a difference as signed bars, one after
// another from the first run's value to the second's. The axis shows differences. Next to whole values the differences
// would hardly be visible, and an axis that does not begin at zero would exaggerate them.
type Waterfall struct {
	Panels []WaterfallPanel
	Notes  []string
}

const (
	fallWidth  = 640.0 // width of the bars and of the texts beside them
	fallLabel  = 250.0
	partHeight = 10.0
	fallTop    = 26.0 // distance between panels
	totalColor = softInk
	timeColor  = canvas.Color(0x8795a3)
)

// fall is one panel laid out: row i has its bar between from[i] and to[i].
type fall struct {
	*WaterfallPanel
	rows
	panel
	title    []string
	titleTop float64
	axis     []string // lines below the axis's numbers
	from, to []int64
}

type waterfallLayout struct {
	width, height float64
	falls         []*fall
	legend        legend
}

func (m *Waterfall) layout() *waterfallLayout {
	l := &waterfallLayout{}
	widest := 60.0
	lacks := false
	for i := range m.Panels {
		f := &fall{WaterfallPanel: &m.Panels[i]}
		f.run()
		for _, s := range f.Steps {
			lacks = lacks || canvas.Lacks(s.Label)
			label := rowLabel{name: canvas.Wrap(s.Label, nameSize, fallLabel, 3)}
			size := nameSize
			if s.Kind == StepPart {
				label, size = rowLabel{badge: canvas.Wrap(s.Label, badgeSize, fallLabel, 2)}, badgeSize
			}
			for _, line := range slices.Concat(label.name, label.badge) {
				widest = max(widest, canvas.Measure(line, size))
			}
			f.labels = append(f.labels, label)
		}
		l.falls = append(l.falls, f)
	}
	left := margin + widest + 12
	l.width = math.Ceil(left + fallWidth + margin)
	y := margin
	for i, f := range l.falls {
		if i > 0 {
			y += fallTop
		}
		y = f.place(left, y)
	}
	notes := []string{}
	if lacks {
		notes = append(notes, string(canvas.Missing)+": a character that the figure's font lacks")
	}
	l.legend, y = layLegend(nil, append(notes, m.Notes...), y, l.width)
	l.height = math.Ceil(y + margin)
	return l
}

// run makes each bar begin where the previous bar ended.
func (f *fall) run() {
	var end, start, part int64 // ends of the last change, and of its parts so far
	for _, s := range f.Steps {
		from, to := int64(0), s.Delta
		switch s.Kind {
		case StepStart:
			to = 0
		case StepChange:
			from, to = end, end+s.Delta
			start, end = from, to
			part = start
		case StepPart:
			from, to = part, part+s.Delta
			part = to
		}
		f.from, f.to = append(f.from, from), append(f.to, to)
		f.low, f.high = min(f.low, from, to), max(f.high, from, to)
	}
}

// text returns the text beside a row. All changes of bytes have the same unit.
func (f *fall) text(s *WaterfallStep) string {
	if f.Time || s.Kind == StepStart || s.Kind == StepTotal {
		return s.Text
	}
	text := f.unit.number(s.Delta) + " " + f.unit.name
	if s.Delta > 0 && !strings.HasPrefix(text, "<") {
		text = "+" + text
	}
	return text
}

// place scales the panel, places its rows from y down, and returns the y below the panel.
func (f *fall) place(left, y float64) float64 {
	f.unit = unitOf(max(f.high, -f.low))
	if f.Time {
		f.unit = unit{1e6, "ms"}
	}
	text := 0.0
	for i := range f.Steps {
		text = max(text, canvas.Measure(f.text(&f.Steps[i]), valueSize))
	}
	f.left, f.textRight = left, left+fallWidth
	f.right = f.textRight - text - 12
	f.zero = f.left
	if f.high > f.low {
		f.perByte = (f.right - f.left) / float64(f.high-f.low)
		f.zero = f.left - float64(f.low)*f.perByte
	}
	f.title = canvas.Wrap(f.Title, titleSize, fallWidth, 2)
	f.titleTop = y
	y += float64(len(f.title))*titleSize*lineHeight + 6
	for i, s := range f.Steps {
		f.tops = append(f.tops, y)
		least := barHeight + 10
		if s.Kind == StepPart {
			least = partHeight + 8
		}
		y += max(least, f.labels[i].height()+6)
	}
	f.tops = append(f.tops, y)
	y += 30 // the axis's numbers
	f.axis = canvas.Wrap(f.Axis+", "+f.unit.name, valueSize, fallWidth, 2)
	return y + float64(len(f.axis))*valueSize*lineHeight
}

func (m *Waterfall) draw(svg bool) (*canvas.Canvas, error) {
	l := m.layout()
	c, err := canvas.New(l.width, l.height, svg)
	if err != nil {
		return nil, err
	}
	for _, f := range l.falls {
		f.draw(c)
	}
	l.legend.draw(c)
	return c, nil
}

// bar returns the box of a row's bar.
func (f *fall) bar(i int) canvas.Box {
	h := barHeight
	if f.Steps[i].Kind == StepPart {
		h = partHeight
	}
	y := f.middle(i)
	return canvas.Box{X0: f.x(min(f.from[i], f.to[i])), Y0: y - h/2, X1: f.x(max(f.from[i], f.to[i])), Y1: y + h/2}
}

func (f *fall) draw(c *canvas.Canvas) {
	for k, line := range f.title {
		c.Text(line, f.left, f.titleTop+titleSize+float64(k)*titleSize*lineHeight, titleSize, canvas.Start, ink)
	}
	axis := f.panel
	axis.unit.name = "" // the unit is below, with the axis title
	f.drawAxis(c, &axis)
	for k, line := range f.axis {
		c.Text(line, f.left, f.tops[len(f.tops)-1]+6+valueSize*(1+lineHeight*float64(k+1)), valueSize, canvas.Start,
			softInk)
	}
	last := -1 // the previous change
	for i := range f.Steps {
		s := &f.Steps[i]
		f.drawLabel(c, i, f.left-10)
		b := f.bar(i)
		color := ink
		switch s.Kind {
		case StepStart:
			color = softInk
		case StepPart:
			color = softInk
			f.fill(c, b, s.color().Pale())
		default:
			if last >= 0 { // a bar begins where the previous one ended, and the total ends there
				x := f.x(f.to[last])
				c.Line(x, f.bar(last).Y1, x, b.Y0, 1, softInk)
			}
			f.fill(c, b, s.color())
			last = i
		}
		if s.Kind != StepStart {
			c.Shape(s.Label, b, f.within(&f.panel))
		}
		c.Text(f.text(s), f.textRight, f.middle(i)+valueSize*0.36, valueSize, canvas.End, color)
	}
}

// fill draws a bar. A bar that is too thin to see becomes a line.
func (f *fall) fill(c *canvas.Canvas, b canvas.Box, fill canvas.Color) {
	if b.X1-b.X0 < 1 {
		c.Line(b.X0, b.Y0, b.X0, b.Y1, 1, softInk)
		return
	}
	c.Rect(b, fill)
	if fill.Luminance() > 0.85 && b.X1-b.X0 > 4 {
		c.Frame(b, 1, softInk)
	}
}

func (s *WaterfallStep) color() canvas.Color {
	switch {
	case s.Kind == StepTotal:
		return totalColor
	case s.Category != "":
		return palette[s.Category]
	}
	return timeColor
}

func (m *Waterfall) describe() string {
	var b strings.Builder
	for _, p := range m.Panels {
		b.WriteString(p.Title + ": ")
		for i, s := range p.Steps {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s %s", s.Label, s.Text)
		}
		b.WriteString(". ")
	}
	return b.String() + strings.Join(m.Notes, ". ")
}
