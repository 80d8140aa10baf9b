package canvas

import (
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
)

// A vector is the surface on which an SVG is drawn. go-chart's own SVG surface formats every point separately, writes
// colours in a form that readers of SVG 1.1 do not know, and states no size.
type vector struct {
	width, height float64 // nominal size of the picture
	path, body    []byte
	x, y          int // the path's present point
}

func (v *vector) add(op byte, at ...int) {
	v.path = append(v.path, op)
	for i, n := range at {
		if i > 0 {
			v.path = append(v.path, ' ')
		}
		v.path = strconv.AppendInt(v.path, int64(n), 10)
	}
}

func (v *vector) moveTo(x, y int) {
	v.add('M', x, y)
	v.x, v.y = x, y
}

// lineTo writes only the coordinate that changes: areas consist of horizontal and vertical steps, up to a thousand in a
// panel.
func (v *vector) lineTo(x, y int) {
	switch {
	case y == v.y:
		v.add('H', x)
	case x == v.x:
		v.add('V', y)
	default:
		v.add('L', x, y)
	}
	v.x, v.y = x, y
}

func (v *vector) curveTo(cx, cy, x, y int) {
	v.add('Q', cx, cy, x, y)
	v.x, v.y = x, y
}

func (v *vector) close() { v.add('Z') }

func (v *vector) fill(c Color) {
	v.body = append(v.body, `<path d="`...)
	v.body = append(v.body, v.path...)
	v.body = fmt.Appendf(v.body, "\" fill=\"#%06x\"/>\n", uint32(c))
	v.path = v.path[:0]
}

func (v *vector) save(w io.Writer, title, description string) error {
	_, err := fmt.Fprintf(w,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+
			"<title>%s</title><desc>%s</desc>\n%s</svg>\n",
		int(v.width), int(v.height), pixels(v.width, svgScale), pixels(v.height, svgScale), xmlText(title),
		xmlText(description), v.body)
	return err
}

// xmlText escapes markup and drops characters that XML 1.0 cannot represent.
func xmlText(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "�")))
}
