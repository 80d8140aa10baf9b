package plates

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// A State says how a value is known, if it was not simply measured.
type State int

// The states.
const (
	Measured  State = iota
	Predicted       // drawn with a dashed outline
	Bounded         // at least this much, since events were lost
	OOM             // out of memory: drawn as a hatched bar up to the device's capacity
	Failed          // failed or timed out: named, without a bar
	NotRun          // left out of bars and lines, and an empty cell of a heat map
)

// A Segment is a part of a bar: the bytes of a category or the seconds of a phase.
type Segment struct {
	Key   string // a category or a phase, as in results.json
	Value float64
}

// A Bar is one run.
type Bar struct {
	Label    string
	Group    string // the outer swept parameter's value, such as "batch 8", which has its own panel; "" for none
	Segments []Segment
	State    State
	// NotPrivate runs do a part of a private method's work but are not private. A dagger marks their labels.
	NotPrivate bool
}

// total returns the sum of a bar's segments.
func (b Bar) total() (sum float64) {
	for _, s := range b.Segments {
		sum += s.Value
	}
	return sum
}

// Breakdown shows the composition of each run's peak: stacked bars of bytes from 0.
type Breakdown struct {
	Bars     []Bar             // in reading order, with segments in stacking order
	Baseline string            // the label of the bar that the others in its group are compared with; "" for none
	Capacity float64           // the device's memory in bytes, and the length of bars of state OOM; 0 if unknown
	Names    map[string]string // names of categories that replace the package's own
}

// Time shows the parts of a step's time: stacked bars of seconds from 0.
type Time struct {
	Bars     []Bar
	Baseline string
	Digits   int               // decimals of the ratio of a bar's time to the baseline's
	Names    map[string]string // names of phases
}

// Draw draws the figure.
func (f Breakdown) Draw(s Style) (*Drawing, error) {
	return drawBars(s, bars{all: f.Bars, baseline: f.Baseline, capacity: f.Capacity, names: f.Names,
		colours: categories, order: categoryKeys,
		unit: unitOfBytes, axis: "Allocated at the peak", line: true,
		change: percent})
}

// ratio returns a function that formats how many times the base a value is.
func ratio(digits int) func(v, base float64) string {
	return func(v, base float64) string { return decimal(v/base, digits) + "×" }
}

// Draw draws the figure.
func (f Time) Draw(s Style) (*Drawing, error) {
	names := f.Names
	if names["backward"] == "" && !f.passes() {
		names = maps.Clone(names)
		if names == nil {
			names = map[string]string{}
		}
		names["backward"] = "Backward"
	}
	return drawBars(s, bars{all: f.Bars, baseline: f.Baseline, names: names, colours: phases, order: PhaseKeys,
		merged: "Other", unit: unitOfSeconds, axis: "Time of a step", change: ratio(f.Digits)})
}

// passes reports whether some bar divides its backward into passes.
func (f Time) passes() bool {
	pass := func(s Segment) bool { return s.Key == "norm_pass" || s.Key == "gradient_pass" }
	return slices.ContainsFunc(f.Bars, func(b Bar) bool { return slices.ContainsFunc(b.Segments, pass) })
}

// MostBars is the most bars in a figure. A slide has fewer. Draw leaves out further bars and names them in
// [Drawing.LeftOut].
const MostBars = 24

// bars has what the figures Breakdown and Time share.
type bars struct {
	all      []Bar
	baseline string
	capacity float64
	names    map[string]string
	colours  map[string]colour
	order    []string // order of the keys in the legend
	merged   string   // the legend's name of all other keys; "" means "Rest"
	unit     func(float64) unit
	axis     string
	line     bool // whether a dashed line marks the baseline's total
	change   func(v, base float64) string

	d      *Drawing
	of     unit
	most   float64 // the longest bar's value
	keys   []string
	groups []group

	changes bool // whether changes stand after the totals
	lines   int  // the most lines of a label
	left    float64
	scale   float64 // points per byte or second
}

// A group has the bars of one panel. A row without a bar is empty.
type group struct {
	title string
	rows  map[string]Bar
	base  float64
}

// slightest is the length, in points, from which on a segment is visible: 0.3 mm.
const slightest = 0.85

