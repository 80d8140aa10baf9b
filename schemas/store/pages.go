package store

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// A piece is a stretch of a column's values: integers or words.
type piece struct {
	ints  []int64
	words []string
	nulls []bool // nil: no value is null. A null has the integer 0 and an empty word
}

func (p *piece) isNull(i int) bool { return p.nulls != nil && p.nulls[i] }

// A columnReader reads a column chunk from the slices into which its pages are decoded. Reading value by value, as
// parquet-go's readers do, takes five times as long.
type columnReader struct {
	pages parquet.Pages
	// page is the page that is being read: at of its values have been read, and left values remain.
	page     parquet.Page
	at, left int
	// plain has the page's values that are not null, or, for a page with a dictionary, the dictionary's values. With a
	// dictionary, indexes has, for each value of the page, its index in plain.
	plain   piece
	indexes []int32
	value   int // how many values of plain, or of indexes, have been read

	dictionary parquet.Dictionary
	entries    piece
	out        piece // the piece that next returns
	nulls      []bool
}

func (r *columnReader) open(chunk parquet.ColumnChunk) {
	r.close()
	r.pages = chunk.Pages()
}

// close releases the present page, closes the pages, and may be called again.
func (r *columnReader) close() {
	if r.page != nil {
		parquet.Release(r.page)
	}
	if r.pages != nil {
		r.pages.Close()
	}
	*r = columnReader{out: r.out, nulls: r.nulls}
}

var errShort = errors.New("it has fewer values than the table has rows")

// next returns the next n values of the column, in memory that the following call reuses.
func (r *columnReader) next(n int) (*piece, error) {
	r.out.ints, r.out.words, r.out.nulls, r.nulls = r.out.ints[:0], r.out.words[:0], nil, r.nulls[:0]
	for n > 0 {
		if err := r.turn(); err == io.EOF {
			return nil, errShort
		} else if err != nil {
			return nil, err
		}
		k := min(n, r.left)
		var nulls []bool
		if levels := r.page.DefinitionLevels(); len(levels) > 0 { // all pages of an optional column have levels
			for _, l := range levels[r.at : r.at+k] {
				r.nulls = append(r.nulls, l == 0)
			}
			r.out.nulls, nulls = r.nulls, r.nulls[len(r.nulls)-k:]
		}
		if r.plain.words != nil {
			r.out.words, r.value = spread(r.out.words, r.plain.words, r.indexes, r.value, nulls, k)
		} else {
			r.out.ints, r.value = spread(r.out.ints, r.plain.ints, r.indexes, r.value, nulls, k)
		}
		r.at, r.left, n = r.at+k, r.left-k, n-k
	}
	return &r.out, nil
}

// end returns an error if values are left.
func (r *columnReader) end() error {
	switch err := r.turn(); err {
	case io.EOF:
		return nil
	case nil:
		return errors.New("it has more values than the table has rows")
	default:
		return err
	}
}

// turn goes to the next page with values if all values of the present page have been read.
func (r *columnReader) turn() error {
	for r.left == 0 {
		if r.page != nil {
			parquet.Release(r.page)
			r.page = nil
		}
		page, err := r.pages.ReadPage()
		if err != nil {
			return err
		}
		r.page, r.at, r.left, r.value = page, 0, int(page.NumValues()), 0
		data := page.Data()
		if d := page.Dictionary(); d == nil {
			r.plain, r.indexes = decoded(data), nil
		} else {
			if d != r.dictionary {
				r.dictionary, r.entries = d, decoded(d.Page().Data())
			}
			r.plain, r.indexes = r.entries, data.Int32()
		}
	}
	return nil
}

// spread appends the next n values to out, and a zero for each null, since a page stores no value for a null. spread
// also returns the place in values that it reached.
func spread[V any](out, values []V, indexes []int32, at int, nulls []bool, n int) ([]V, int) {
	for i := range n {
		switch {
		case nulls != nil && nulls[i]:
			out = append(out, *new(V))
			continue
		case indexes != nil:
			out = append(out, values[indexes[at]])
		default:
			out = append(out, values[at])
		}
		at++
	}
	return out, at
}

// decoded returns a page's values as integers or as strings.
func decoded(v encoding.Values) (p piece) {
	switch v.Kind() {
	case encoding.Int64:
		p.ints = v.Int64()
	case encoding.Int32:
		p.ints = make([]int64, 0, len(v.Int32()))
		for _, n := range v.Int32() {
			p.ints = append(p.ints, int64(n))
		}
	case encoding.ByteArray:
		data, offsets := v.ByteArray()
		p.words = make([]string, 0, len(offsets))
		for i := 1; i < len(offsets); i++ {
			p.words = append(p.words, string(data[offsets[i-1]:offsets[i]]))
		}
	default:
		panic(fmt.Sprintf("no reader of %s", v.Kind())) // columns of such a type are read as rows
	}
	return p
}
