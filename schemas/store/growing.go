package store

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/schemas"
)

// Growing reads the segment files of a table to which a collector still adds segments. Growing reads each segment once.
// The collector renames a segment into place when the segment is complete.
type Growing[T any] struct {
	Dir   string
	Table schemas.Table[T]

	read int // number of segments that have been read
}

// Read calls each with the rows that were added since the last call.
func (g *Growing[T]) Read(each func(*T)) error {
	for {
		path := filepath.Join(g.Dir, SegmentName(g.Table.Name, g.read+1))
		st, err := os.Stat(path)
		if err != nil { // the segment does not exist yet, or the run has ended
			return nil
		}
		f, err := schemas.OpenRegular(path)
		if err != nil {
			return err
		}
		rows, err := g.Table.Decode(f, st.Size())
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		for i := range rows {
			each(&rows[i])
		}
		g.read++
	}
}

// SegmentName returns the file name of a table's n-th segment, counted from 1.
func SegmentName(table string, n int) string { return fmt.Sprintf("%s-%06d.parquet", table, n) }
