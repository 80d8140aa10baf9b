package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/dpsight/dpsight/schemas"
)

// segmentEvents reads the events that change the reserved bytes, which are one in hundreds.
func segmentEvents(dir string, needed bool) ([]schemas.Event, error) {
	type row = schemas.Event
	rows, err := readColumns(dir, schemas.Events, []column[row]{
		{name: "action", int: func(e *row, v int64) { e.Action = int32(v) }},
		{name: "rank", int: func(e *row, v int64) { e.Rank = int32(v) }},
		{name: "device", int: func(e *row, v int64) { e.Device = int32(v) }},
		{name: "seq", int: func(e *row, v int64) { e.Seq = v }},
		{name: "size_bytes", int: func(e *row, v int64) { e.Size = v }},
		{name: "address", int: func(e *row, v int64) { e.Addr = uint64(v) }},
	}, func(p []*piece, i int) bool {
		return schemas.Action(p[0].ints[i]).Reserves()
	})
	return rows, optional(err, needed)
}

// reserved reads the levels of reserved bytes. For a store older than reserved.parquet, reserved derives the levels
// from events.
func reserved(dir string, events func() ([]schemas.Event, error), report *schemas.IngestReport) (
	[]schemas.ReservedLevel, error) {
	levels, err := schemas.Reserved.Read(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return levels, err
	}
	all, err := events()
	if err != nil {
		return nil, err
	}
	return schemas.DeriveReserved(all, report.Devices), nil
}

// windowLists reads the allocator's own lists of blocks that were taken where later windows open, or where a request
// failed outside of all windows. Most runs have only one window, and no such list.
func windowLists(dir string, report *schemas.IngestReport) ([]schemas.SegmentBlock, error) {
	if len(report.OOMs) == 0 &&
		!slices.ContainsFunc(report.Cost, func(c schemas.InstrumentCost) bool { return c.Windows > 1 }) {
		return nil, nil
	}
	rows, err := schemas.Segments.ReadOptional(dir)
	return slices.DeleteFunc(rows, func(b schemas.SegmentBlock) bool { return b.At != schemas.ListWindow }), err
}

// openTable opens a table so that its columns can be read separately.
func openTable(dir, name, schema string) (*os.File, *parquet.File, error) {
	f, err := schemas.OpenRegular(filepath.Join(dir, name))
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
		if pf, err = schemas.OpenParquet(f, st.Size()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if got, _ := pf.Lookup(schemas.MetadataKey); got != schema {
			return nil, &schemas.SchemaError{File: name, Got: got, Want: schema}
		}
		return pf, nil
	}()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, pf, nil
}
