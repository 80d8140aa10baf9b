package plates

import (
	"math"
	"slices"
)

// A Block shows what one run adds to the baseline's peak.
type Block struct {
	Label string
	// Changes are signed bytes by category, in stacking order. The caller has already offset bytes that only move
	// between two categories.
	Changes []Segment
	// Names are names of categories in this block that replace the figure's.
	Names map[string]string
}

// Waterfall shows how each run gets from the baseline's peak, which is 0 here, to its own.
type Waterfall struct {
	Blocks   []Block
	Baseline string  // the baseline's label
	Base     float64 // the baseline's peak in bytes, for the net change in per cent; 0 to omit it
	Names    map[string]string
}

// A fall is one row of a waterfall, which reaches from one sum to the next.
type fall struct {
	name     string
	colour   colour
	from, to float64
	text     string
	net      bool
}

// label returns the name beside a row.
func (r fall) label(d *Drawing) label {
	l := d.val(r.name)
	l.bold, l.anchor, l.dx = r.net, end, -3
	return l
}

// value returns the text after a row's bar.
func (r fall) value(d *Drawing) label {
	l := d.val(r.text)
	l.bold, l.dx = r.net, 2.5
	return l
}

// slightPart is the smallest share of the net change for which a waterfall has a row.
const slightPart = 0.005

// Draw draws the figure.
func (f Waterfall) Draw(s Style) (*Drawing, error) {
	d := newDrawing(s)
	low, high := 0.0, 0.0
	for _, b := range f.Blocks {
		sum := 0.0
		for _, c := range b.Changes {
			sum += c.Value
			low, high = min(low, sum), max(high, sum)
		}
	}
	if high == low {
		return nil, ErrEmpty
	}
	of := f.unit(max(high, -low))
	blocks := f.blocks(d, of)
	if len(blocks) == 0 {
		return nil, ErrEmpty
	}
	low, high = 0, 0
	for _, b := range blocks {
		for _, r := range b.rows {
			low, high = min(low, r.to), max(high, r.to)
		}
	}
	if high == low {
		return nil, ErrEmpty
	}

	across := 1
	if s.Wide && len(blocks) > 1 {
		across = 2
	}
	panel := (s.Width - float64(across-1)*2*s.Label) / float64(across)
	left, scale := f.widths(d, blocks, panel, low)
	if left > mostBeside*panel {
		for i := range blocks {
			blocks[i].above = panel
		}
		left, scale = f.widths(d, blocks, panel, low)
	}
	per := (len(blocks) + across - 1) / across
	tallest := 0.0
	heights := make([]float64, across) // heights of the panels, in rows
	for i, b := range blocks {
		heights[i/per] += b.tall(d) + gapOfBlocks
	}
	for _, h := range heights {
		tallest = max(tallest, h)
	}
	step := 1.3 * s.Label
	if s.slide() {
		step = min(1.5*s.Label, (s.Height-3*s.line())/tallest)
	}
	for p := range across {
		x := float64(p) * (panel + 2*s.Label)
		a := &axes{box: box{x + left, 0, x + left + (high-low)*scale, tallest * step}, x0: low / of.size,
			x1: high / of.size, y0: tallest, xLine: true, xGrid: true}
		d.along(a)
		a.xLabel = "Over the " + within(Short(f.Baseline)) + " peak (" + of.name + ")"
		if f.Baseline == "" {
			a.xLabel = "Over the baseline's peak (" + of.name + ")"
		}
		d.open(a)
		at := 0.5
		for _, b := range blocks[p*per : min(len(blocks), (p+1)*per)] {
			titles, first := b.title(d), at
			for k, l := range titles {
				d.beside(l, point{x, a.y(at + float64(k))})
			}
			if b.above > 0 {
				first += float64(len(titles))
			}
			for k, r := range b.rows {
				f.row(d, r, first+float64(k), of, k+1 < len(b.rows))
			}
			at += b.tall(d) + gapOfBlocks
		}
		d.open(nil)
		d.height = a.box.y1 + d.below(a) + 0.2*s.Label
	}
	return d, nil
}

// unit returns the unit of the baseline's peak, as in a paper's tables, or a smaller unit if that one would hide the
// largest change.
func (f Waterfall) unit(most float64) unit {
	const least, longest = 0.1, 100
	of := unitOfBytes(max(most, f.Base))
	if most < least*of.size {
		of = unitOfBytes(most)
	}
	if of.digits > 0 && most < longest*of.size {
		of.digits = 2
	}
	return of
}

const (
	gapOfBlocks = 0.35 // the gap between two blocks, in rows
	// mostBeside is the most of a panel's width that names beside the bars may take. If they need more, each block's
	// name stands above its rows.
	mostBeside = 0.55
)

