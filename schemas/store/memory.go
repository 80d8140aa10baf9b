package store

import (
	"errors"
	"io/fs"

	"github.com/dpsight/dpsight/schemas"
)

// allocations reads the columns of blocks that an analysis of bytes needs: id, sizes and life. If detail is true,
// allocations also reads where blocks were allocated and their stacks, which take most of a report's time. If within is
// not nil, it returns only the blocks that are live in that window.
func allocations(dir string, needed, detail bool, within *Window) ([]schemas.Allocation, error) {
	type row = schemas.Allocation
	cols := []column[row]{
		{name: "rank", int: func(a *row, v int64) { a.Rank = int32(v) }},
		{name: "device", int: func(a *row, v int64) { a.Device = int32(v) }},
		{name: "alloc_id", int: func(a *row, v int64) { a.AllocID = v }},
		{name: "alloc_seq", int: func(a *row, v int64) { a.AllocSeq = v }},
		{name: "free_requested_seq", int: func(a *row, v int64) { a.FreeRequestedSeq = v }},
		{name: "address", int: func(a *row, v int64) { a.Address = uint64(v) }},
		{name: "requested_bytes", int: func(a *row, v int64) { a.RequestedBytes = v }},
		{name: "block_bytes", int: func(a *row, v int64) { a.BlockBytes = v }},
		{name: "open_bytes", int: func(a *row, v int64) { a.OpenBytes = v }},
		{name: "free_completed_seq", int: func(a *row, v int64) { a.FreeCompletedSeq = v }},
	}
	if detail {
		cols = append(cols, []column[row]{
			{name: "step", int: func(a *row, v int64) { a.Step = v }},
			{name: "microbatch", int: func(a *row, v int64) { a.Microbatch = int32(v) }},
			{name: "phase", word: func(a *row, v string) { a.Phase = v }},
			{name: "module_id", int: func(a *row, v int64) { a.Module = v }},
			{name: "dtype", word: func(a *row, v string) { a.DType = v }},
			{name: "op", word: func(a *row, v string) { a.Op = v }},
			{name: "stack_id", int: func(a *row, v int64) { a.Stack = v }},
			{name: "line_id", int: func(a *row, v int64) { a.Line = v }},
			{name: "stream", int: func(a *row, v int64) { a.Stream = uint64(v) }},
		}...)
	}
	var keep func([]*piece, int) bool
	if within != nil {
		keep = func(p []*piece, i int) bool {
			return within.on(p[0].ints[i], p[1].ints[i]) && within.live(p[3].ints[i], p[4].ints[i])
		}
	}
	rows, err := readColumns(dir, schemas.Allocations, cols, keep)
	return rows, optional(err, needed)
}

// owners reads the category of each owner, and during which events it holds its block. If detail is true, owners also
// reads the name and the module. If within is not nil, it returns only the owners of the given blocks.
func owners(dir string, needed, detail bool, within *Window, blocks []schemas.Allocation) ([]schemas.Owner, error) {
	type row = schemas.Owner
	cols := []column[row]{
		{name: "rank", int: func(o *row, v int64) { o.Rank = int32(v) }},
		{name: "device", int: func(o *row, v int64) { o.Device = int32(v) }},
		{name: "alloc_id", int: func(o *row, v int64) { o.AllocID = v }},
		{name: "category", word: func(o *row, v string) { o.Category = v }},
		{name: "begin_seq", int: func(o *row, v int64) { o.BeginSeq = v }},
		{name: "end_seq", int: func(o *row, v int64) { o.EndSeq = v }},
		{name: "evidence", word: func(o *row, v string) { o.Evidence = v }},
	}
	if detail {
		cols = append(cols, []column[row]{
			{name: "name", word: func(o *row, v string) { o.Name = v }},
			{name: "module_id", int: func(o *row, v int64) { o.Module = v }},
		}...)
	}
	var keep func([]*piece, int) bool
	if within != nil {
		ids := make(map[int64]bool, len(blocks))
		for i := range blocks {
			ids[blocks[i].AllocID] = true
		}
		keep = func(p []*piece, i int) bool { return within.on(p[0].ints[i], p[1].ints[i]) && ids[p[2].ints[i]] }
	}
	rows, err := readColumns(dir, schemas.Owners, cols, keep)
	return rows, optional(err, needed)
}

// optional returns err, but nil if err says that a table is absent and the table is not needed.
func optional(err error, needed bool) error {
	if !needed && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
