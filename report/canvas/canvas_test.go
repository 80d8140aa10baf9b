package canvas

import (
	"bytes"
	"encoding/xml"
	"image/png"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const sample = "ÅWgjy, 123.45 GiB (+7.4 %)"

// The ink of a text must lie in the box that the canvas measured for the text, in PNG and in SVG, since layout relies
// on this box.
func TestTextStaysInItsBox(t *testing.T) {
	c, err := New(400, 80, false)
	if err != nil {
		t.Fatal(err)
	}
	c.Text(sample, 200, 50, 20, Middle, 0)
	var b bytes.Buffer
	if err := c.Save(&b, "", ""); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	ink := Box{1e9, 1e9, -1e9, -1e9}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if r, _, _, _ := img.At(x, y).RGBA(); r < 0x8000 {
				ink = Box{min(ink.X0, float64(x)/pngScale), min(ink.Y0, float64(y)/pngScale),
					max(ink.X1, float64(x+1)/pngScale), max(ink.Y1, float64(y+1)/pngScale)}
			}
		}
	}
	within(t, "PNG", ink, c.Labels[0].Box)

	if c, err = New(400, 80, true); err != nil {
		t.Fatal(err)
	}
	c.Text(sample, 200, 50, 20, Middle, 0)
	b.Reset()
	if err := c.Save(&b, "", ""); err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile(` d="([^"]*)"`).FindAllStringSubmatch(b.String(), -1)
	if len(paths) != 2 {
		t.Fatalf("%d paths, want the background and one text", len(paths))
	}
	ink = Box{1e9, 1e9, -1e9, -1e9}
	var x, y float64
	for _, op := range regexp.MustCompile(`([MLHVQ])([-\d ]+)`).FindAllStringSubmatch(paths[1][1], -1) {
		for i, text := range strings.Fields(op[2]) {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			if v /= svgScale; op[1] == "V" || op[1] != "H" && i%2 == 1 {
				y = v
			} else {
				x = v
			}
			if op[1] == "H" || op[1] == "V" || i%2 == 1 {
				ink = Box{min(ink.X0, x), min(ink.Y0, y), max(ink.X1, x), max(ink.Y1, y)}
			}
		}
	}
	within(t, "SVG", ink, c.Labels[0].Box)
}

func within(t *testing.T, what string, ink, box Box) {
	t.Helper()
	const side = 1.5 // glyphs extend slightly beyond their advance width
	if ink.X0 < box.X0-side || ink.X1 > box.X1+side || ink.Y0 < box.Y0-3 || ink.Y1 > box.Y1 {
		t.Errorf("%s: ink %.1f outside its box %.1f", what, ink, box)
	}
	if ink.X1-ink.X0 < (box.X1-box.X0)*0.95 {
		t.Errorf("%s: ink %.1f is narrower than its box %.1f", what, ink, box)
	}
}

func TestMisplacedIsNoticed(t *testing.T) {
	c, err := New(100, 50, true)
	if err != nil {
		t.Fatal(err)
	}
	c.Text("inside", 10, 20, 10, Start, 0)
	if got := c.Misplaced(); got != nil {
		t.Errorf("well placed text: %v", got)
	}
	c.Text("over it", 20, 22, 10, Start, 0)
	c.Text("outside", 90, 45, 10, Start, 0)
	if got := c.Misplaced(); len(got) != 2 {
		t.Errorf("one overlap, one outside: %v", got)
	}
}

func TestCoveredIsNoticed(t *testing.T) {
	for _, d := range []struct {
		what string
		draw func(*Canvas)
		bad  int
	}{
		{"a line through it", func(c *Canvas) { c.Segment(0, 0, 40, 40, 1, 0) }, 1},
		{"a line past its corner", func(c *Canvas) { c.Segment(0, 14, 14, 0, 1, 0) }, 0},
		{"a point on its edge", func(c *Canvas) { c.Diamond(8, 17, 4, 0) }, 1},
		{"a point beside its corner", func(c *Canvas) { c.Diamond(7, 8, 4, 0) }, 0},
	} {
		c, err := New(100, 50, true)
		if err != nil {
			t.Fatal(err)
		}
		d.draw(c)
		c.Text("inside", 10, 20, 10, Start, 0)
		if got := c.Covered(); len(got) != d.bad {
			t.Errorf("%s: %v", d.what, got)
		}
	}
}

func TestSVGIsXML(t *testing.T) {
	c, err := New(100, 50, true)
	if err != nil {
		t.Fatal(err)
	}
	const text = "a<b & \"c\" 按 \x01\x1b[31m"
	c.Text(text, 1, 20, 10, Start, 0x123456)
	var b bytes.Buffer
	if err := c.Save(&b, text, "]]> "+text); err != nil {
		t.Fatal(err)
	}
	svg := b.String()
	d := xml.NewDecoder(&b)
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(svg, `fill="#123456"`) || strings.Contains(svg, "rgba") || strings.Contains(svg, "<text") ||
		!strings.Contains(svg, `width="100"`) {
		t.Error("colours, size or outlines are not as they should be")
	}
}

func TestWrap(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("x", 60), "一二三四五六七八九十一二三四五六七八九十",
		"some-name_with/breaks and spaces in it, of length",
		"under torch 2.11.0 were", "under a torch 2.11.0 were", "it takes 1,024,024.50 MiB",
		"of blocks.3.attention.q.weight and more"} {
		for _, lines := range []int{1, 3, 0} {
			got := Wrap(s, 12, 100, lines)
			if lines > 0 && len(got) > lines {
				t.Errorf("%q: %d lines, want %d", s, len(got), lines)
			}
			for _, l := range got {
				if Measure(l, 12) > 100 {
					t.Errorf("%q: line %q is too wide", s, l)
				}
			}
			// a line must not break within a number, as 2.11.0 would after its first point
			for i := 1; i < len(got); i++ {
				if end := got[i-1]; strings.ContainsAny(end[len(end)-1:], ".,") && digit(got[i][0]) &&
					digit(end[len(end)-2]) {
					t.Errorf("%q: torn between %q and %q", s, end, got[i])
				}
			}
			squeeze := func(s string) string { return strings.ReplaceAll(s, " ", "") }
			if all := squeeze(strings.Join(got, "")); lines == 0 && all != squeeze(s) {
				t.Errorf("%q: became %q", s, all)
			}
		}
	}
}
