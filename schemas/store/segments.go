package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"

	"github.com/dpsight/dpsight/schemas"
)

// segmentEvents reads the events that change what is reserved: one in hundreds. It reads the few columns that matter
// page by page and builds no other row: as rows, the events would take longer to read than all other tables together.
func segmentEvents(dir string, needed bool) (kept []schemas.Event, err error) {
	name := schemas.Events.File()
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) && !needed {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	defer func() { // parquet-go's decoders may panic on a damaged file
		if p := recover(); p != nil {
			kept, err = nil, fmt.Errorf("%s: damaged Parquet file: %v", name, p)
		}
	}()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	pf, err := parquet.OpenFile(f, st.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: not a complete Parquet file: %w", name, err)
	}
	if got, _ := pf.Lookup(schemas.MetadataKey); got != schemas.Events.Schema() {
		return nil, &schemas.SchemaError{File: name, Got: got, Want: schemas.Events.Schema()}
	}
	if err := schemas.CheckCompression(pf); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	columns := [...]string{"action", "rank", "device", "seq", "size_bytes"}
	var index [len(columns)]int
	for i, c := range columns {
		leaf, ok := pf.Schema().Lookup(c)
		if !ok {
			return nil, &schemas.SchemaError{File: name, Column: c, Problem: "is absent"}
		}
		if k := leaf.Node.Type().Kind(); k != parquet.Int32 && k != parquet.Int64 {
			return nil, &schemas.SchemaError{File: name, Column: c, Problem: fmt.Sprintf("has type %s", k)}
		}
		index[i] = leaf.ColumnIndex
	}
	for _, group := range pf.RowGroups() {
		var values [len(columns)][]int64
		for i := range columns {
			if values[i], err = integers(group.ColumnChunks()[index[i]], group.NumRows()); err != nil {
				return nil, fmt.Errorf("%s: damaged Parquet file: %w", name, err)
			}
			if i > 0 && len(values[i]) != len(values[0]) {
				return nil, fmt.Errorf("%s: damaged Parquet file: %d values in column %s, %d in %s", name, len(values[i]), columns[i], len(values[0]), columns[0])
			}
		}
		for row, action := range values[0] {
			switch schemas.Action(action) {
			case schemas.ActionSegmentAlloc, schemas.ActionSegmentFree, schemas.ActionSegmentMap, schemas.ActionSegmentUnmap:
				kept = append(kept, schemas.Event{Action: int32(action), Rank: int32(values[1][row]), Device: int32(values[2][row]),
					Seq: values[3][row], Size: values[4][row]})
			}
		}
	}
	return kept, nil
}

// integers reads a column chunk of required integers.
func integers(chunk parquet.ColumnChunk, rows int64) (out []int64, err error) {
	pages := chunk.Pages()
	defer pages.Close()
	buffer := make([]parquet.Value, 4096)
	out = make([]int64, 0, min(rows, 1<<20)) // a damaged file may claim any number
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		for values := page.Values(); ; {
			n, err := values.ReadValues(buffer)
			for _, v := range buffer[:n] {
				if v.Kind() == parquet.Int32 {
					out = append(out, int64(v.Int32()))
				} else {
					out = append(out, v.Int64())
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				parquet.Release(page)
				return nil, err
			}
		}
		parquet.Release(page)
	}
}