// shown is the block of one run, or of several runs with the same printed rows.
type shown struct {
	labels []string
	rows   []fall
	above  float64 // the width that the names may take above the rows; 0 if the names stand beside the rows
}

// title returns the lines of a block's names.
func (b shown) title(d *Drawing) (lines []label) {
	for i, name := range b.labels {
		if i+1 < len(b.labels) {
			name += ","
		}
		for _, part := range wrapped(name) {
			l := d.lab(part)
			l.bold = true
			if n := len(lines) - 1; n >= 0 && b.above > 0 {
				joined := l
				joined.text = lines[n].text + " " + l.text
				if wide(joined) <= b.above {
					lines[n] = joined
					continue
				}
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// printsLike reports whether the rows of a block have the same printed names and numbers as rows.
func (b shown) printsLike(rows []fall) bool {
	return slices.EqualFunc(b.rows, rows, func(x, y fall) bool { return x.name == y.name && x.text == y.text })
}

// tall returns the height of a block, in rows.
func (b shown) tall(d *Drawing) float64 {
	titles := len(b.title(d))
	if b.above > 0 {
		return float64(titles + len(b.rows))
	}
	return float64(max(len(b.rows), titles))
}

// widths returns the width of the names beside the bars, and the number of points per byte: the most that leaves room
// for the text after each bar. A block's name stands left of the names of its first rows.
func (f Waterfall) widths(d *Drawing, blocks []shown, panel, low float64) (left, scale float64) {
	for _, b := range blocks {
		for k, l := range b.title(d) {
			if b.above > 0 {
				break
			}
			left = max(left, wide(l)+3.5)
			if k < len(b.rows) {
				left = max(left, wide(l)+d.style.Label+wide(b.rows[k].label(d))+3.5)
			}
		}
		for _, r := range b.rows {
			left = max(left, wide(r.label(d))+3.5)
		}
	}
	scale = math.Inf(1)
	for _, b := range blocks {
		for _, r := range b.rows {
			if reach := max(r.from, r.to) - low; reach > 0 {
				scale = min(scale, (panel-left-wide(r.value(d))-3)/reach)
			}
		}
	}
	return left, scale
}

// blocks are the blocks that the place has room for, each with its rows.
func (f Waterfall) blocks(d *Drawing, of unit) (out []shown) {
	most, rows := 48, 0
	if d.style.slide() {
		most = int((d.style.Height - 3*d.style.line()) / d.style.line())
	}
	for _, b := range f.Blocks {
		steps := f.steps(b, of)
		if i := slices.IndexFunc(out, func(s shown) bool { return s.printsLike(steps) }); i >= 0 {
			out[i].labels = append(out[i].labels, b.Label)
			continue
		}
		if rows+len(steps) > most {
			d.LeftOut = append(d.LeftOut, b.Label)
			continue
		}
		rows += len(steps)
		out = append(out, shown{labels: []string{b.Label}, rows: steps})
	}
	return out
}

func (f Waterfall) steps(b Block, of unit) (out []fall) {
	net := 0.0
	for _, c := range b.Changes {
		net += c.Value
	}
	sum := 0.0
	for _, c := range b.Changes {
		from := sum
		sum += c.Value
		if c.Value == 0 || math.Abs(c.Value) < slightPart*math.Abs(net) {
			continue
		}
		fill, known := categories[c.Key]
		if !known {
			fill = minor
		}
		name := nameOf(c.Key, f.Names)
		if own := b.Names[c.Key]; own != "" {
			name = own
		}
		out = append(out, fall{name, fill, from, sum, signed(c.Value/of.size, of.digits), false})
	}
	text := signed(net/of.size, of.digits)
	if f.Base > 0 {
		text += " (" + percent(f.Base+net, f.Base) + ")"
	}
	return append(out, fall{"Net", soft, 0, net, text, true})
}

func (f Waterfall) row(d *Drawing, r fall, at float64, of unit, more bool) {
	a := d.current
	y, half := a.y(at), 0.36*a.box.height()/(a.y0-a.y1)
	x0, x1 := a.x(min(r.from, r.to)/of.size), a.x(max(r.from, r.to)/of.size)
	d.beside(r.label(d), point{a.box.x0, y})
	d.rect(box{x0, y - half, min(x1, a.box.x1), y + half}, r.colour, false)
	if more && !r.net {
		step := a.box.height() / (a.y0 - a.y1)
		d.line(soft, 0.3, point{a.x(r.to / of.size), y + half}, point{a.x(r.to / of.size), y + step - half})
	}
	d.besideOver(r.value(d), point{x1, y})
}
