package plates

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Band is a category over the step's allocator events.
type Band struct {
	Key    string
	Values []float64 // bytes from event At[i] to event At[i+1]
}

// A Span is a phase of the step.
type Span struct {
	Key, Name string  // Name is used if the key's words do not fit
	From, To  float64 // events
}

// Step shows when and why one step's memory peaks: stacked areas over its allocator events, which are in order but
// not to scale in time.
type Step struct {
	At     []float64 // events at which values begin; the last one ends the step, so there is one more than values
	Bands  []Band    // in stacking order
	Phases []Span
	Cause  string // the key of the category to name at the peak; "" for none
	Run    bool   // the figure shows all steps of a run, and steps stand in the place of phases
	Names  map[string]string
}

// MostStretches is how many pieces a step is drawn in. Each piece shows the moment of its highest total.
const MostStretches = 300

// reduced is the step in at most MostStretches pieces, with bands summed up in stacking order: each band has the height
// of its upper edge.
type reduced struct {
	at    []float64
	tops  [][]float64
	keys  []string
	peak  int     // the piece with the highest total
	event float64 // event of the peak, and how much each band has there
	here  []float64
}

func (f Step) reduce() (r reduced) {
	n := len(f.At) - 1
	for _, b := range f.Bands {
		n = min(n, len(b.Values))
	}
	if n < 1 || len(f.Bands) == 0 {
		return r
	}
	total := func(i int) (sum float64) {
		for _, b := range f.Bands {
			sum += b.Values[i]
		}
		return sum
	}
	pieces := min(n, MostStretches)
	var moments []int
	for p := range pieces {
		from, to := p*n/pieces, (p+1)*n/pieces
		best := from
		for i := from + 1; i < to; i++ {
			if total(i) > total(best) {
				best = i
			}
		}
		moments = append(moments, best)
		r.at = append(r.at, f.At[from])
		if total(best) > total(moments[r.peak]) {
			r.peak = p
		}
	}
	r.at = append(r.at, f.At[n])
	r.event = f.At[moments[r.peak]]
	below := make([]float64, pieces)
	for _, b := range f.Bands {
		tops := make([]float64, pieces)
		for p, i := range moments {
			tops[p] = below[p] + b.Values[i]
		}
		r.tops, r.keys = append(r.tops, tops), append(r.keys, b.Key)
		r.here = append(r.here, b.Values[moments[r.peak]])
		below = tops
	}
	return r
}

// Draw draws the figure.
func (f Step) Draw(s Style) (*Drawing, error) {
	r := f.reduce()
	if len(r.tops) == 0 {
		return nil, ErrEmpty
	}
	peak := r.tops[len(r.tops)-1][r.peak]
	first, last := r.at[0], r.at[len(r.at)-1]
	if peak <= 0 || last <= first {
		return nil, ErrEmpty
	}
	d := newDrawing(s)
	of := unitOfBytes(peak)
	events, thousand := "Allocator events of the step", 1.0
	if f.Run {
		events = "Allocator events of the run"
	}
	if last >= 10000 {
		events, thousand = events+" (thousands)", 1000
	}
	height := Centimetres(4.3)
	if s.slide() {
		height = s.Height * 0.62
	}
	// Room above the peak for its name, in the axis's unit.
	room := 2.1 * s.Label / (height - 2.1*s.Label) * peak / of.size
	a := &axes{x0: first / thousand, x1: last / thousand, y1: peak/of.size + room, xLine: true, yLine: true,
		xLabel: events, yLabel: "Allocated (" + of.name + ")"}
	a.yTicks = ticks(0, peak/of.size, 5)
	a.box = box{d.left(a), 0, s.Width - 0.6*s.Label, height}
	d.along(a)
	a.box.x1 -= max(0, wide(d.lab(lastOf(a.xTicks)))/2-0.6*s.Label)
	phases := f.phases(d, a, thousand)
	legend := f.unplaced(d, a, r, of, thousand)
	high, drawLegend := d.legend(legend, 0, s.Width)
	if high > 0 {
		high += 0.5 * s.Label
		drawLegend(0)
	}
	top := high + phases.height
	a.box.y0, a.box.y1 = top, top+height

	d.open(a)
	f.areas(d, a, r, of, thousand)
	phases.draw(d, a, box{a.x(r.at[r.peak] / thousand), a.box.y0, a.x(r.at[r.peak+1] / thousand), a.box.y1})
	f.name(d, a, r, of, thousand)
	f.mark(d, a, r, of, thousand)
	d.open(nil)
	d.height = a.box.y1 + d.below(a) + 0.2*s.Label
	return d, nil
}