func drawBars(s Style, f bars) (*Drawing, error) {
	f.d = newDrawing(s)
	f.choose()
	for _, b := range f.all {
		if b.State == Measured || b.State == Predicted || b.State == Bounded {
			f.most = max(f.most, b.total())
		}
	}
	if f.most <= 0 {
		return nil, ErrEmpty // all runs failed or ran out of memory, which a table shows better
	}
	f.of = f.unit(f.most)
	for _, b := range f.all {
		if b.State == OOM {
			f.most = max(f.most, f.capacity)
		}
	}
	rows := f.arrange()
	f.layout(rows)
	return f.d, nil
}

// choose keeps as many bars as the place has room for.
func (f *bars) choose() {
	const ofSlide, panelsOfSlide = 8, 3
	inGroup := map[string]int{}
	all := f.all
	f.all = nil
	for _, b := range all {
		if b.State == NotRun {
			continue
		}
		n, known := inGroup[b.Group]
		full := len(f.all) == MostBars ||
			f.d.style.slide() && (n == ofSlide || !known && len(inGroup) == panelsOfSlide)
		if full {
			f.d.LeftOut = append(f.d.LeftOut, b.Label)
			continue
		}
		inGroup[b.Group]++
		f.all = append(f.all, b)
	}
}

// arrange divides the bars into groups and returns the labels of the rows, in the order of their first bars.
func (f *bars) arrange() (rows []string) {
	for _, b := range f.all {
		i := slices.IndexFunc(f.groups, func(g group) bool { return g.title == b.Group })
		if i < 0 {
			i = len(f.groups)
			f.groups = append(f.groups, group{title: b.Group, rows: map[string]Bar{}})
		}
		label := b.Label
		for n := 2; ; n++ { // two runs with one label get two rows
			if _, taken := f.groups[i].rows[label]; !taken {
				break
			}
			label = b.Label + " (" + decimal(float64(n), 0) + ")"
		}
		f.groups[i].rows[label] = b
		if !slices.Contains(rows, label) {
			rows = append(rows, label)
		}
		if b.Label == f.baseline && (b.State == Measured || b.State == Predicted) {
			f.groups[i].base = b.total()
		}
	}
	return rows
}

// A panelLine is a line of panels: groups side by side, and the rows in which any of them has a bar.
type panelLine struct {
	groups []group
	rows   []string
}

// panelLines divides the groups into lines of panels.
func (f *bars) panelLines(rows []string, across int) (out []panelLine) {
	for groups := range slices.Chunk(f.groups, across) {
		l := panelLine{groups: groups}
		for _, r := range rows {
			if slices.ContainsFunc(groups, func(g group) bool { _, has := g.rows[r]; return has }) {
				l.rows = append(l.rows, r)
			}
		}
		out = append(out, l)
	}
	return out
}

// pageTall is the greatest height of a figure that shares a page only with its caption.
var pageTall = Centimetres(19)

// label returns the lines of a row's label.
func (f *bars) label(row string) (lines []label) {
	private := true
	for _, g := range f.groups {
		if b, has := g.rows[row]; has && b.NotPrivate {
			private = false
		}
	}
	all := wrapped(row)
	if !private {
		all[len(all)-1] += Mark
	}
	for i, part := range all {
		l := f.d.lab(part)
		l.slant, l.anchor, l.dx = !private, end, -3
		l.dy = (float64(i) - float64(len(all)-1)/2) * f.d.style.line()
		lines = append(lines, l)
	}
	return lines
}

