package figure

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/schemas"
)

// visions holds how people see who lack one kind of cone: linear RGB matrices of Machado, Oliveira and Fernandes
// (2009), severity 1.
var visions = map[string][9]float64{
	"normal":       {1, 0, 0, 0, 1, 0, 0, 0, 1},
	"protanopia":   {0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998},
	"deuteranopia": {0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881},
	"tritanopia":   {1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900},
}

// lab returns the colour that a person with the vision m sees, in CIE L*a*b*.
func lab(c canvas.Color, m [9]float64) [3]float64 {
	linear := func(v uint32) float64 {
		x := float64(v&0xff) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	r, g, b := linear(uint32(c)>>16), linear(uint32(c)>>8), linear(uint32(c))
	clamp := func(v float64) float64 { return min(max(v, 0), 1) }
	r, g, b = clamp(m[0]*r+m[1]*g+m[2]*b), clamp(m[3]*r+m[4]*g+m[5]*b), clamp(m[6]*r+m[7]*g+m[8]*b)
	f := func(t float64) float64 {
		if t > 0.008856 {
			return math.Cbrt(t)
		}
		return 7.787*t + 16.0/116
	}
	x := f((0.4124*r + 0.3576*g + 0.1805*b) / 0.95047)
	y := f(0.2126*r + 0.7152*g + 0.0722*b)
	z := f((0.0193*r + 0.1192*g + 0.9505*b) / 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// A difference of ΔE*ab 2.3 is just noticeable. Neighbouring colours of a bar must differ by neighboursDiffer, so that
// they are plainly different. Any two colours must differ by allDiffer, so that a reader finds them in the legend.
const neighboursDiffer, allDiffer = 25, 8

// difference returns how far apart two colours are in the kind of vision in which they differ least. difference also
// returns the name of this vision.
func difference(a, b canvas.Color) (least float64, vision string) {
	least = math.Inf(1)
	for _, name := range slices.Sorted(maps.Keys(visions)) {
		la, lb := lab(a, visions[name]), lab(b, visions[name])
		d := math.Sqrt(math.Pow(la[0]-lb[0], 2) + math.Pow(la[1]-lb[1], 2) + math.Pow(la[2]-lb[2], 2))
		if d < least {
			least, vision = d, name
		}
	}
	return least, vision
}

// shortfall finds the colour that is too similar to the i-th colour, and returns by how much, which one, and in which
// vision. The first result is 0 if no colour is too similar. The last category and the first rung do not count as
// neighbours, since they hardly ever are.
func shortfall(colors []canvas.Color, i int) (worst float64, other int, vision string) {
	for j := range colors {
		want := float64(allDiffer)
		if beside := max(i, j); (i-j == 1 || j-i == 1) && beside != len(schemas.CategoryTable) {
			want = neighboursDiffer
		}
		if d, by := difference(colors[i], colors[j]); i != j && want-d > worst {
			worst, other, vision = want-d, j, by
		}
	}
	return worst, other, vision
}

// tellable returns the colour nearest to the i-th colour that differs enough from all other colours. tellable returns
// the i-th colour if there is no such colour.
func tellable(colors []canvas.Color, i int) canvas.Color {
	tried, best, nearest := slices.Clone(colors), colors[i], math.Inf(1)
	for c := range canvas.Color(1 << 12) {
		tried[i] = c>>8*0x110000 | c>>4&0xf*0x1100 | c&0xf*0x11
		if d, _ := difference(tried[i], colors[i]); d < nearest {
			if worst, _, _ := shortfall(tried, i); worst == 0 {
				best, nearest = tried[i], d
			}
		}
	}
	return best
}

func TestPaletteIsTellable(t *testing.T) {
	names, colors := slices.Clone(schemas.Categories), []canvas.Color{}
	for _, c := range names {
		colors = append(colors, palette[c])
	}
	for k := kindPending; k <= kindOthers; k++ { // a ladder continues with the rungs that are not allocated
		names, colors = append(names, fmt.Sprintf("rung %d", k)), append(colors, rungColors[k])
	}
	for i, name := range names {
		if worst, other, vision := shortfall(colors, i); worst > 0 {
			t.Errorf("%s and %s are too alike (%s), by %.1f: let %[5]s be 0x%06[6]x",
				name, names[other], vision, worst, name, uint32(tellable(colors, i)))
		}
	}
	// Small categories, and memory without a breakdown, have two greys of their own. The two greys must differ from all
	// categories' colours and from each other.
	for _, grey := range []canvas.Color{minorColor, unknownColor} {
		for i, c := range append(slices.Clone(colors), minorColor, unknownColor) {
			if d, vision := difference(grey, c); grey != c && d < allDiffer {
				t.Errorf("%06x and the %d-th colour, %06x, are too alike (%s): %.1f", uint32(grey), i, uint32(c), vision, d)
			}
		}
	}
}