func lastOf(all []tick) string {
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].text
}

func (f Step) colour(key string) colour {
	if c, ok := categories[key]; ok {
		return c
	}
	return minor
}

// areas fills the bands from the highest down, so that each covers what lies under it.
func (f Step) areas(d *Drawing, a *axes, r reduced, of unit, thousand float64) {
	for b, tops := range slices.Backward(r.tops) {
		line := []point{{a.x(r.at[0] / thousand), a.y(0)}}
		empty := true
		for i, v := range tops {
			below := 0.0
			if b > 0 {
				below = r.tops[b-1][i]
			}
			empty = empty && v == below
			y := a.y(v / of.size)
			if n := len(line); i > 0 && line[n-1].y == y {
				line[n-1].x = a.x(r.at[i+1] / thousand)
				continue
			}
			line = append(line, point{a.x(r.at[i] / thousand), y}, point{a.x(r.at[i+1] / thousand), y})
		}
		if !empty {
			d.polygon(f.colour(r.keys[b]), append(line, point{a.x(r.at[len(r.at)-1] / thousand), a.y(0)})...)
		}
	}
}

// A place is where a band's name fits in it.
type place struct {
	x, y float64 // of the label's middle
	ok   bool
}

// placeIn finds where a band is tall enough over the width of a label. placeIn prefers places within a phase and near
// the middle of the axes.
func (f Step) placeIn(d *Drawing, a *axes, r reduced, b int, l label, of unit, thousand float64) (best place) {
	w := wide(l) + 4
	var found []place
	var tall []float64
	tallest := 1.02 * l.size
	for i := range r.tops[b] {
		from := a.x(r.at[i] / thousand)
		upper, lower := math.Inf(1), math.Inf(-1)
		for k := i; k < len(r.tops[b]); k++ {
			below := 0.0
			if b > 0 {
				below = r.tops[b-1][k]
			}
			upper, lower = min(upper, r.tops[b][k]), max(lower, below)
			high := (upper - lower) / of.size / (a.y1 - a.y0) * a.box.height()
			if high < 1.02*l.size {
				break
			}
			if to := a.x(r.at[k+1] / thousand); to-from >= w {
				found = append(found, place{(from + to) / 2, a.y((upper + lower) / 2 / of.size), true})
				tall = append(tall, high)
				tallest = max(tallest, high)
				break
			}
		}
	}
	cost := math.Inf(1)
	for i, p := range found {
		if tall[i] < min(0.8*tallest, 2.5*l.size) {
			continue
		}
		c := math.Abs(p.x - (a.box.x0+a.box.x1)/2)
		for _, phase := range f.Phases {
			if x := a.x(phase.To / thousand); math.Abs(x-p.x) < w/2 {
				c += a.box.width()
			}
		}
		if c < cost {
			cost, best = c, p
		}
	}
	return best
}

func (f Step) label(d *Drawing, key string) label {
	l := d.val(strings.ToLower(nameOf(key, f.Names)))
	l.anchor, l.colour = middle, inkOn(f.colour(key))
	return l
}

