package paper

import (
	"slices"
	"strings"
)

// A Grid is a table of a paper.
type Grid struct {
	Name    string // name of the table's files
	Wide    bool   // as wide as a page, not as a column
	Finding Text   // the caption's first sentence, which is in bold
	Caption Text
	First   Text   // over the labels
	Groups  []over // over the heads; none if no head belongs to a group
	Heads   []head
	Lines   []Line
	Notes   []note
}

// An over stands over several heads.
type over struct {
	text  Text
	heads int
}

// A head is the text over a column.
type head struct {
	text  Text
	lines []Text // text in two lines, for a narrow column; else nil
	note  string // the letter of its note
	key   string // key in results.json of the figure in the column
}

// A Line is a row, or what parts rows.
type Line struct {
	kind   lineKind
	label  Text
	cells  []Cell
	run    string // the id of the run that the figures come from
	italic bool
	indent bool
}

type lineKind int

const (
	row     lineKind = iota
	ruled            // a rule: the next line is compared with those above, or is their sum
	thin             // a thin rule: the lines below are not private
	space            // a little space
	heading          // a label over the rows that follow
)

// A Cell is one place of a table.
type Cell struct {
	text    string // a number as LaTeX's siunitx reads it, or words
	word    bool   // text is words
	best    bool   // in bold
	marked  bool   // on grey
	italic  bool   // predicted
	atLeast bool   // bounded
	value   float64
	known   bool // value is one: in bytes, ms, joules, per cent
	unit    unit
}

// A note stands under the table.
type note struct {
	letter string // "" for a legend
	text   Text
}

// absent is a cell for which there is no value: the baseline is not compared with itself, a run has no such phase, a
// component has no bytes.
func absent() Cell { return Cell{text: "–", word: true} }

// unmeasured is a cell whose value nobody knows. An unmeasured cell is empty, as the legend says.
func unmeasured() Cell { return Cell{word: true} }

func wordCell(text string) Cell { return Cell{text: text, word: true} }

// figure is a cell with a number.
func figure(v float64, u unit, signed bool) Cell {
	return Cell{text: number(v, u, signed), value: v, known: true, unit: u}
}

// optional is the cell of a value, or the cell without if the value is nil.
func optional[T int64 | float64](v *T, u unit, without Cell) Cell {
	if v == nil {
		return without
	}
	return figure(float64(*v), u, false)
}

// shown is a cell's text for people.
func (c *Cell) shown() string {
	text := c.text
	if !c.word {
		text = pretty(text)
	}
	if c.atLeast {
		text = "≥ " + text
	}
	return text
}

// markBest marks the best cells of a column among some lines: those that print like the lowest, or the highest. It
// marks none if one of them has no figure, since the best is then unknown. If runs are not methods, the baseline
// may be the best. What prints as zero is none: its sign alone would make it so.
func (b *builder) markBest(lines []*Line, column int, highest bool) {
	if !b.methods() {
		return
	}
	var best *Cell
	rivals := 0
	for _, l := range lines {
		c := &l.cells[column]
		if !c.known || c.italic || c.atLeast {
			return
		}
		rivals++
		if best == nil || highest && c.value > best.value || !highest && c.value < best.value {
			best = c
		}
	}
	if rivals < 2 {
		return
	}
	for _, l := range lines {
		if c := &l.cells[column]; c.text == best.text && !c.zero() {
			c.best = true
		}
	}
}

// zero reports whether a cell prints as zero, whatever its sign.
func (c *Cell) zero() bool { return strings.Trim(c.text, "+-0.") == "" }

// columnOf is the place of a column by its key, -1 without.
func (g *Grid) columnOf(key string) int {
	return slices.IndexFunc(g.Heads, func(h head) bool { return h.key == key })
}

// note adds a note and returns its letter. A table has at most three.
func (g *Grid) note(text Text) string {
	letter := string(rune('a' + len(g.Notes)))
	g.Notes = append(g.Notes, note{letter, text})
	return letter
}

// decorated is a cell's text with the emphasis that Markdown and text give it.
func (c *Cell) decorated(bold, italic, mark string) string {
	text := c.shown()
	if c.best {
		text = bold + text + bold
	}
	if c.italic {
		text = italic + text + italic
	}
	if c.marked {
		text += mark
	}
	return text
}

// title returns a head in one line, with the group over it.
func (g *Grid) title(column int) Text {
	h := g.Heads[column]
	at := 0
	for _, o := range g.Groups {
		if column < at+o.heads {
			if len(o.text) == 0 {
				break
			}
			return join(o.text, Text{{kind: words, text: ", "}}, h.text)
		}
		at += o.heads
	}
	return h.text
}

// caption is the whole caption.
func (g *Grid) caption(write func(Text) string, strong func(string) string) string {
	parts := []string{}
	if len(g.Finding) > 0 {
		parts = append(parts, strong(write(g.Finding)))
	}
	if len(g.Caption) > 0 {
		parts = append(parts, write(g.Caption))
	}
	return strings.Join(parts, " ")
}