func (f *bars) layout(rows []string) {
	d, s := f.d, f.d.style
	f.lines = 1
	for _, r := range rows {
		lines := f.label(r)
		f.lines = max(f.lines, len(lines))
		for _, l := range lines {
			f.left = max(f.left, wide(l)+3.5)
		}
	}
	across := min(len(f.groups), s.panels())
	if s.slide() {
		across = len(f.groups)
	}
	gap := 1.2 * s.Label
	panel := (s.Width - f.left - float64(across-1)*gap) / float64(across)
	f.tellApart()
	const mostOfPanel = 0.6 // share of a panel for the texts after the bars
	f.changes = f.endWidth(true) <= mostOfPanel*panel
	f.scale = (panel - f.endWidth(f.changes)) / f.most
	f.keep()

	titled := 0.0
	if len(f.groups) > 1 || f.groups[0].title != "" {
		titled = 1.6 * s.Label
	}
	var entries []entry
	if len(f.colours) > 1 {
		entries = f.entries()
	}
	top, drawLegend := d.legend(entries, 0, s.Width)
	if top > 0 {
		top += 0.5 * s.Label
		drawLegend(0)
	}
	ticks := []tick{{0, "0"}} // all ticks have the same height
	between := d.below(&axes{xTicks: ticks}) + 0.9*s.Label
	under := d.below(&axes{xTicks: ticks, xLabel: f.axis}) + 0.5*s.Label
	lines := f.panelLines(rows, across)
	size := 0.0
	lines, size = f.fit(lines, top+under, titled, between)
	y := top
	for i, line := range lines {
		y += titled
		height := size * float64(len(line.rows))
		for g := range line.groups {
			x := f.left + float64(g)*(panel+gap)
			a := &axes{box: box{x, y, x + f.most*f.scale, y + height}, x1: f.most / f.of.size,
				y0: float64(len(line.rows)) + 0.5, y1: 0.5, xLine: true, xGrid: true}
			d.along(a)
			f.reach(a, panel)
			if across == 1 && i == len(lines)-1 {
				a.xLabel = f.of.titled(f.axis)
			}
			d.open(a)
			f.panel(line.groups[g], line.rows, g == 0)
			d.open(nil)
			if titled > 0 {
				l := d.lab(Short(line.groups[g].title))
				l.bold = true
				l.text = fit(l, panel)
				l.dy = -0.5 * s.Label
				d.write(l, point{x, y})
			}
		}
		y += height + between
	}
	d.height = y - between + under
	if across > 1 {
		l := d.lab(f.of.titled(f.axis))
		l.anchor = middle
		d.write(l, point{(f.left + s.Width) / 2, d.height - 0.5*s.Label - descent*s.Label})
	}
}

// reach extends an axis to the tick beyond the longest bar if the panel has room.
func (f *bars) reach(a *axes, panel float64) {
	n := len(a.xTicks)
	if n < 2 {
		return
	}
	next := a.xTicks[n-1].at + a.xTicks[n-1].at - a.xTicks[n-2].at
	further := ticks(0, next, n)
	half := wide(f.d.lab(further[len(further)-1].text)) / 2 // of the new number is to the right of its tick
	const little = 0.6                                      // share of a tick's distance by which the axis may be extended
	if a.x1-a.xTicks[n-1].at < little*(next-a.xTicks[n-1].at) || a.x(next)+half > a.box.x0+panel {
		return
	}
	a.box.x1, a.x1, a.xTicks = a.x(next), next, further
}

// fit returns the lines of panels for which the place is high enough, and the height of a row. Many bars are thinner.
// around is the height of the legend and the axis. titled and between are heights that each line of panels takes.
func (f *bars) fit(lines []panelLine, around, titled, between float64) (fitting []panelLine, size float64) {
	d, s := f.d, f.d.style
	most, high := pageTall, max(1.62*s.Label, float64(f.lines)*s.line()+1)
	if s.slide() {
		most, high = s.Height, 2.4*s.Label
	}
	least := float64(f.lines) * s.line()
	for {
		rows := 0
		for _, l := range lines {
			rows += len(l.rows)
		}
		n := float64(len(lines))
		size = (most - around - n*titled - (n-1)*between) / float64(rows)
		if size >= least || len(lines) == 1 {
			return lines, min(high, max(size, least))
		}
		last := len(lines) - 1
		for _, g := range lines[last].groups {
			d.LeftOut = append(d.LeftOut, g.title)
		}
		lines = lines[:last]
	}
}

