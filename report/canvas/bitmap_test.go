package canvas

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/golang/freetype/raster"
)

// The bitmap's own painter gives every pixel the same colour as freetype's painter.
func TestBitmapPaintsAsFreetypeDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const width, height = 61, 43
	b := newBitmap(width, height)
	want := image.NewRGBA(b.img.Rect)
	ours, theirs := &painter{RGBAPainter: raster.NewRGBAPainter(b.img)}, raster.NewRGBAPainter(want)
	alphas := []uint32{0xffff, 0xffff, 0x8000, 1, 0xfffe}
	for i := range 500 {
		c := color.RGBA{uint8(random.IntN(256)), uint8(random.IntN(256)), uint8(random.IntN(256)), 0xff}
		if i > 0 && i%7 == 0 {
			c = color.RGBA{40, 50, 60, 128}
		}
		x := random.IntN(width+10) - 5
		spans := []raster.Span{
			{Y: random.IntN(height+4) - 2, X0: x, X1: x + random.IntN(width), Alpha: alphas[random.IntN(len(alphas))]},
			{Y: height - 1, X0: 3, X1: 3 + random.IntN(4), Alpha: alphas[random.IntN(len(alphas))]},
		}
		if i == 0 { // a canvas begins with an opaque background
			c, spans = color.RGBA{255, 255, 255, 255}, nil
			for y := range height {
				spans = append(spans, raster.Span{Y: y, X0: 0, X1: width, Alpha: 0xffff})
			}
		}
		for _, s := range spans {
			ours.SetColor(c)
			ours.Paint([]raster.Span{s}, true)
			theirs.SetColor(c)
			theirs.Paint([]raster.Span{s}, true)
		}
	}
	if !bytes.Equal(b.img.Pix, want.Pix) {
		t.Fatal("pixels differ from freetype's")
	}
}

// A picture read back from the file equals the drawn picture. If the picture has more colours than a file can have, the
// rarest colours become similar shades.
func TestFileIsWhatWasDrawn(t *testing.T) {
	for _, test := range []struct{ colours, off int }{{1, 0}, {mostColours - 1, 0}, {mostColours + 100, 2}} {
		b := newBitmap(800, 3)
		b.rect(0, 0, 800, 3, 0xffffff)
		for i := range test.colours {
			tall := 3
			if i%3 == 2 {
				tall = 1 // this colour is rarer than its neighbours, and similar to them
			}
			b.rect(2*i, 0, 2*i+2, tall, Color(i/2)<<16|Color(i-i/2)<<8)
		}
		var file bytes.Buffer
		if err := b.save(&file, "", ""); err != nil {
			t.Fatal(err)
		}
		got, err := png.Decode(&file)
		if err != nil {
			t.Fatal(err)
		}
		if got.Bounds() != b.img.Rect {
			t.Fatalf("the file's picture is %v, not %v", got.Bounds(), b.img.Rect)
		}
		for y := range b.img.Rect.Dy() {
			for x := range b.img.Rect.Dx() {
				found, drawn := color.RGBAModel.Convert(got.At(x, y)).(color.RGBA), b.img.RGBAAt(x, y)
				if max(away(found.R, drawn.R), away(found.G, drawn.G), away(found.B, drawn.B)) > test.off {
					t.Fatalf("%d colours: pixel %d, %d of the file is %v, not %v", test.colours, x, y, found, drawn)
				}
			}
		}
	}
}

func away(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }

// A rectangle at whole pixels has the same pixels as freetype fills along the rectangle's path. The rectangle may
// extend beyond the picture.
func TestRectIsWhatItsPathFills(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const width, height = 61, 43
	ours, theirs := newBitmap(width, height), newBitmap(width, height)
	for range 300 {
		x0, y0, c := random.IntN(width+20)-10, random.IntN(height+20)-10, Color(random.IntN(1<<24))
		x1, y1 := x0+1+random.IntN(40), y0+1+random.IntN(40)
		ours.rect(x0, y0, x1, y1, c)
		theirs.moveTo(x0, y0)
		theirs.lineTo(x1, y0)
		theirs.lineTo(x1, y1)
		theirs.lineTo(x0, y1)
		theirs.close()
		theirs.fill(c)
	}
	if !bytes.Equal(ours.img.Pix, theirs.img.Pix) {
		t.Fatal("pixels differ from freetype's")
	}
}
