package paper

import (
	"slices"
	"strings"
)

// A Grid is a table of a paper, independent of its format.
type Grid struct {
	Name    string // name of the table's files
	Label   string // name in LaTeX's label, without "tab:"
	Wide    bool   // as wide as a page instead of a column
	Finding Text   // the caption's first sentence, in bold
	Caption Text
	First   Text   // the head of the labels' column
	Groups  []over // groups of heads; none if no heads belong together
	Heads   []head
	Lines   []Line
	Notes   []note
}

// An over is a heading above several heads.
type over struct {
	text  Text
	heads int
}

// A head is the text over a column.
type head struct {
	text  Text
	lines []Text // the text in two lines, for a narrow column; else nil
	note  string // the letter of the column's note
	key   string // the key in results.json of the column's figure
}

// A Line is a row, or a separator between rows.
type Line struct {
	kind   lineKind
	label  Text
	cells  []Cell
	run    string // the id of the run with the row's figures
	italic bool
	indent bool
}

type lineKind int

const (
	row     lineKind = iota
	ruled            // a rule: the next line is a sum, or is compared with the lines above
	thin             // a thin rule: the next lines are not private, or are compared with the line above
	space            // a little vertical space
	heading          // a label above the rows that follow
)

// A Cell is one place of a table.
type Cell struct {
	text    string // a number in the form that LaTeX's siunitx reads, or words
	word    bool   // text is words
	best    bool   // the cell is bold
	marked  bool   // the cell is on grey
	italic  bool   // the cell is italic, since its value is predicted
	atLeast bool   // at least this value, since the run's peak is bounded
	value   float64
	known   bool // value holds a value: in bytes, ms, joules or per cent
	unit    unit
}

// A note stands below a table.
type note struct {
	letter string // "" for a legend
	text   Text
}

// absent returns a cell for which no value can exist: the baseline's difference from itself, a phase that the run does
// not have, a component without bytes.
func absent() Cell { return Cell{text: "–", word: true} }

// unmeasured returns a cell whose value is unknown. The cell is empty, and the legend explains that.
func unmeasured() Cell { return Cell{word: true} }

func wordCell(text string) Cell { return Cell{text: text, word: true} }

// figure returns a cell with a number.
func figure(v float64, u unit, signed bool) Cell {
	return Cell{text: number(v, u, signed), value: v, known: true, unit: u}
}

// difference returns a cell with a signed number. No difference at all is a dash.
func difference(v float64, u unit) Cell {
	c := figure(v, u, true)
	if v == 0 {
		c.text, c.word = absent().text, true
	}
	return c
}

// optional returns the cell of a value, or the cell without if the value is nil.
func optional[T int64 | float64](v *T, u unit, without Cell) Cell {
	if v == nil {
		return without
	}
	return figure(float64(*v), u, false)
}

// shown returns a cell's text for people.
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

// markBest marks the best cells of a column among some lines: the cells that print like the lowest value, or like the
// highest. markBest marks no cell if one of the lines has no exact figure, since the best is then unknown, if there is
// only one line, or if the runs are not methods.
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
		if c := &l.cells[column]; c.text == best.text {
			c.best = true
		}
	}
}

// columnOf returns the index of the column with a key, or -1.
func (g *Grid) columnOf(key string) int {
	return slices.IndexFunc(g.Heads, func(h head) bool { return h.key == key })
}

// note adds a note below the table and returns its letter. A table has at most three notes.
func (g *Grid) note(text Text) string {
	letter := string(rune('a' + len(g.Notes)))
	g.Notes = append(g.Notes, note{letter, text})
	return letter
}

// decorated returns a cell's text with the emphasis of a format such as Markdown.
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

// title returns a column's head in one line, with the heading of its group.
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

// caption returns the whole caption.
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
