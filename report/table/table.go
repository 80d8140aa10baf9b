// Package table is the one model of a printed table, and the formats that it is printed in.
package table

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
)

// A Table is what every subcommand prints: titled columns, rows of cells, footnotes.
type Table struct {
	Title   string
	Columns []Column
	Rows    [][]Cell // as many cells as columns
	// Stream, if not nil, yields the rows in place of Rows while they are written: millions of rows do not fit in
	// memory as cells.
	Stream iter.Seq[[]Cell]
	// Blocks, if not nil, are what people read in place of columns and rows, which are for programs then.
	Blocks []Block
	Notes  []string
	// Document is what the JSON format prints instead of the rows, if a schema defines that.
	Document any
}

// A Block is a short separate text: a title, and below it labels with their texts.
type Block struct {
	Title string
	Parts []Part
}

// A Part is one thing that a block says.
type Part struct{ Label, Text string }

// A Column has a title for people and a key, with its unit, for programs. Numbers are aligned right.
type Column struct {
	Title string
	Key   string
	Right bool
	For   Audience
	// Begins says that the column begins another subject, as time after memory: a table too wide for a page is divided
	// there first.
	Begins bool
	// Names says that the column names a row's subject. Like the first column, it is never hidden.
	Names bool
	// Priority says how long the column stays if a terminal is too narrow for all: the lowest go first, and of
	// equals the rightmost. Columns of zeros go before all others.
	Priority int
}

// ForPrograms hides the columns of a key from people.
func (t *Table) ForPrograms(key string) {
	for i := range t.Columns {
		if t.Columns[i].Key == key {
			t.Columns[i].For = Programs
		}
	}
}

// An Audience is whom a column is for. A table of one run names the run in its title, a CSV file in every row.
type Audience int

// The audiences.
const (
	Everybody Audience = iota
	People             // not in CSV
	Programs           // in CSV only
)

// A Cell has a text for people and the bare value for programs. A nil value is absent: null in JSON, empty in CSV.
type Cell struct {
	Text  string
	Value any
}

// isZero reports whether a cell has no value, or a number that is 0.
func (c Cell) isZero() bool {
	switch v := c.Value.(type) {
	case nil:
		return true
	case int64:
		return v == 0
	case float64:
		return v == 0
	}
	return false
}

// A Format writes tables.
type Format struct {
	Name  string
	Help  string
	write func(io.Writer, *Table) error
}

// Formats lists every format, the default first.
var Formats = []Format{
	{"table", "aligned text", writeText},
	{"json", "one JSON document", writeJSON},
	{"csv", "comma-separated values, bare numbers in base units", writeCSV},
	{"markdown", "a Markdown table", writeMarkdown},
	{"latex", "a LaTeX table (booktabs)", writeLaTeX},
}

// Names lists the formats' names, for help and for flags' choices.
func Names() []string {
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = f.Name
	}
	return names
}

// Write prints tables in a format, one after another. In JSON, Write prints only one document: the first table's.
func Write(w io.Writer, format string, tables ...Table) error {
	for _, f := range Formats {
		if f.Name != format {
			continue
		}
		if f.Name == "csv" { // text for people only is not a record
			tables = slices.DeleteFunc(slices.Clone(tables), func(t Table) bool {
				return len(t.Columns) > 0 && len(t.keys()) == 0
			})
		}
		if f.Name == "table" {
			tables = withoutRepeats(tables)
		}
		for i := range tables {
			if i > 0 && f.Name == "json" {
				break
			}
			if i > 0 && f.Name == "csv" && slices.Equal(tables[i].keys(), tables[i-1].keys()) {
				if err := writeRecords(w, &tables[i], false); err != nil { // one CSV file, one header
					return err
				}
				continue
			}
			if i > 0 {
				if _, err := io.WriteString(w, "\n"); err != nil {
					return err
				}
			}
			t := &tables[i]
			if f.Name != "csv" {
				t = t.whole().forPeople()
			}
			if err := f.write(w, t); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("format %q is not one of %s", format, strings.Join(Names(), ", "))
}

// rows gives the rows, wherever they are.
func (t *Table) rows() iter.Seq[[]Cell] {
	if t.Stream != nil {
		return t.Stream
	}
	return slices.Values(t.Rows)
}

// whole is the table with all its rows in Rows, for formats that align columns.
func (t *Table) whole() *Table {
	if t.Stream == nil {
		return t
	}
	all := *t
	all.Rows, all.Stream = slices.Collect(t.Stream), nil
	return &all
}

// forPeople leaves out the columns that only programs want.
func (t *Table) forPeople() *Table {
	if !slices.ContainsFunc(t.Columns, func(c Column) bool { return c.For == Programs }) {
		return t
	}
	shown := *t
	shown.Columns, shown.Rows = nil, make([][]Cell, len(t.Rows))
	for j, c := range t.Columns {
		if c.For == Programs {
			continue
		}
		shown.Columns = append(shown.Columns, c)
		for i := range t.Rows {
			shown.Rows[i] = append(shown.Rows[i], t.Rows[i][j])
		}
	}
	return &shown
}

// keys are the columns of a CSV file.
func (t *Table) keys() []string {
	var keys []string
	for i := range t.Columns {
		if t.Columns[i].For != People {
			keys = append(keys, t.Columns[i].key())
		}
	}
	return keys
}

// DropZero removes the column of a title or key from all tables if the column has only zeros in all of them.
func DropZero(tables []Table, name string) {
	at := func(t *Table) int {
		return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Title == name || c.Key == name })
	}
	for i := range tables {
		column := at(&tables[i])
		if column >= 0 && slices.ContainsFunc(tables[i].Rows, func(row []Cell) bool { return !row[column].isZero() }) {
			return
		}
	}
	for i := range tables {
		t := &tables[i]
		column := at(t)
		if column < 0 {
			continue
		}
		t.Columns = slices.Delete(slices.Clone(t.Columns), column, column+1)
		for k := range t.Rows {
			t.Rows[k] = slices.Delete(t.Rows[k], column, column+1)
		}
	}
}

// WithoutZero is the table without the column of a title or key if that column has only zeros.
func (t Table) WithoutZero(name string) Table {
	one := []Table{t}
	DropZero(one, name)
	return one[0]
}
