// Package table has one model for all printed tables, and the formats in which they are printed.
package table

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
)

// A Table is what subcommands print: titled columns, rows of cells, and notes.
type Table struct {
	Title   string
	Columns []Column
	Rows    [][]Cell // rows, each with as many cells as there are columns
	// Stream, if not nil, yields the rows while they are written, and replaces Rows: millions of rows do not fit into
	// memory as cells.
	Stream iter.Seq[[]Cell]
	// Blocks, if not nil, are what people read. Only programs then read the columns and rows.
	Blocks []Block
	Notes  []string
	// Document, if not nil, is what the JSON format prints in place of the rows. A schema defines it.
	Document any
}

// A Block is a short text of its own: a title, and below it labels with their texts.
type Block struct {
	Title string
	Parts []Part
}

// A Part is a label of a block with its text.
type Part struct{ Label, Text string }

// A Column has a title for people and a key, with its unit, for programs. A column of numbers is aligned right.
type Column struct {
	Title string
	Key   string
	Right bool
	For   Audience
	// Begins says that the column begins a new subject, such as time after memory. A table too wide for a page is first
	// divided at such columns.
	Begins bool
	// Names says that the column names a row's subject. Like the first column, such a column is never hidden.
	Names bool
	// Priority says in which order columns are hidden if a terminal is too narrow: the lowest priority first, and among
	// equals the rightmost column. Columns of zeros are hidden before all others.
	Priority int
}

// ForPrograms hides the columns with a key from people.
func (t *Table) ForPrograms(key string) {
	for i := range t.Columns {
		if t.Columns[i].Key == key {
			t.Columns[i].For = Programs
		}
	}
}

// An Audience says who reads a column. For example, a table on one run names the run in its title for people, and in
// every row of a CSV file for programs.
type Audience int

// The audiences.
const (
	Everybody Audience = iota
	People             // CSV leaves the column out
	Programs           // only CSV has the column
)

// A Cell has a text for people and the bare value for programs. A nil value means unknown: null in JSON, empty in CSV.
type Cell struct {
	Text  string
	Value any
}

// isZero reports whether a cell has no value, or the value 0.
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

// Formats lists all formats, the default first.
var Formats = []Format{
	{"table", "aligned text", writeText},
	{"json", "one JSON document", writeJSON},
	{"csv", "comma-separated values, bare numbers in base units", writeCSV},
	{"markdown", "a Markdown table", writeMarkdown},
	{"latex", "a LaTeX table (booktabs)", writeLaTeX},
}

// Names returns the formats' names, for help and for the choices of flags.
func Names() []string {
	names := make([]string, len(Formats))
	for i, f := range Formats {
		names[i] = f.Name
	}
	return names
}

// Write prints tables in a format, one after another. In JSON, it prints only one document: the first table's.
func Write(w io.Writer, format string, tables ...Table) error {
	for _, f := range Formats {
		if f.Name != format {
			continue
		}
		if f.Name == "csv" { // a CSV file has no text for people
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
				if err := writeRecords(w, &tables[i], false); err != nil { // one CSV file has one header
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

// rows returns the table's rows, from Stream or from Rows.
func (t *Table) rows() iter.Seq[[]Cell] {
	if t.Stream != nil {
		return t.Stream
	}
	return slices.Values(t.Rows)
}

// whole returns the table with all rows in Rows, for formats that align columns.
func (t *Table) whole() *Table {
	if t.Stream == nil {
		return t
	}
	all := *t
	all.Rows, all.Stream = slices.Collect(t.Stream), nil
	return &all
}

// forPeople returns the table without the columns that only programs read.
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

// keys returns the keys of the columns, which are the header of a CSV file.
func (t *Table) keys() []string {
	var keys []string
	for i := range t.Columns {
		if t.Columns[i].For != People {
			keys = append(keys, t.Columns[i].key())
		}
	}
	return keys
}

// DropZero removes the column with a title or key from all tables, if it has only zeros in all of them.
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

// WithoutZero returns the table without the column with a title or key, if that column has only zeros.
func (t Table) WithoutZero(name string) Table {
	one := []Table{t}
	DropZero(one, name)
	return one[0]
}
