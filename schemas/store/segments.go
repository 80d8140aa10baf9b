package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/dpsight/dpsight/schemas"
)

// segmentEvents reads the events that change what is reserved: one in hundreds. It builds no other row: as rows, the
// events would take longer to read than all other tables together.
func segmentEvents(dir string, needed bool) ([]schemas.Event, error) {
	var kept []schemas.Event
	var at []int // row of each kept event
	next, before := 0, -1
	err := columns(dir, schemas.Events, []string{"action", "rank", "device", "seq", "size_bytes"}, nil, func(column int, values []parquet.Value, base int) {
		if column == 0 {
			for i, v := range values {
				switch schemas.Action(v.Int32()) {
				case schemas.ActionSegmentAlloc, schemas.ActionSegmentFree, schemas.ActionSegmentMap, schemas.ActionSegmentUnmap:
					kept, at = append(kept, schemas.Event{Action: v.Int32()}), append(at, base+i)
				}
			}
			before = column
			return
		}
		if column != before { // the column's first piece of this row group
			next, _ = slices.BinarySearch(at, base)
			before = column
		}
		for ; next < len(at) && at[next] < base+len(values); next++ {
			v, e := values[at[next]-base], &kept[next]
			switch column {
			case 1:
				e.Rank = v.Int32()
			case 2:
				e.Device = v.Int32()
			case 3:
				e.Seq = v.Int64()
			case 4:
				e.Size = v.Int64()
			}
		}
	})
	if err = optional(err, needed); err != nil {
		return nil, err
	}
	return kept, nil
}

// openTable opens a table to be read by columns.
func openTable(dir, name, schema string) (*os.File, *parquet.File, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, nil, err
	}
	pf, err := func() (pf *parquet.File, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%s: damaged Parquet file: %v", name, p)
			}
		}()
		st, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if pf, err = parquet.OpenFile(f, st.Size()); err != nil {
			return nil, fmt.Errorf("%s: not a complete Parquet file: %w", name, err)
		}
		if got, _ := pf.Lookup(schemas.MetadataKey); got != schema {
			return nil, &schemas.SchemaError{File: name, Got: got, Want: schema}
		}
		if err := schemas.CheckCompression(pf); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return pf, nil
	}()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, pf, nil
}
