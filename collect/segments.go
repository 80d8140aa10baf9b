package collect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/store"
)

// A segmentWriter keeps rows in memory and flushes them as numbered, complete Parquet files. If its writer died, a
// single open Parquet file would be lost, since its footer is written last.
type segmentWriter[T any] struct {
	dir   string
	table schemas.Table[T]

	mu      sync.Mutex
	rows    []T
	spare   []T // memory of the rows flushed last
	number  int
	written int64
}

// add adds a row, and never waits for the disk.
func (w *segmentWriter[T]) add(row T) {
	w.mu.Lock()
	w.rows = append(w.rows, row)
	w.mu.Unlock()
}

// flush writes the rows that were added since the last flush. One goroutine at a time may call flush.
func (w *segmentWriter[T]) flush() error {
	w.mu.Lock()
	rows := w.rows
	w.rows, w.spare = w.spare[:0], nil
	w.mu.Unlock()
	if len(rows) == 0 {
		return nil
	}
	w.number++
	path := filepath.Join(w.dir, store.SegmentName(w.table.Name, w.number))
	err := schemas.WriteFile(path, func(f io.Writer) error { return w.table.EncodeFast(f, rows) })
	if err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	w.written += int64(len(rows))
	clear(rows)
	w.mu.Lock()
	w.spare = rows[:0]
	w.mu.Unlock()
	return nil
}

// Recover completes the tables of a run whose collector was killed. Recover returns an error for a run that is still
// being recorded.
func Recover(dir string) error {
	if Running(dir) {
		return schemas.WithHint(errors.New("the run is still being collected"), "dpsight makes its tables when "+
			"the run ends; dpsight runs shows its progress")
	}
	return RecoverTables(dir)
}

// RecoverTables completes the tables of a run whose end its collector did not see, and writes their digests into the
// manifest.
func RecoverTables(dir string) error {
	if err := MergeSegments(dir); err != nil {
		return err
	}
	m, err := schemas.ReadManifest(dir)
	if err != nil || m.Tables != nil || m.Schema != schemas.ManifestSchema {
		return err
	}
	if m.Attached != nil {
		return finishAttached(dir, m)
	}
	if m.Tables, err = schemas.TableDigests(dir, schemas.SampledTables()...); err != nil || len(m.Tables) == 0 {
		return err
	}
	return schemas.WriteManifest(dir, m)
}

// MergeSegments joins the sample segments of a run folder into samples.parquet and host.parquet, and removes them. A
// run that ended by itself has no segments left. A run whose collector was killed has segments, and perhaps incomplete
// files, which MergeSegments removes. MergeSegments can be interrupted and called again. The run must not be running
// (see [Running]), and no other process may write its files: the collector holds the run's lock, and ingest locks the
// folder.
func MergeSegments(dir string) error {
	for _, folder := range []string{dir, filepath.Join(dir, spool.Dir)} {
		partials, _ := filepath.Glob(filepath.Join(folder, "*"+schemas.PartialSuffix))
		for _, path := range partials {
			os.Remove(path)
		}
	}
	return errors.Join(mergeTable(dir, schemas.Samples), mergeTable(dir, schemas.HostSamples))
}

func mergeTable[T any](dir string, table schemas.Table[T]) error {
	segments, err := filepath.Glob(filepath.Join(dir, table.Name+"-[0-9]*.parquet"))
	if err != nil || len(segments) == 0 {
		return err
	}
	slices.Sort(segments)
	// An existing merged table has all its segments: it was renamed into place after it was complete.
	if _, err := os.Stat(filepath.Join(dir, table.File())); errors.Is(err, fs.ErrNotExist) {
		if err := mergeInto(filepath.Join(dir, table.File()), table, segments); err != nil {
			return err
		}
	}
	for _, s := range segments {
		err = errors.Join(err, os.Remove(s))
	}
	return err
}

// mergeInto merges segments, of which it keeps one at a time in memory. If a segment is damaged, it returns an error
// and removes nothing.
func mergeInto[T any](path string, table schemas.Table[T], segments []string) error {
	err := schemas.WriteFile(path, func(f io.Writer) error {
		w := table.NewWriter(f)
		for _, s := range segments {
			rows, err := readSegment(table, s)
			if err != nil {
				return fmt.Errorf("%s: %w", filepath.Base(s), err)
			}
			if err := w.Write(rows); err != nil {
				return err
			}
		}
		return w.Close()
	})
	if err != nil {
		return fmt.Errorf("merging %s: %w", table.File(), err)
	}
	return nil
}

func readSegment[T any](table schemas.Table[T], path string) ([]T, error) {
	f, err := schemas.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return table.Decode(f, st.Size())
}
