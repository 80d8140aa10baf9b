package plates

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/schemas"
)

// A colour has a name, which documents that input [StyleTeX] use, and may differ on a dark page.
type colour struct {
	name        string
	light, dark canvas.Color
}

func (c colour) on(s Style) canvas.Color {
	if s.Dark {
		return c.dark
	}
	return c.light
}

func both(name string, c canvas.Color) colour { return colour{name, c, c} }

var (
	page   = colour{"dpsPage", 0xffffff, 0x14181d}
	text   = colour{"dpsText", 0x1a1a1a, 0xf0f0f0}
	soft   = colour{"dpsSoft", 0x5c5c5c, 0xb4b4b4}
	grid   = colour{"dpsGrid", 0xe2e2e2, 0x3a4047}
	ink    = both("dpsInk", 0x1a1a1a) // text on a light fill, on both pages
	white  = both("white", 0xffffff)  // text on a dark fill, on both pages
	accent = both("dpsAccent", 0xd55e00)
	minor  = both("dpsMinor", 0xe4e4e4) // segments too small for a colour
)

// The hue of heat maps, from its palest to its darkest colour.
var (
	rampPale   = both("dpsRampPale", 0xdfe9f4)
	rampMiddle = both("dpsRampMiddle", 0x5b9bd5)
	rampDark   = both("dpsRampDark", 0x174a7c)
)

// phases are the colours of phases: a neutral ramp, and sand for work on gradients between passes. Categories have
// other colours.
var phases = map[string]colour{
	"forward":       both("dpsForward", 0xc3ceda),
	"backward":      both("dpsOnePass", 0x4f6a83),
	"norm_pass":     both("dpsNormPass", 0x1f3447),
	"gradient_pass": both("dpsGradPass", 0x8299ae),
	"clip":          both("dpsClip", 0xd9c7a8),
	"noise":         both("dpsNoisePhase", 0xefe6d6),
	"optimizer":     both("dpsOptimizerPhase", 0xa8926a),
}

var categories = func() map[string]colour {
	all := map[string]colour{}
	for _, row := range schemas.CategoryTable {
		all[row.Category] = both("dps"+camel(row.Category), canvas.Color(row.Color))
	}
	return all
}()

// categoryKeys are the keys of the categories in stacking order.
var categoryKeys = func() (keys []string) {
	for _, row := range schemas.CategoryTable {
		keys = append(keys, row.Category)
	}
	return keys
}()

func camel(key string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(key, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// inkOn returns the colour of text on a fill.
func inkOn(fill colour) colour {
	if fill.light.Luminance() > 0.3 {
		return ink
	}
	return white
}

// StyleTeX returns LaTeX source that a document must input once, after xcolor and pgfplots. If the document defines
// \dpsTheme (light or dark), \dpsLab or \dpsVal before, for example for sizes other than 7 and 6.5 points, they keep
// their values.
func StyleTeX() string {
	var b strings.Builder
	b.WriteString("% Colours and sizes of the figures. Needs xcolor and pgfplots.\n")
	define := func(c colour, value canvas.Color) {
		fmt.Fprintf(&b, "\\definecolor{%s}{HTML}{%06X}\n", c.name, uint32(value))
	}
	for _, row := range schemas.CategoryTable {
		c := categories[row.Category]
		define(c, c.light)
	}
	for _, key := range PhaseKeys {
		define(phases[key], phases[key].light)
	}
	for _, key := range RungKeys {
		define(rungs[key], rungs[key].light)
	}
	for _, c := range []colour{minor, ink, accent, rampPale, rampMiddle, rampDark} {
		define(c, c.light)
	}
	b.WriteString("\\providecommand{\\dpsTheme}{light}\n\\newcommand{\\dpsDark}{dark}\n\\ifx\\dpsTheme\\dpsDark\n")
	themed := []colour{page, text, soft, grid}
	for _, c := range themed {
		define(c, c.dark)
	}
	b.WriteString("\\else\n")
	for _, c := range themed {
		define(c, c.light)
	}
	b.WriteString("\\fi\n" + styleTeX)
	return b.String()
}

const styleTeX = `\providecommand{\dpsLab}{\fontsize{7}{8}\selectfont}
\providecommand{\dpsVal}{\fontsize{6.5}{7.2}\selectfont}
\pgfplotsset{compat=1.16,
  dps/.style={scale only axis, anchor=south west, clip=false, axis on top=false,
    axis line style={dpsSoft, line width=.4pt}, tick style={dpsSoft, line width=.4pt}, major tick length=2pt,
    tick align=outside, tick label style={font=\dpsLab, text=dpsText, inner sep=2pt},
    label style={font=\dpsLab, text=dpsText, inner sep=1.5pt},
    title style={font=\dpsLab\bfseries, text=dpsText, yshift=-4pt},
    grid style={dpsGrid, line width=.4pt}, scaled ticks=false},
  dps bars/.style={dps, axis x line*=bottom, axis y line=none, xmajorgrids},
  dps open/.style={dps, axis x line*=bottom, axis y line*=left, ymajorgrids}}
`