// unplaced are the bands that are seen and have no room for their names, in stacking order: those with the largest
// areas that a legend has room for.
func (f Step) unplaced(d *Drawing, a *axes, r reduced, of unit, thousand float64) (out []entry) {
	var areas []float64
	for b, key := range r.keys {
		tall, area := 0.0, 0.0
		for i, v := range r.tops[b] {
			if b > 0 {
				v -= r.tops[b-1][i]
			}
			high := v / of.size / (a.y1 - a.y0) * a.box.height()
			tall, area = max(tall, high), area+high*(a.x(r.at[i+1]/thousand)-a.x(r.at[i]/thousand))
		}
		if tall >= slightest && area >= slightest*slightest && !f.placeIn(d, a, r, b, f.label(d, key), of, thousand).ok {
			out, areas = append(out, entry{nameOf(key, f.Names), f.colour(key)}), append(areas, area)
		}
	}
	for len(out) > 1 {
		if _, rows := d.legendPlaces(out, d.style.Width); rows <= MostLegendRows {
			break
		}
		least := slices.Index(areas, slices.Min(areas))
		d.LeftOut = append(d.LeftOut, out[least].name)
		out, areas = slices.Delete(out, least, least+1), slices.Delete(areas, least, least+1)
	}
	return out
}

func (f Step) name(d *Drawing, a *axes, r reduced, of unit, thousand float64) {
	for b, key := range r.keys {
		l := f.label(d, key)
		if p := f.placeIn(d, a, r, b, l, of, thousand); p.ok {
			d.beside(l, point{p.x, p.y})
		}
	}
}

// mark names the peak above it, with its size and the category that the caller names.
func (f Step) mark(d *Drawing, a *axes, r reduced, of unit, thousand float64) {
	x, y := a.x(r.event/thousand), a.y(r.tops[len(r.tops)-1][r.peak]/of.size)
	l := d.lab(fmt.Sprintf("Peak %s %s", of.in(r.tops[len(r.tops)-1][r.peak]), of.name))
	l.bold = true
	more := d.val("")
	if i := slices.Index(r.keys, f.Cause); i >= 0 && r.here[i] > 0 {
		more.text = fmt.Sprintf("with %s %s %s", of.in(r.here[i]), of.name, strings.ToLower(nameOf(f.Cause, f.Names)))
	}
	const gap = 1.5
	whole := wide(l) + wide(more) + gap
	if whole > d.style.Width-a.box.x0 {
		more.text, whole = "", wide(l)
	}
	at := max(min(x+4, d.style.Width-whole), a.box.x0+2)
	base := a.box.y0 + 0.35*d.style.Label + ascent*l.size
	tip := point{max(min(x+3, at+whole), at-1), base - 0.2*l.size}
	if tip.x > at { // below the words, not through them
		tip.y = base + descent*l.size
	}
	d.line(text, 0.4, point{x, y}, tip)
	d.circle(point{x, y}, d.scaled(1.4), text, text, 0.3)
	l.anchor = end // so that the two labels join in any font
	d.write(l, point{at + wide(l), base})
	d.write(more, point{at + wide(l) + gap, base})
}

// phaseBar is drawn above a step: its phases, narrow ones raised on a tick.
type phaseBar struct {
	height float64
	ends   []float64 // places of the axis where phases begin and end
	names  []phaseName
}

type phaseName struct {
	label label
	x     float64 // middle of the phase
	level int     // 0: beside the axis
}

// leastRepeats is how often phases must follow one another in the same order to be drawn as one.
const leastRepeats = 3

// loop is the key of phases that are drawn as one.
const loop = "loop"

