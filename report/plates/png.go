package plates

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"io"
	"math"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/vector"

	"github.com/dpsight/dpsight/report/canvas"
)

// dots is the resolution of a PNG, in dots per inch.
const dots = 300

// PNG writes the figure as a picture with 300 dots per inch.
func (d *Drawing) PNG(w io.Writer) error {
	const scale = dots / 72.
	img := image.NewRGBA(image.Rect(0, 0, int(math.Round(d.Width()*scale)), int(math.Round(d.height*scale))))
	p := bitmap{img: img, scale: scale, style: d.style}
	p.begin()
	p.rect(box{0, 0, d.Width() + 1, d.height + 1})
	p.paint(page)
	for _, i := range d.items {
		p.item(i)
	}
	if err := canvas.WritePNG(w, img, dots); err != nil {
		return fmt.Errorf("writing the figure as PNG: %w", err)
	}
	return nil
}

// A bitmap collects a path and paints only the part of the picture that the path covers.
type bitmap struct {
	img    *image.RGBA
	scale  float64
	style  Style
	ops    []sfnt.SegmentOp
	args   [][3]point
	box    box
	raster vector.Rasterizer
	cover  []uint8 // how much of each pixel the path covers
}

func (p *bitmap) begin() {
	p.ops, p.args = p.ops[:0], p.args[:0]
	p.box = box{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
}

func (p *bitmap) draw(op sfnt.SegmentOp, a [3]point) {
	used := 1
	switch op {
	case sfnt.SegmentOpQuadTo:
		used = 2
	case sfnt.SegmentOpCubeTo:
		used = 3
	case sfnt.SegmentOpMoveTo, sfnt.SegmentOpLineTo:
	}
	for i := range a[:used] {
		a[i] = point{a[i].x * p.scale, a[i].y * p.scale}
		p.box = box{min(p.box.x0, a[i].x), min(p.box.y0, a[i].y), max(p.box.x1, a[i].x), max(p.box.y1, a[i].y)}
	}
	p.ops, p.args = append(p.ops, op), append(p.args, a)
}

func (p *bitmap) polygon(points ...point) {
	for i, at := range points {
		op := sfnt.SegmentOpLineTo
		if i == 0 {
			op = sfnt.SegmentOpMoveTo
		}
		p.draw(op, [3]point{at})
	}
}

func (p *bitmap) rect(b box) {
	p.polygon(point{b.x0, b.y0}, point{b.x1, b.y0}, point{b.x1, b.y1}, point{b.x0, b.y1})
}

func (p *bitmap) paint(c colour) {
	if len(p.ops) == 0 {
		return
	}
	area := image.Rect(int(math.Floor(p.box.x0)), int(math.Floor(p.box.y0)), int(math.Ceil(p.box.x1)),
		int(math.Ceil(p.box.y1))).Intersect(p.img.Rect)
	if area.Empty() {
		return
	}
	r := &p.raster
	r.Reset(area.Dx(), area.Dy())
	at := func(q point) (x, y float32) {
		return float32(q.x - float64(area.Min.X)), float32(q.y - float64(area.Min.Y))
	}
	for i, op := range p.ops {
		a := p.args[i]
		x0, y0 := at(a[0])
		x1, y1 := at(a[1])
		x2, y2 := at(a[2])
		switch op {
		case sfnt.SegmentOpMoveTo:
			r.ClosePath()
			r.MoveTo(x0, y0)
		case sfnt.SegmentOpLineTo:
			r.LineTo(x0, y0)
		case sfnt.SegmentOpQuadTo:
			r.QuadTo(x0, y0, x1, y1)
		case sfnt.SegmentOpCubeTo:
			r.CubeTo(x0, y0, x1, y1, x2, y2)
		}
	}
	r.ClosePath()
	red, green, blue := channels(c.on(p.style))
	p.blend(area, color.RGBA{uint8(red), uint8(green), uint8(blue), 255})
}

// blend paints the pixels of an area that the path covers. Most pixels of a large area are covered completely or not at
// all, and the rasterizer's own painting mixes colours for those too.
func (p *bitmap) blend(area image.Rectangle, c color.RGBA) {
	width, size := area.Dx(), area.Dx()*area.Dy()
	if cap(p.cover) < size {
		p.cover = make([]uint8, size)
	}
	mask := image.Alpha{Pix: p.cover[:size], Stride: width, Rect: image.Rect(0, 0, width, area.Dy())}
	p.raster.DrawOp = draw.Src
	p.raster.Draw(&mask, mask.Rect, image.Opaque, image.Point{})
	mix := func(over, under uint8, part uint32) uint8 {
		return uint8((uint32(over)*part + uint32(under)*(255-part) + 127) / 255)
	}
	for y := range area.Dy() {
		line := p.img.Pix[p.img.PixOffset(area.Min.X, area.Min.Y+y):]
		for x, part := range mask.Pix[y*width : (y+1)*width] {
			if part == 0 {
				continue
			}
			at := line[4*x : 4*x+4 : 4*x+4]
			if part < 255 {
				n := uint32(part)
				at[0], at[1], at[2] = mix(c.R, at[0], n), mix(c.G, at[1], n), mix(c.B, at[2], n)
				at[3] = mix(255, at[3], n)
				continue
			}
			at[0], at[1], at[2], at[3] = c.R, c.G, c.B, 255
		}
	}
}

func (p *bitmap) item(i item) {
	if i.label != nil {
		p.text(*i.label, i.points[0])
		return
	}
	if i.radius > 0 {
		p.circle(i)
		return
	}
	if i.fill != nil {
		p.begin()
		p.polygon(i.points...)
		p.paint(*i.fill)
	}
	if i.stroke == nil {
		return
	}
	points := i.points
	if i.fill != nil {
		points = append(points[:len(points):len(points)], points[0])
	}
	p.stroke(points, i.width, i.dash, *i.stroke)
}

func (p *bitmap) circle(i item) {
	r := i.radius
	if i.stroke != nil {
		r += i.width / 2
		p.begin()
		circlePath(i.points[0], r, p.draw)
		p.paint(*i.stroke)
		r -= i.width
	}
	p.begin()
	circlePath(i.points[0], r, p.draw)
	p.paint(*i.fill)
}

// stroke paints each straight piece of a line, lengthened by half of its width at both ends so that corners are filled.
func (p *bitmap) stroke(points []point, width float64, dash bool, c colour) {
	for i := range points[:len(points)-1] {
		p.begin()
		if !dash {
			p.piece(points[i], points[i+1], width, width/2)
		} else {
			from, to := points[i], points[i+1]
			whole := math.Hypot(to.x-from.x, to.y-from.y)
			for at := 0.0; at < whole; at += 3.4 {
				along := func(d float64) point {
					return point{from.x + (to.x-from.x)*d/whole, from.y + (to.y-from.y)*d/whole}
				}
				p.piece(along(at), along(min(at+2, whole)), width, 0)
			}
		}
		p.paint(c)
	}
}

func (p *bitmap) piece(a, b point, width, more float64) {
	l := math.Hypot(b.x-a.x, b.y-a.y)
	if l == 0 {
		return
	}
	ux, uy := (b.x-a.x)/l, (b.y-a.y)/l
	a, b = point{a.x - ux*more, a.y - uy*more}, point{b.x + ux*more, b.y + uy*more}
	nx, ny := -uy*width/2, ux*width/2
	p.polygon(point{a.x + nx, a.y + ny}, point{b.x + nx, b.y + ny}, point{b.x - nx, b.y - ny}, point{a.x - nx, a.y - ny})
}

func (p *bitmap) text(l label, at point) {
	x, y, turned := l.origin(at)
	p.begin()
	lean := 0.0
	if l.slant {
		lean = math.Tan(slantDegrees * math.Pi / 180)
	}
	place := func(op sfnt.SegmentOp, a [3]point) {
		for i, q := range a {
			q.x += (y - q.y) * lean
			if turned {
				q = point{x + q.y - y, y - (q.x - x)}
			}
			a[i] = q
		}
		p.draw(op, a)
	}
	from := x
	for _, r := range runs(l.text, l.size, l.bold) {
		r.trace(from, y, l.size, place)
		from += r.width
	}
	p.paint(l.colour)
}
