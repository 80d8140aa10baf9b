package store

import (
	"errors"
	"io/fs"

	"github.com/parquet-go/parquet-go"

	"github.com/dpsight/dpsight/schemas"
)

// allocations reads what an analysis of bytes asks of a block: which it is, its sizes and its life; with
// detail also where it was born and its stack, which would take most of a report's time.
func allocations(dir string, needed, detail bool) ([]schemas.Allocation, error) {
	type row = schemas.Allocation
	cols := []column[row]{
		{"rank", func(a *row, v parquet.Value) { a.Rank = v.Int32() }},
		{"device", func(a *row, v parquet.Value) { a.Device = v.Int32() }},
		{"alloc_id", func(a *row, v parquet.Value) { a.AllocID = v.Int64() }},
		{"address", func(a *row, v parquet.Value) { a.Address = v.Uint64() }},
		{"requested_bytes", func(a *row, v parquet.Value) { a.RequestedBytes = v.Int64() }},
		{"block_bytes", func(a *row, v parquet.Value) { a.BlockBytes = v.Int64() }},
		{"alloc_seq", func(a *row, v parquet.Value) { a.AllocSeq = v.Int64() }},
		{"free_requested_seq", func(a *row, v parquet.Value) { a.FreeRequestedSeq = v.Int64() }},
		{"free_completed_seq", func(a *row, v parquet.Value) { a.FreeCompletedSeq = v.Int64() }},
	}
	if detail {
		word := interned()
		cols = append(cols, []column[row]{
			{"step", func(a *row, v parquet.Value) { a.Step = v.Int64() }},
			{"microbatch", func(a *row, v parquet.Value) { a.Microbatch = v.Int32() }},
			{"phase", func(a *row, v parquet.Value) { a.Phase = word(v) }},
			{"module_id", func(a *row, v parquet.Value) { a.Module = v.Int64() }},
			{"op", func(a *row, v parquet.Value) { a.Op = word(v) }},
			{"stack_id", func(a *row, v parquet.Value) { a.Stack = v.Int64() }},
		}...)
	}
	rows, err := readColumns(dir, schemas.Allocations, cols)
	return rows, optional(err, needed)
}

// owners reads who holds each block, and when; with detail under which name and in which module.
func owners(dir string, needed, detail bool) ([]schemas.Owner, error) {
	type row = schemas.Owner
	word := interned()
	cols := []column[row]{
		{"rank", func(o *row, v parquet.Value) { o.Rank = v.Int32() }},
		{"device", func(o *row, v parquet.Value) { o.Device = v.Int32() }},
		{"alloc_id", func(o *row, v parquet.Value) { o.AllocID = v.Int64() }},
		{"category", func(o *row, v parquet.Value) { o.Category = word(v) }},
		{"begin_seq", func(o *row, v parquet.Value) { o.BeginSeq = v.Int64() }},
		{"end_seq", func(o *row, v parquet.Value) { o.EndSeq = v.Int64() }},
		{"evidence", func(o *row, v parquet.Value) { o.Evidence = word(v) }},
	}
	if detail {
		cols = append(cols, []column[row]{
			{"name", func(o *row, v parquet.Value) { o.Name = word(v) }},
			{"module_id", func(o *row, v parquet.Value) { o.Module = v.Int64() }},
		}...)
	}
	rows, err := readColumns(dir, schemas.Owners, cols)
	return rows, optional(err, needed)
}

// optional forgives the absence of a table that is not needed.
func optional(err error, needed bool) error {
	if !needed && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
