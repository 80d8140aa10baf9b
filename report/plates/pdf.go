package plates

import (
	"fmt"
	"io"
	"math"
	"time"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/sfnt"

	"github.com/dpsight/dpsight/report/canvas"
)

const family = "Liberation Sans"

// PDF writes the figure as a page of the figure's size. PDF embeds the fonts that the figure uses, reduced to the
// characters that occur.
func (d *Drawing) PDF(w io.Writer) error {
	f := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{Wd: d.Width(), Ht: d.height}})
	f.SetCatalogSort(true) // so that the same figure gives the same file
	f.SetCreationDate(time.Unix(0, 0).UTC())
	f.SetModificationDate(time.Unix(0, 0).UTC())
	f.SetProducer("dpsight", true)
	f.SetMargins(0, 0, 0)
	f.SetAutoPageBreak(false, 0)
	if d.uses(false) {
		f.AddUTF8FontFromBytes(family, "", liberationsansregular.TTF)
	}
	if d.uses(true) {
		f.AddUTF8FontFromBytes(family, "B", liberationsansbold.TTF)
	}
	f.AddPage()
	p := pdf{f, d.style}
	p.fill(page)
	f.Rect(0, 0, d.Width(), d.height, "F")
	for _, i := range d.items {
		p.item(i)
	}
	if err := f.Output(w); err != nil {
		return fmt.Errorf("writing the figure as PDF: %w", err)
	}
	return nil
}

// uses reports whether some text is heavy, if heavy is true, or not heavy otherwise.
func (d *Drawing) uses(heavy bool) bool {
	for _, i := range d.items {
		if i.label != nil && i.label.bold == heavy {
			return true
		}
	}
	return false
}

type pdf struct {
	*fpdf.Fpdf
	style Style
}

func channels(c canvas.Color) (r, g, b int) {
	return int(c >> 16 & 0xff), int(c >> 8 & 0xff), int(c & 0xff)
}

func (p pdf) fill(c colour) { p.SetFillColor(channels(c.on(p.style))) }

func (p pdf) item(i item) {
	if i.label != nil {
		p.text(*i.label, i.points[0])
		return
	}
	how := ""
	if i.fill != nil {
		how = "F"
		p.fill(*i.fill)
	}
	if i.stroke != nil {
		how += "D"
		p.SetDrawColor(channels(i.stroke.on(p.style)))
		p.SetLineWidth(i.width)
	}
	if i.dash {
		p.SetDashPattern([]float64{2, 1.4}, 0)
		defer p.SetDashPattern(nil, 0)
	}
	if i.radius > 0 {
		p.Circle(i.points[0].x, i.points[0].y, i.radius, how)
		return
	}
	p.SetLineJoinStyle("miter")
	p.MoveTo(i.points[0].x, i.points[0].y)
	for _, at := range i.points[1:] {
		p.LineTo(at.x, at.y)
	}
	if i.fill != nil {
		p.ClosePath()
	}
	p.DrawPath(how)
}

func (p pdf) text(l label, at point) {
	p.SetTextColor(channels(l.colour.on(p.style)))
	p.fill(l.colour)
	x, y, turn := l.origin(at)
	if turn || l.slant {
		p.TransformBegin()
		defer p.TransformEnd()
	}
	if turn {
		p.TransformRotate(90, x, y)
	}
	if l.slant {
		p.TransformSkewX(slantDegrees, x, y)
	}
	style := ""
	if l.bold {
		style = "B"
	}
	for _, r := range runs(l.text, l.size, l.bold) {
		switch {
		case r.own:
			p.SetFont(family, style, l.size)
			p.Text(x, y, r.text)
		default:
			p.outlines(r, x, y, l.size)
		}
		x += r.width
	}
}

const slantDegrees = 12

// origin returns the place where a label's baseline begins, and whether the text is turned upward.
func (l label) origin(at point) (x, y float64, turned bool) {
	x, y = at.x+l.dx, at.y+l.dy
	w := measure(l.text, l.size, l.bold)
	if l.turned {
		return x, y + w/2, true
	}
	switch l.anchor {
	case middle:
		x -= w / 2
	case end:
		x -= w
	case start:
	}
	return x, y, false
}

func (p pdf) outlines(r run, x, y, size float64) {
	drawn := false
	r.trace(x, y, size, func(op sfnt.SegmentOp, a [3]point) {
		drawn = true
		switch op {
		case sfnt.SegmentOpMoveTo:
			p.MoveTo(a[0].x, a[0].y)
		case sfnt.SegmentOpLineTo:
			p.LineTo(a[0].x, a[0].y)
		case sfnt.SegmentOpQuadTo:
			p.CurveTo(a[0].x, a[0].y, a[1].x, a[1].y)
		case sfnt.SegmentOpCubeTo:
			p.CurveBezierCubicTo(a[0].x, a[0].y, a[1].x, a[1].y, a[2].x, a[2].y)
		}
	})
	if drawn {
		p.DrawPath("F")
	}
}

// trace calls draw with the outlines of a run whose baseline begins at (x, y). Without a font, each character is an
// empty box.
func (r run) trace(x, y, size float64, draw func(sfnt.SegmentOp, [3]point)) {
	for _, c := range r.text {
		if r.face == nil {
			missing(x, y, size, draw)
			x += size
			continue
		}
		for _, s := range r.face.outline(c, tracedAt) {
			var a [3]point
			for i, v := range s.Args {
				a[i] = point{x + float64(v.X)/64*size/tracedAt, y + float64(v.Y)/64*size/tracedAt}
			}
			draw(s.Op, a)
		}
		w, _ := r.face.width(c)
		x += w * size
	}
}

// tracedAt is the font size at which outlines are read: large, so that rounding does not matter.
const tracedAt = 512

func missing(x, y, size float64, draw func(sfnt.SegmentOp, [3]point)) {
	// The inner rectangle is drawn in the opposite direction, so that its inside stays empty.
	for _, inset := range []float64{0.1, 0.16} {
		b := box{x + inset*size, y - capital*size + (inset-0.1)*size, x + (1-inset)*size, y - (inset-0.1)*size}
		corners := []point{{b.x0, b.y0}, {b.x1, b.y0}, {b.x1, b.y1}, {b.x0, b.y1}}
		if inset > 0.1 {
			corners[1], corners[3] = corners[3], corners[1]
		}
		draw(sfnt.SegmentOpMoveTo, [3]point{corners[0]})
		for _, c := range corners[1:] {
			draw(sfnt.SegmentOpLineTo, [3]point{c})
		}
		draw(sfnt.SegmentOpLineTo, [3]point{corners[0]})
	}
}

// circlePath draws a circle's outline as four curves.
func circlePath(c point, r float64, draw func(sfnt.SegmentOp, [3]point)) {
	k := r * 4 / 3 * (math.Sqrt2 - 1)
	draw(sfnt.SegmentOpMoveTo, [3]point{{c.x + r, c.y}})
	draw(sfnt.SegmentOpCubeTo, [3]point{{c.x + r, c.y + k}, {c.x + k, c.y + r}, {c.x, c.y + r}})
	draw(sfnt.SegmentOpCubeTo, [3]point{{c.x - k, c.y + r}, {c.x - r, c.y + k}, {c.x - r, c.y}})
	draw(sfnt.SegmentOpCubeTo, [3]point{{c.x - r, c.y - k}, {c.x - k, c.y - r}, {c.x, c.y - r}})
	draw(sfnt.SegmentOpCubeTo, [3]point{{c.x + k, c.y - r}, {c.x + r, c.y - k}, {c.x + r, c.y}})
}