// tellApart gives values enough digits to distinguish totals: each total that is compared with the baseline has at
// least two digits, and does not print like the baseline's if the change says that they differ.
func (f *bars) tellApart() {
	const most, significant = 2, 10
	tiny := f.of.size * significant / math.Pow(10, float64(f.of.digits+most)) // below this, two more digits do not help
	wanting := func() bool {
		for _, g := range f.groups {
			for _, b := range g.rows {
				if g.base <= 0 || b.Label == f.baseline || b.State >= OOM || b.State == Bounded {
					continue
				}
				total := b.total()
				if total < tiny {
					continue
				}
				same := f.of.in(total) == f.of.in(g.base) && f.change(total, g.base) != f.change(g.base, g.base)
				if same || min(total, g.base)/f.of.size*math.Pow(10, float64(f.of.digits)) < significant {
					return true
				}
			}
		}
		return false
	}
	for digits := f.of.digits; f.of.digits < digits+most && wanting(); {
		f.of.digits++
	}
}

// endWidth returns the width of the widest text after a bar. If with is true, the text includes the change.
func (f *bars) endWidth(with bool) (w float64) {
	for _, g := range f.groups {
		for _, b := range g.rows {
			total, change := f.end(g, b, with)
			w = max(w, wide(total)+wide(change)+7)
		}
	}
	return w
}

// end returns the text after a bar: its total and the comparison.
func (f *bars) end(g group, b Bar, with bool) (total, change label) {
	d := f.d
	total, change = d.lab(f.of.in(b.total())), d.val("")
	total.bold = true
	change.colour = soft
	switch b.State {
	case OOM:
		total.text = "OOM"
	case Failed:
		total.text, total.bold, total.colour = "failed", false, soft
	case Bounded:
		total.text = "≥\u2009" + total.text
	case Predicted:
		total.text, total.slant = "~"+total.text, true
	case Measured, NotRun:
	}
	if with && g.base > 0 && b.Label != f.baseline && b.State < OOM && b.State != Bounded {
		change.text = f.change(b.total(), g.base)
	}
	return total, change
}

// keep merges keys into one minor segment at the end of each bar: keys that are too small to see in any bar, or for
// which the legend has no room.
func (f *bars) keep() {
	widest := map[string]float64{}
	for _, g := range f.groups {
		for _, b := range g.rows {
			for _, s := range b.Segments {
				if _, has := f.colours[s.Key]; has {
					widest[s.Key] = max(widest[s.Key], s.Value*f.scale)
				}
			}
		}
	}
	for _, key := range f.order {
		if widest[key] >= slightest {
			f.keys = append(f.keys, key)
		}
	}
	for len(f.keys) > 1 {
		if _, rows := f.d.legendPlaces(f.entries(), f.d.style.Width); rows <= MostLegendRows {
			break
		}
		least := 0
		for i, key := range f.keys {
			if widest[key] < widest[f.keys[least]] {
				least = i
			}
		}
		f.keys = slices.Delete(f.keys, least, least+1)
	}
	for _, g := range f.groups {
		for label, b := range g.rows {
			kept := slices.DeleteFunc(slices.Clone(b.Segments), f.minor)
			if rest := f.rest(b); rest > 0 {
				kept = append(kept, Segment{"", rest})
			}
			b.Segments = kept
			g.rows[label] = b
		}
	}
}

// minor reports whether a segment was merged into the minor one.
func (f *bars) minor(s Segment) bool { return !slices.Contains(f.keys, s.Key) }

// rest returns the sum of a bar's minor segments.
func (f *bars) rest(b Bar) (sum float64) {
	for _, s := range b.Segments {
		if f.minor(s) {
			sum += s.Value
		}
	}
	return sum
}

// entries returns the legend's entries: the kept keys in stacking order, and the minor segment if it is visible.
func (f *bars) entries() (out []entry) {
	for _, key := range f.keys {
		out = append(out, entry{nameOf(key, f.names), f.colours[key]})
	}
	for _, g := range f.groups {
		for _, b := range g.rows {
			if f.rest(b)*f.scale >= slightest {
				return append(out, entry{cmp.Or(f.merged, "Rest"), minor})
			}
		}
	}
	return out
}

func (f *bars) colour(key string) colour {
	if c, ok := f.colours[key]; ok && key != "" {
		return c
	}
	return minor
}

