package plates

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Band has the bytes of one category over the step's allocator events.
type Band struct {
	Key    string
	Values []float64 // bytes from event At[i] to event At[i+1]
}

// A Span is a phase of the step.
type Span struct {
	Key, Name string  // Name replaces the key's own words
	From, To  float64 // first and last event of the phase
}

// Step shows when and why the memory of one step peaks: stacked areas over its allocator events. The axis shows the
// order of events, and is not to scale in time.
type Step struct {
	At     []float64 // events at which values begin, and last the event at which the step ends
	Bands  []Band    // in stacking order
	Phases []Span
	Cause  string // the key of the category to name at the peak; "" for none
	Run    bool   // whether the figure shows all steps of a run, with steps in place of phases
	Names  map[string]string
}

// MostStretches is the most pieces in which a step is drawn. A piece shows the moment of its highest total.
const MostStretches = 300

// reduced is a step in at most MostStretches pieces. Bands are summed in stacking order, so that each has the height of
// its upper edge.
type reduced struct {
	at    []float64
	tops  [][]float64
	keys  []string
	peak  int     // index of the piece with the highest total
	event float64 // the peak's event, and each band's bytes there
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
	// There must be room for the peak's name above it, in the axis's unit.
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

// areas fills the bands from the highest down, so that each covers the lower part of the previous one.
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

// A place is a place in a band where the band's name fits.
type place struct {
	x, y float64 // the label's middle
	ok   bool
}

// placeIn finds a place where a band is high enough over the whole width of a label. placeIn prefers places within a
// phase and near the middle of the axes.
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

// unplaced returns, in stacking order, the visible bands that have no room for their names. If the legend has too
// little room, the bands with the largest areas remain.
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

// mark writes the peak's name above it, with its size and the category that the caller names.
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
	if tip.x > at { // the line ends below the words and does not cross them
		tip.y = base + descent*l.size
	}
	d.line(text, 0.4, point{x, y}, tip)
	d.circle(point{x, y}, d.scaled(1.4), text, text, 0.3)
	l.anchor = end // so that the two labels touch in any font
	d.write(l, point{at + wide(l), base})
	d.write(more, point{at + wide(l) + gap, base})
}

// phaseBar is the line of phases above the axes. Names of narrow phases are raised on a tick.
type phaseBar struct {
	height float64
	ends   []float64 // places on the axis where phases begin and end
	names  []phaseName
}

type phaseName struct {
	label label
	x     float64 // middle of the phase
	level int     // 0 is the level next to the axes
}

// leastRepeats is the number of repetitions in the same order from which on phases are drawn as one loop.
const leastRepeats = 3

// loop is the key of repeated phases that are drawn as one.
const loop = "loop"

// folded returns the phases in order. A loop is one phase, whose name lists each of its phases once: "forward, backward
// × 32".
func (f Step) folded() (out []Span) {
	all := slices.Clone(f.Phases)
	if f.Run {
		return all
	}
	slices.SortStableFunc(all, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	const longest = 6 // the most phases of a loop's round
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

// unnamed reports whether a phase uses no memory of its own, so that it has no name if it is narrow.
func unnamed(key string) bool { return key == "zero_grad" || key == "between" }

// phaseName returns a phase's name for the line above the axes.
func (f Step) phaseName(p Span) string {
	if p.Name == "" {
		return shortName(p.Key, f.Names)
	}
	return p.Name
}

// phases places the names of phases in up to three levels. A name without room in any level is left out.
func (f Step) phases(d *Drawing, a *axes, thousand float64) (out phaseBar) {
	const levels = 3
	var taken [levels][][2]float64
	size := d.style.Value
	high := 0
	if len(f.Phases) == 0 {
		return out
	}
	widest := f.folded() // without the narrow phases, which take the remaining room later
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
		if mid-half < a.box.x0 && x1-x0 < 2*half { // a name may extend a little beyond the axes
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
			crossed := false // a tick must not cross the names below it, and no tick may cross this name
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

// draw draws the line of phases. Lines between phases stand beside the column of the peak, so that they do not hide it.
func (p phaseBar) draw(d *Drawing, a *axes, peak box) {
	if p.height == 0 {
		return
	}
	y := a.box.y0 - 1.5
	const width = 0.5 // width of a line
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
