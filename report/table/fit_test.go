package table

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas/screen"
)

func wideTable() Table {
	number := func(n int64) Cell { return Bytes(n << 20) }
	return Table{Title: "A title of several words that is longer than the narrowest terminal of all",
		Columns: []Column{{Title: "Run", Key: "run"}, {Title: "Highest reserved MiB", Key: "reserved", Right: true},
			{Title: "Empty", Key: "empty"}, {Title: "Peak MiB", Key: "peak", Right: true, Priority: 2},
			{Title: "Reason", Key: "reason", Priority: 1}, {Title: "Event", Key: "event", Right: true}},
		Rows: [][]Cell{{Text("vanilla"), number(61_208), Absent(), number(60_716),
			Text("it did not end well, since the device had no more memory for it"), Count(24_932)},
			{Text("dpsgd"), number(71_532), Text(""), number(65_186), Text("–"), Count(72_561)}},
		Notes: []string{"one that is longer than the terminal is wide, and goes on below itself, word by word"}}
}

// If a table is too wide, the column that names a row stays. Columns of zeros are hidden before columns of lower
// priority.
func TestNamesStay(t *testing.T) {
	keyed := Table{Columns: []Column{{Title: "Category"}, {Title: "Module", Names: true},
		{Title: "MiB", Right: true, Priority: 3}, {Title: "By phase", Right: true, Priority: 2},
		{Title: "Tagged", Right: true}},
		Rows: [][]Cell{{Text("parameters"), Text(""), Bytes(3 << 20), Bytes(0), Bytes(3 << 20)},
			{Text(""), Text("encoder.blocks.10.attention.projection"), Bytes(1 << 20), Absent(), Bytes(1 << 20)}}}
	var b bytes.Buffer
	if err := Write(&screen.Output{Writer: &b, Columns: 50}, "table", keyed); err != nil {
		t.Fatal(err)
	}
	const want = `Category    Module                     MiB  Tagged
----------  ------------------------  ----  ------
parameters                            3.00    3.00
            encoder.blocks.10.attent  1.00    1.00
            ion.projection
`
	if rows, note, _ := strings.Cut(b.String(), "note:"); rows != want || !strings.Contains(note, "(By phase)") {
		t.Errorf("it is\n%s\nwant\n%s", b.String(), want)
	}
	// On the narrowest terminals the table breaks names over several lines, and the column of the highest priority
	// stays.
	for columns := 12; columns < 60; columns++ {
		b.Reset()
		if err := Write(&screen.Output{Writer: &b, Columns: columns}, "table", keyed); err != nil {
			t.Fatal(err)
		}
		rows, _, _ := strings.Cut(b.String(), "note:")
		for line := range strings.Lines(rows) {
			if n := screen.Width(strings.TrimRight(line, "\n")); n > columns {
				t.Errorf("%d columns of %d: %s", n, columns, line)
			}
		}
		if !strings.Contains(rows, "MiB") || !strings.Contains(rows, "3.00") {
			t.Errorf("%d columns: the figure is not shown:\n%s", columns, rows)
		}
	}
}

// On a terminal, a table must not be too wide. A table that is too wide first hides empty columns, then breaks long
// texts and headings, and then hides columns of low priority, which a note names. In other outputs, a table is as wide
// as it needs to be.
func TestFitsATerminal(t *testing.T) {
	show := func(columns int) string {
		var b bytes.Buffer
		if err := Write(&screen.Output{Writer: &b, Columns: columns}, "table", wideTable()); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	var plain bytes.Buffer
	if err := Write(&plain, "table", wideTable()); err != nil {
		t.Fatal(err)
	}
	if got := show(0); got != plain.String() {
		t.Errorf("no terminal:\n%s\nwant\n%s", got, plain.String())
	}
	if got := show(200); strings.Contains(strings.Split(got, "\n")[1], "Empty") ||
		!strings.Contains(got, "note: 1 more column (Empty): --wide or --format csv\n") {
		t.Errorf("a wide terminal has an empty column:\n%s", got)
	}
	for _, columns := range []int{80, 60, 40} {
		got := show(columns)
		for line := range strings.Lines(got) {
			if n := screen.Width(strings.TrimRight(line, "\n")); n > columns {
				t.Errorf("%d columns of %d: %s", n, columns, line)
			}
		}
		if !strings.Contains(got, "60,716.00") || !strings.Contains(got, "Run") {
			t.Errorf("%d columns: what matters most is not shown:\n%s", columns, got)
		}
		rows, _, _ := strings.Cut(got, "note:")
		if hidden := strings.Contains(got, "more column"); !hidden || strings.Contains(rows, "Empty") {
			t.Errorf("%d columns: a note %v, or an empty column is shown:\n%s", columns, hidden, got)
		}
	}
	const at60 = `A title of several words that is longer than the narrowest
  terminal of all
              Highest
Run      reserved MiB   Peak MiB  Reason
-------  ------------  ---------  --------------------------
vanilla     61,208.00  60,716.00  it did not end well, since
                                  the device had no more
                                  memory for it
dpsgd       71,532.00  65,186.00  –
note: 2 more columns (Empty, Event): --wide or --format csv
note: one that is longer than the terminal is wide, and goes
      on below itself, word by word
`
	if got := show(60); got != at60 {
		t.Errorf("60 columns:\n%s\nwant\n%s", got, at60)
	}
}

// On a terminal, a table has at most three notes, and says how many more there are. If all tables have a note, it is
// printed once, under the last table. In files and in other formats, each table has all of its notes.
func TestNotes(t *testing.T) {
	tables := []Table{{Notes: []string{"a1", "all", "a2", "a3", "a4"}}, {Notes: []string{"all", "b"}}}
	for i := range tables {
		tables[i].Columns = []Column{{Title: "Run", Key: "run"}}
	}
	for _, c := range []struct {
		format  string
		columns int
		want    []string
	}{
		{"table", 80, []string{"a1", "a2", "a3", "1 more note: --wide", "all", "b"}},
		{"table", 0, []string{"a1", "a2", "a3", "a4", "all", "b"}},
		{"markdown", 80, []string{"a1", "all", "a2", "a3", "a4", "all", "b"}},
	} {
		var b bytes.Buffer
		if err := Write(&screen.Output{Writer: &b, Columns: c.columns}, c.format, tables...); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(b.String()) {
			for _, before := range []string{"note: ", "- "} {
				if note, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), before); ok {
					got = append(got, note)
				}
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %d columns: %q, want %q", c.format, c.columns, got, c.want)
		}
	}
	if !slices.Equal(tables[0].Notes, []string{"a1", "all", "a2", "a3", "a4"}) {
		t.Errorf("printing changed the notes: %q", tables[0].Notes)
	}
}