func (f *bars) panel(g group, rows []string, named bool) {
	d := f.d
	a := d.current
	inBar := map[string]bool{} // keys whose names are written inside a segment
	for i, row := range rows {
		y := a.y(float64(i + 1))
		if named {
			for _, l := range f.label(row) {
				d.beside(l, point{a.x(0), y})
			}
		}
		b, ok := g.rows[row]
		if !ok {
			continue
		}
		f.bar(g, b, y, inBar)
	}
	if f.line && g.base > 0 && len(g.rows) > 1 {
		f.dashedLine(a.x(g.base/f.of.size), len(rows))
	}
}

// clear is the least distance between a text and the dashed line.
const clear = 1.5

// dashedLine marks the baseline's total, with gaps at texts. A margin in the page's colour separates the line from dark
// bars.
func (f *bars) dashedLine(x float64, rows int) {
	d := f.d
	a := d.current
	step := a.box.height() / float64(rows)
	from := a.box.y0
	draw := func(to float64) {
		if to > from {
			d.line(page, 1.2, point{x, from}, point{x, to})
			d.dashed(text, 0.5, point{x, from}, point{x, to})
		}
	}
	half := min(0.6*d.style.Label, step/2) // half of a line of text
	for i := range rows {
		middle := a.box.y0 + (float64(i)+0.5)*step
		if d.covers(box{x - clear, middle - half, x + clear, middle + half}) {
			draw(middle - half)
			from = middle + half
		}
	}
	draw(a.box.y1)
}

func (f *bars) bar(g group, b Bar, y float64, named map[string]bool) {
	d := f.d
	a := d.current
	step := a.box.height() / (a.y0 - a.y1)
	half := min(0.36*step, 1.1*d.style.Label)
	at := 0.0
	x := func(v float64) float64 { return a.x(v / f.of.size) }
	switch b.State {
	case OOM:
		if f.capacity > 0 {
			all := box{x(0), y - half, x(f.capacity), y + half}
			d.hatch(all, soft)
			d.frame(all, soft, 0.4, false)
			at = f.capacity
		}
	case Failed, NotRun:
	case Predicted, Bounded, Measured:
		for _, s := range b.Segments {
			if s.Value <= 0 {
				continue
			}
			part := box{x(at), y - half, x(at + s.Value), y + half}
			c := f.colour(s.Key)
			d.rect(part, c, true)
			f.inside(part, s, c, named)
			at += s.Value
		}
		all := box{x(0), y - half, x(at), y + half}
		if b.State == Predicted {
			d.frame(all, text, 0.5, true)
		}
		if b.State == Bounded { // an open end: two lines that continue beyond the bar
			d.dashed(text, 0.5, point{all.x1, all.y0}, point{all.x1 + 5, all.y0})
			d.dashed(text, 0.5, point{all.x1, all.y1}, point{all.x1 + 5, all.y1})
		}
	}
	total, change := f.end(g, b, f.changes)
	total.dx = 3
	if b.State == Bounded {
		total.dx = 7
	}
	tip := point{x(at), y}
	if base := x(g.base); f.line && base > tip.x && base < tip.x+total.dx+wide(total)+clear {
		tip.x = base // the tip lies beyond the dashed line
	}
	d.besideOver(total, tip)
	change.dx = total.dx + wide(total) + 2
	change.dy += (total.size - change.size) * capital / 2 // both texts on one baseline
	c := change
	c.dy += c.size * capital / 2
	if change.text != "" && d.free(c, tip) {
		d.besideOver(change, tip)
	}
}

// inside writes a segment's value into it if there is room, and the segment's name once per figure.
func (f *bars) inside(part box, s Segment, c colour, named map[string]bool) {
	const least = 9.07 // 3.2 mm
	d := f.d
	l := d.val(f.of.in(s.Value))
	if part.width() < least || part.width() < wide(l)+0.5 || s.Key == "" || len(f.colours) == 1 {
		return
	}
	l.colour, l.anchor = inkOn(c), middle
	full := l
	full.text = shortName(s.Key, f.names) + " " + l.text
	if !named[s.Key] && part.width() >= wide(full)+8 {
		l, named[s.Key] = full, true
	}
	d.beside(l, point{(part.x0 + part.x1) / 2, (part.y0 + part.y1) / 2})
}
