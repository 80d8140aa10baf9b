package store

import (
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/dpsight/dpsight/schemas"
)

// A column sets one field of a row from a table's column: through int for a column of integers, through word for a
// column of strings. A null value sets no field.
type column[R any] struct {
	name string
	int  func(*R, int64)
	word func(*R, string)
}

// set sets the column's field of a row from value i of a piece.
func (c *column[R]) set(r *R, p *piece, i int) {
	switch {
	case p == nil || p.isNull(i):
	case c.int != nil:
		c.int(r, p.ints[i])
	default:
		c.word(r, p.words[i])
	}
}

// readColumns reads some columns of a table into rows; the remaining fields stay zero. If keep is not nil, readColumns
// makes only the rows that keep accepts, since an analysis needs only one event in hundreds. keep gets the values in
// the order of cols.
func readColumns[T, R any](dir string, table schemas.Table[T], cols []column[R], keep func([]*piece, int) bool) ([]R,
	error) {
	var rows []R
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = c.name
	}
	size := func(n int64) {
		if keep == nil {
			rows = make([]R, 0, min(n, 1<<20)) // a damaged file may claim any number
		}
	}
	err := columns(dir, table, names, size, func(pieces []*piece, n int) {
		base := len(rows)
		if keep == nil {
			rows = slices.Grow(rows, n)[:base+n]
			for i := range cols {
				for k := range n {
					cols[i].set(&rows[base+k], pieces[i], k)
				}
			}
			return
		}
		for k := range n {
			if keep(pieces, k) {
				rows = append(rows, *new(R))
				for i := range cols {
					cols[i].set(&rows[len(rows)-1], pieces[i], k)
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// batchRows is how many rows are read at a time: few enough to stay in a processor's cache.
const batchRows = 1024

// columns reads several columns of a table side by side, some rows at a time. The values are valid only while the
// callback runs. columns first calls size with the number of rows. A column that an old file lacks is nil.
func columns[T any](dir string, table schemas.Table[T], names []string, size func(rows int64),
	each func(pieces []*piece, rows int)) (err error) {
	name := table.File()
	f, pf, err := openTable(dir, name, table.Schema())
	if err != nil {
		return err
	}
	defer f.Close()
	defer func() { // parquet-go's decoders may panic on a damaged file
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: damaged Parquet file: %v", name, p)
		}
	}()
	want := parquet.SchemaOf(new(T))
	index := make([]int, len(names))
	var present []int
	for i, c := range names {
		leaf, ok := pf.Schema().Lookup(c)
		if !ok && slices.Contains(table.Added, c) { // the file was written before the column existed
			continue
		}
		if !ok {
			return &schemas.SchemaError{File: name, Column: c, Problem: "is absent"}
		}
		if is, should := leaf.Node.Type().Kind(), kindOf(want, c); is != should {
			return &schemas.SchemaError{File: name, Column: c, Problem: fmt.Sprintf("has type %s, not %s", is, should)}
		}
		index[i] = leaf.ColumnIndex
		present = append(present, i)
	}
	var total int64
	for _, group := range pf.RowGroups() {
		total += group.NumRows()
	}
	if total != pf.NumRows() {
		return fmt.Errorf("%s: damaged Parquet file: it claims %d rows, its row groups %d", name, pf.NumRows(), total)
	}
	size(total)
	readers := make([]columnReader, len(names))
	pieces := make([]*piece, len(names))
	defer func() {
		for i := range readers {
			readers[i].close()
		}
	}()
	for _, group := range pf.RowGroups() {
		for _, i := range present {
			readers[i].open(group.ColumnChunks()[index[i]])
		}
		for left := group.NumRows(); left > 0; {
			n := int(min(left, batchRows))
			for _, i := range present {
				if pieces[i], err = readers[i].next(n); err != nil {
					return fmt.Errorf("%s: damaged Parquet file: column %s: %w", name, names[i], err)
				}
			}
			each(pieces, n)
			left -= int64(n)
		}
		for _, i := range present {
			if err := readers[i].end(); err != nil {
				return fmt.Errorf("%s: damaged Parquet file: column %s: %w", name, names[i], err)
			}
		}
	}
	return nil
}

func kindOf(schema *parquet.Schema, column string) parquet.Kind {
	leaf, ok := schema.Lookup(column)
	if !ok {
		panic("no column " + column) // only a mistake in this program can cause this
	}
	return leaf.Node.Type().Kind()
}
