package plates

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/dpsight/dpsight/report/canvas"
)

// SVG writes the figure with its texts as text. Each text states its width, so that a viewer without the font keeps the
// layout.
func (d *Drawing) SVG(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.2fpt" height="%.2fpt" viewBox="0 0 %.2f %.2f" `+
		`font-family="Liberation Sans, Arial, Helvetica, Noto Sans CJK SC, PingFang SC, Microsoft YaHei, sans-serif">`+"\n",
		d.Width(), d.height, d.Width(), d.height)
	fmt.Fprintf(&b, `<rect width="%.2f" height="%.2f" fill="%s"/>`+"\n", d.Width(), d.height, hex(page.on(d.style)))
	for _, i := range d.items {
		d.svg(&b, i)
	}
	b.WriteString("</svg>\n")
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the figure as SVG: %w", err)
	}
	return nil
}

func hex(c canvas.Color) string { return fmt.Sprintf("#%06x", uint32(c)) }

func (d *Drawing) svg(b *bytes.Buffer, i item) {
	if i.label != nil {
		d.svgText(b, *i.label, i.points[0])
		return
	}
	how := ` fill="none"`
	if i.fill != nil {
		how = fmt.Sprintf(` fill="%s"`, hex(i.fill.on(d.style)))
	}
	if i.stroke != nil {
		how += fmt.Sprintf(` stroke="%s" stroke-width="%.2f"`, hex(i.stroke.on(d.style)), i.width)
	}
	if i.dash {
		how += ` stroke-dasharray="2 1.4"`
	}
	if i.radius > 0 {
		fmt.Fprintf(b, `<circle cx="%.2f" cy="%.2f" r="%.2f"%s/>`+"\n", i.points[0].x, i.points[0].y, i.radius, how)
		return
	}
	kind := "polyline"
	if i.fill != nil {
		kind = "polygon"
	}
	at := make([]string, len(i.points))
	for k, p := range i.points {
		at[k] = fmt.Sprintf("%.2f,%.2f", p.x, p.y)
	}
	fmt.Fprintf(b, `<%s points="%s"%s/>`+"\n", kind, strings.Join(at, " "), how)
}

func (d *Drawing) svgText(b *bytes.Buffer, l label, at point) {
	x, y, turned := l.origin(at)
	how := fmt.Sprintf(` font-size="%g" fill="%s" textLength="%.2f"`, l.size, hex(l.colour.on(d.style)),
		measure(l.text, l.size, l.bold))
	if l.bold {
		how += ` font-weight="bold"`
	}
	if l.slant {
		how += ` font-style="italic"`
	}
	if turned {
		how += fmt.Sprintf(` transform="rotate(-90 %.2f %.2f)"`, x, y)
	}
	fmt.Fprintf(b, `<text x="%.2f" y="%.2f"%s>%s</text>`+"\n", x, y, how, html.EscapeString(printable(l.text)))
}

// printable removes characters that neither XML nor TeX may contain.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return -1
		}
		return r
	}, s)
}
