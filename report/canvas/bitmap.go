package canvas

import (
	"image"
	"image/color"
	"io"

	"github.com/golang/freetype/raster"
	"github.com/golang/freetype/truetype"
	"github.com/wcharczuk/go-chart/v2/drawing"
)

// A bitmap is the surface on which a PNG is drawn. The bitmap is go-chart's own surface with two changes: it fills
// fully covered areas a row at a time, and its PNG encoder is made for pictures of few colours. go-chart's drawing
// pixel by pixel, and the encoder of image/png, took most of a report's time.
type bitmap struct {
	c   *drawing.RasterGraphicContext
	img *image.RGBA
}

func newBitmap(width, height int) *bitmap {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	b := &bitmap{drawing.NewRasterGraphicContextWithPainter(img, &painter{RGBAPainter: raster.NewRGBAPainter(img)}),
		img}
	b.c.SetDPI(64) // go-chart takes a size in 64ths of a pixel as points times DPI: at 64 a point is a pixel
	return b
}

func (b *bitmap) moveTo(x, y int) { b.c.MoveTo(float64(x), float64(y)) }
func (b *bitmap) lineTo(x, y int) { b.c.LineTo(float64(x), float64(y)) }
func (b *bitmap) close()          { b.c.Close() }

func (b *bitmap) curveTo(cx, cy, x, y int) {
	b.c.QuadCurveTo(float64(cx), float64(cy), float64(x), float64(y))
}

func (b *bitmap) fill(c Color) {
	b.c.SetFillColor(drawing.Color{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 255})
	b.c.Fill()
}

// rect fills whole pixels, so freetype has no edges to smooth.
func (b *bitmap) rect(x0, y0, x1, y1 int, c Color) {
	box := b.img.Rect
	x0, y0, x1, y1 = max(x0, box.Min.X), max(y0, box.Min.Y), min(x1, box.Max.X), min(y1, box.Max.Y)
	if x0 >= x1 || y0 >= y1 {
		return
	}
	first := b.img.Pix[b.img.PixOffset(x0, y0):][:4*(x1-x0)]
	tile(first, [4]byte{byte(c >> 16), byte(c >> 8), byte(c), 0xff})
	for y := y0 + 1; y < y1; y++ {
		copy(b.img.Pix[b.img.PixOffset(x0, y):], first)
	}
}

// tile repeats a pixel along a row.
func tile(row []byte, pixel [4]byte) {
	for n := copy(row, pixel[:]); n < len(row); n *= 2 {
		copy(row[n:], row[:n])
	}
}

// save writes only the picture. The SVG beside the PNG has the name and the description.
func (b *bitmap) save(w io.Writer, _, _ string) error { return WritePNG(w, b.img, 0) }

// glyphs adds a line of text whose baseline starts at (x, y) to the path. glyphs stops at a glyph that the font cannot
// provide.
func (b *bitmap) glyphs(s string, x, y int, size float64, font *truetype.Font) {
	b.c.SetFont(font)
	b.c.SetFontSize(size)
	_, _ = b.c.CreateStringPath(s, float64(x), float64(y))
}

// A painter paints fully covered spans of an opaque colour at once, and leaves other spans, such as the edges of
// glyphs, to freetype.
type painter struct {
	*raster.RGBAPainter
	pixel  [4]byte
	opaque bool
}

func (p *painter) SetColor(c color.Color) {
	p.RGBAPainter.SetColor(c)
	r, g, b, a := c.RGBA()
	p.pixel, p.opaque = [4]byte{byte(r >> 8), byte(g >> 8), byte(b >> 8), byte(a >> 8)}, a == 0xffff
}

// Paint gets the spans of one row at a time, from top to bottom.
func (p *painter) Paint(spans []raster.Span, done bool) {
	box := p.Image.Rect
	for i, s := range spans {
		if s.Alpha != 0xffff || !p.opaque {
			p.RGBAPainter.Paint(spans[i:i+1], done)
			continue
		}
		x0, x1 := max(s.X0, box.Min.X), min(s.X1, box.Max.X)
		if s.Y < box.Min.Y || s.Y >= box.Max.Y || x0 >= x1 {
			continue
		}
		tile(p.Image.Pix[p.Image.PixOffset(x0, s.Y):][:4*(x1-x0)], p.pixel)
	}
}