// folded are the phases in order, with the phases of a loop as one phase that names each once: "forward, backward ×
// 32".
func (f Step) folded() (out []Span) {
	all := slices.Clone(f.Phases)
	if f.Run {
		return all
	}
	slices.SortStableFunc(all, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	const longest = 6 // phases of a round
	same := func(a, b Span) bool { return a.Key == b.Key && a.Name == b.Name }
	for i := 0; i < len(all); {
		period, times := 1, 1
		for p := 1; p <= longest; p++ {
			n := 1
			for ; i+(n+1)*p <= len(all) && slices.EqualFunc(all[i:i+p], all[i+n*p:i+(n+1)*p], same); n++ {
			}
			if n >= leastRepeats && n*p > period*times {
				period, times = p, n
			}
		}
		if times == 1 {
			out = append(out, all[i])
			i++
			continue
		}
		var names []string
		for _, p := range all[i : i+period] {
			if unnamed(p.Key) {
				continue
			}
			names = append(names, Short(f.phaseName(p)))
		}
		last := all[i+period*times-1]
		if len(names) > 0 {
			out = append(out, Span{Key: loop, Name: fmt.Sprintf("%s × %d", strings.Join(names, ", "), times),
				From: all[i].From, To: last.To})
		}
		i += period * times
	}
	return out
}

// unnamed reports whether a phase has no memory of its own, and so no name where it is narrow.
func unnamed(key string) bool { return key == "zero_grad" || key == "between" }

// phaseName is a phase's name in the line above the axes.
func (f Step) phaseName(p Span) string {
	if p.Name == "" {
		return shortName(p.Key, f.Names)
	}
	return p.Name
}

// phases places the names in up to three levels. A name that has no room in any level is left out.
func (f Step) phases(d *Drawing, a *axes, thousand float64) (out phaseBar) {
	const levels = 3
	var taken [levels][][2]float64
	size := d.style.Value
	high := 0
	if len(f.Phases) == 0 {
		return out
	}
	widest := f.folded() // first: the narrow ones take the remaining room
	slices.SortStableFunc(widest, func(a, b Span) int { return cmp.Compare(b.To-b.From, a.To-a.From) })
	for _, p := range widest {
		x0, x1 := a.x(max(p.From/thousand, a.x0)), a.x(min(p.To/thousand, a.x1))
		if x1 <= x0 {
			continue
		}
		name := f.phaseName(p)
		if p.Key != loop {
			name = Short(name)
		}
		l := d.val(fit(d.val(name), a.box.width()))
		l.anchor = middle
		out.ends = append(out.ends, x0, x1)
		mid, half := (x0+x1)/2, wide(l)/2+2
		if mid-half < a.box.x0 && x1-x0 < 2*half { // may hang over the axes a little
			mid = max(mid, half)
		}
		at := max(min(mid, d.style.Width-half), half)
		for level := range levels {
			if level == 0 && x1-x0 < 2*half {
				continue
			}
			if slices.ContainsFunc(taken[level][:], func(o [2]float64) bool { return at-half < o[1] && o[0] < at+half }) {
				continue
			}
			if level > 0 && (x1-x0 < slightest || unnamed(p.Key)) {
				break // too narrow to see, or without memory of its own
			}
			crossed := false // a tick must not cross the names under it, nor a tick this name
			for below := range level {
				for _, o := range taken[below] {
					crossed = crossed || mid >= o[0] && mid <= o[1]
				}
			}
			for _, o := range out.names {
				crossed = crossed || o.level > level && o.x >= at-half && o.x <= at+half
			}
			if crossed {
				continue
			}
			taken[level] = append(taken[level], [2]float64{at - half, at + half})
			l.dx = at - mid
			out.names = append(out.names, phaseName{l, mid, level})
			high = max(high, level)
			break
		}
	}
	slices.Sort(out.ends)
	out.height = float64(high+1)*1.25*size + 4
	return out
}

// draw draws the phases. The lines that part them stand beside the column of the peak, and do not hide it.
func (p phaseBar) draw(d *Drawing, a *axes, peak box) {
	if p.height == 0 {
		return
	}
	y := a.box.y0 - 1.5
	const width = 0.5 // of a line
	for _, x := range p.ends {
		if x > a.box.x0+1 && x < a.box.x1-1 {
			at := x
			if x > peak.x0-width/2 && x < peak.x1+width/2 {
				at = peak.x0 - width/2
				if x > (peak.x0+peak.x1)/2 {
					at = peak.x1 + width/2
				}
			}
			d.line(page, width, point{at, a.box.y0}, point{at, a.box.y1})
		}
		d.line(soft, 0.4, point{x, y - 2}, point{x, y + 1})
	}
	if n := len(p.ends); n > 0 {
		d.line(soft, 0.4, point{p.ends[0], y}, point{p.ends[n-1], y})
	}
	for _, n := range p.names {
		base := y - 2 - float64(n.level)*1.25*d.style.Value - descent*d.style.Value
		if n.level > 0 {
			d.line(soft, 0.4, point{n.x, y}, point{n.x, base + descent*d.style.Value - 0.5})
		}
		d.write(n.label, point{n.x, base})
	}
}
