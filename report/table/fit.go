package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas/screen"
	"github.com/dpsight/dpsight/schemas/units"
)

const (
	// gap is the number of spaces between two columns.
	gap = 2
	// shortText is the smallest width to which a column of texts is narrowed: shorter texts stay on one line.
	shortText = 24
	// longName is the smallest width to which the first column, which has names, is narrowed: a run's id stays on one
	// line, a path may not.
	longName = 44
)

// A layout says how a table is printed as lines of text: which columns are shown, and their widths.
type layout struct {
	columns []int // indices into the table's columns
	widths  []int // of the shown columns
	hidden  []int
}

// layoutFor fits a table to the width of a terminal in characters. 0 means any width. On a terminal, it hides empty
// columns. If the table is still too wide, it wraps headings and long texts. Last, it hides columns: those of zeros
// first, then those with the lowest priority, and among equals the rightmost.
func layoutFor(t *Table, most int) layout {
	all := layout{}
	natural, least := make([]int, len(t.Columns)), make([]int, len(t.Columns))
	total := -gap
	for j := range t.Columns {
		natural[j], least[j] = t.widths(j)
		if most > 0 && j > 0 && !t.Columns[j].Names && t.each(j, isEmpty) {
			all.hidden = append(all.hidden, j)
			continue
		}
		all.columns, total = append(all.columns, j), total+natural[j]+gap
	}
	if most <= 0 || total <= most || len(t.Columns) == 0 {
		for _, j := range all.columns {
			all.widths = append(all.widths, natural[j])
		}
		return all
	}
	var byPriority []int
	shown := []int{0}
	for _, j := range all.columns[1:] {
		if t.Columns[j].Names {
			shown = append(shown, j)
		} else {
			byPriority = append(byPriority, j)
		}
	}
	priority := make([]int, len(t.Columns))
	for _, j := range byPriority {
		if priority[j] = t.Columns[j].Priority; t.each(j, isZero) {
			priority[j] = -1
		}
	}
	slices.SortStableFunc(byPriority, func(a, b int) int { return cmp.Compare(priority[b], priority[a]) })
	first := 0 // width of the column that is hidden last
	if len(byPriority) > 0 && len(shown) > 1 {
		first = gap + least[byPriority[0]]
	}
	room := narrow(least, shown, most-first) + first
	for _, j := range byPriority {
		if gap+least[j] <= room {
			shown, room = append(shown, j), room-gap-least[j]
		}
	}
	slices.Sort(shown)
	fitted := layout{columns: shown}
	for j := range t.Columns {
		if !slices.Contains(shown, j) {
			fitted.hidden = append(fitted.hidden, j)
		}
	}
	for _, j := range shown {
		fitted.widths = append(fitted.widths, least[j])
	}
	fitted.widen(room, func(i int) int { return natural[shown[i]] })
	return fitted
}

// narrow makes the widest of some columns narrower until together they fit into room, and returns the room that
// remains.
func narrow(widths, columns []int, room int) int {
	room += gap
	for _, j := range columns {
		room -= gap + widths[j]
	}
	for ; room < 0; room++ {
		widest := slices.MaxFunc(columns, func(a, b int) int { return cmp.Compare(widths[a], widths[b]) })
		if widths[widest] <= 1 {
			break
		}
		widths[widest]--
	}
	return room
}

// widen divides the remaining room evenly among the columns that need more.
func (l *layout) widen(room int, natural func(i int) int) {
	for room > 0 {
		grown := false
		for i := range l.widths {
			if room > 0 && l.widths[i] < natural(i) {
				l.widths[i], room, grown = l.widths[i]+1, room-1, true
			}
		}
		if !grown {
			return
		}
	}
}

// widths returns the width of a column with each cell on one line, and its smallest width.
func (t *Table) widths(j int) (natural, least int) {
	c := t.Columns[j]
	natural, least = screen.Width(c.Title), longestWord(c.Title)
	for _, row := range t.Rows {
		text := units.Printable(row[j].Text)
		w := screen.Width(text)
		natural = max(natural, w)
		switch {
		case c.Right:
		case j > 0 && c.Names:
			w = min(w, shortText)
		case j == 0, w <= longName && !strings.Contains(text, " "): // a row's subject, or a name
			w = min(w, longName)
		default:
			w = min(w, shortText)
		}
		least = max(least, w)
	}
	return natural, least
}

func longestWord(text string) (most int) {
	for _, word := range strings.Fields(text) {
		most = max(most, screen.Width(word))
	}
	return most
}

// each reports whether is holds for all cells of a column.
func (t *Table) each(j int, is func(text string) bool) bool {
	return len(t.Rows) > 0 && !slices.ContainsFunc(t.Rows, func(row []Cell) bool { return !is(row[j].Text) })
}

func isEmpty(text string) bool { return text == "" || text == absentText }

func isZero(text string) bool { return isEmpty(text) || strings.Trim(text, "0.") == "" }

// note names the hidden columns, and how to see them.
func (l *layout) note(t *Table) string {
	if len(l.hidden) == 0 {
		return ""
	}
	var titles []string
	for _, j := range l.hidden {
		titles = append(titles, t.Columns[j].Title)
	}
	return fmt.Sprintf("%s (%s): --wide or --format csv", units.Plural(len(titles), "more column", "more columns"),
		strings.Join(titles, ", "))
}

// broken returns a cell's text in lines that fit the width of its column.
func broken(text string, width int) (lines []string) {
	if screen.Width(text) <= width {
		return []string{text}
	}
	for line := range strings.SplitSeq(screen.Wrap(text, width, ""), "\n") {
		lines = append(lines, cut(line, width)...)
	}
	return lines
}

// cut breaks a word that is too wide for its column into lines.
func cut(line string, width int) (lines []string) {
	var part strings.Builder
	for _, r := range line {
		if screen.Width(part.String()+string(r)) > width {
			lines = append(lines, part.String())
			part.Reset()
		}
		part.WriteRune(r)
	}
	return append(lines, part.String())
}
