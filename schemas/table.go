package schemas

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"sync"

	kzstd "github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/dpsight/dpsight/schemas/internal/level"
)

// MetadataKey is the key in a Parquet file's metadata whose value is the table's name and version.
const MetadataKey = "dpsight.schema"

// rowGroupRows is the largest number of rows in a row group. parquet-go's default is a single group, held in memory
// until Close.
const rowGroupRows = 256 << 10

// pageBytes is the size of a page before compression. With parquet-go's default, a quarter of this size, events.parquet
// is 7 % larger.
const pageBytes = 1 << 20

// A Table is one Parquet file of a run folder, with rows of type T.
type Table[T any] struct {
	Name    string   // name of the table's file without its ending
	Version int      // version of the table's schema
	Added   []string // columns that older files of this version lack; their rows have null
}

// File returns the name of the table's file in a run folder.
func (t Table[T]) File() string { return t.Name + ".parquet" }

// Schema returns the table's name and version in the form that the file's metadata has.
func (t Table[T]) Schema() string { return fmt.Sprintf("%s/%d", t.Name, t.Version) }

// Write replaces the table in the run folder dir.
func (t Table[T]) Write(dir string, rows []T) error {
	err := WriteFile(filepath.Join(dir, t.File()), func(w io.Writer) error { return t.Encode(w, rows) })
	if err != nil {
		return fmt.Errorf("writing %s: %w", t.File(), err)
	}
	return nil
}

// EncodeQuick is Encode for a table whose writing a user waits for; see [Table.NewQuickWriter].
func (t Table[T]) EncodeQuick(w io.Writer, rows []T) error {
	return encode(t.NewQuickWriter(w), rows)
}

// Encode writes the table to w.
func (t Table[T]) Encode(w io.Writer, rows []T) error {
	return encode(t.NewWriter(w), rows)
}

// EncodeFast is Encode with less compression, for files that are soon read and replaced. With better compression, a
// collector's segments took a quarter of the collector's CPU time.
func (t Table[T]) EncodeFast(w io.Writer, rows []T) error {
	return encode(t.newWriter(w, &fast), rows)
}

func encode[T any](pw *TableWriter[T], rows []T) error {
	const batch = 8 << 10
	for len(rows) > 0 {
		n := min(batch, len(rows))
		if err := pw.Write(rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return pw.Close()
}

// A TableWriter appends rows to a table. Close writes the footer, without which the file cannot be read.
type TableWriter[T any] struct{ w *parquet.GenericWriter[T] }

// NewWriter begins a table on w.
func (t Table[T]) NewWriter(w io.Writer) *TableWriter[T] {
	return t.newWriter(w, &small)
}

// NewQuickWriter begins a table on w whose writing a user waits for. The files of a NewQuickWriter are an eighth larger
// than with [Table.NewWriter], and compressed in a tenth of the time and of the memory.
func (t Table[T]) NewQuickWriter(w io.Writer) *TableWriter[T] {
	return t.newWriter(w, &quick)
}

// All tables share these codecs, since each codec keeps encoders whose tables take megabytes.
var (
	small = zstd.Codec{Level: level.Best, Concurrency: 1}
	quick = narrow{Codec: zstd.Codec{Level: level.Quick}}
	fast  = zstd.Codec{Level: zstd.SpeedFastest, Concurrency: 1}
)

// narrow compresses with a window as large as a page. By default each encoder's window takes 16 MiB, and several tables
// are written at the same time.
type narrow struct {
	zstd.Codec
	encoders sync.Pool
}

func (c *narrow) Encode(dst, src []byte) ([]byte, error) {
	e, ok := c.encoders.Get().(*kzstd.Encoder)
	if !ok {
		var err error
		if e, err = kzstd.NewWriter(nil, kzstd.WithEncoderConcurrency(1), kzstd.WithEncoderLevel(c.Level),
			kzstd.WithWindowSize(pageBytes), kzstd.WithZeroFrames(true), kzstd.WithEncoderCRC(false)); err != nil {
			return nil, err
		}
	}
	defer c.encoders.Put(e)
	return e.EncodeAll(src, dst[:0]), nil
}

func (t Table[T]) newWriter(w io.Writer, codec compress.Codec) *TableWriter[T] {
	return &TableWriter[T]{parquet.NewGenericWriter[T](w,
		parquet.Compression(codec),
		parquet.MaxRowsPerRowGroup(rowGroupRows),
		parquet.PageBufferSize(pageBytes),
		// Pages of version 2 leave the list of null values uncompressed: a tenth of the size of marks and owners, a
		// seventh of samples.
		parquet.DataPageVersion(1),
		// The bounds of values are in the footer. In page headers as well, they took two fifths of a short table's
		// columns.
		parquet.DataPageStatistics(false),
		parquet.KeyValueMetadata(MetadataKey, t.Schema()),
		parquet.CreatedBy("dpsight", fmt.Sprint(t.Version), ""))}
}

// Write appends rows.
func (w *TableWriter[T]) Write(rows []T) error {
	_, err := w.w.Write(rows)
	return err
}

// writeAllRows is how many rows [TableWriter.WriteAll] holds at a time.
const writeAllRows = 16 << 10

// WriteAll appends rows that are made one by one, so that the rows of a large table need not be in memory together.
// WriteAll makes the rows of one batch while it writes the batch before.
func (w *TableWriter[T]) WriteAll(rows iter.Seq[T]) error {
	made, written := make(chan []T), make(chan []T, 2)
	written <- nil
	written <- nil
	go func() {
		defer close(made)
		batch := <-written
		for row := range rows {
			if batch = append(batch, row); len(batch) < writeAllRows {
				continue
			}
			made <- batch
			next, goesOn := <-written
			if !goesOn {
				return
			}
			batch = next[:0]
		}
		made <- batch
	}()
	for batch := range made {
		if err := w.Write(batch); err != nil {
			close(written)
			for range made {
			}
			return err
		}
		written <- batch
	}
	return nil
}

// Close writes the buffered rows and the footer. Close does not close the underlying writer.
func (w *TableWriter[T]) Close() error { return w.w.Close() }

// Read reads the whole table of the run folder dir. For an absent file it returns an error that wraps fs.ErrNotExist.
func (t Table[T]) Read(dir string) ([]T, error) {
	rows, err := t.readFile(filepath.Join(dir, t.File()))
	var se *SchemaError
	if err != nil && !errors.As(err, &se) && !missing(err) {
		return nil, fmt.Errorf("%s: %w", t.File(), err)
	}
	return rows, err
}

// ReadOptional is [Table.Read], but returns no rows and no error for an absent file.
func (t Table[T]) ReadOptional(dir string) ([]T, error) {
	rows, err := t.Read(dir)
	if missing(err) {
		return nil, nil
	}
	return rows, err
}

func (t Table[T]) readFile(path string) (rows []T, err error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return t.Decode(f, st.Size())
}

// Decode reads a table from a file's bytes. For a damaged file Decode returns an error, even if parquet-go's decoders
// panic.
func (t Table[T]) Decode(r io.ReaderAt, size int64) (rows []T, err error) {
	defer func() {
		if p := recover(); p != nil {
			rows, err = nil, fmt.Errorf("damaged Parquet file: %v", p)
		}
	}()
	pf, err := OpenParquet(r, size)
	if err != nil {
		return nil, err
	}
	if err := t.check(pf); err != nil {
		return nil, err
	}
	gr := parquet.NewGenericReader[T](pf)
	defer gr.Close()
	n, err := countRows(pf)
	if err != nil {
		return nil, err
	}
	// The row count in the footer does not determine how much memory is allocated: a row takes a hundred bytes or more,
	// and a damaged file may claim any count.
	for int64(len(rows)) < n {
		if len(rows) == cap(rows) {
			rows = slices.Grow(rows, int(min(readBatchRows, n-int64(len(rows)))))
		}
		k, err := gr.Read(rows[len(rows):int(min(int64(cap(rows)), n))])
		rows = rows[:len(rows)+k]
		if err == io.EOF || err == nil && k == 0 {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("damaged Parquet file: %w", err)
		}
	}
	if int64(len(rows)) != n {
		return nil, fmt.Errorf("damaged Parquet file: %d of %d rows", len(rows), n)
	}
	return rows, nil
}

// readBatchRows is the smallest number of rows by which the slice of a table's rows grows while the table is read.
const readBatchRows = 8 << 10

// countRows returns the number of rows of a file. The footer states the number of rows twice, and both statements must
// agree.
func countRows(pf *parquet.File) (n int64, err error) {
	for i, group := range pf.Metadata().RowGroups {
		if group.NumRows < 0 || group.NumRows > math.MaxInt64-n {
			return 0, fmt.Errorf("damaged Parquet file: row group %d claims %d rows", i, group.NumRows)
		}
		n += group.NumRows
	}
	if n != pf.NumRows() {
		return 0, fmt.Errorf("damaged Parquet file: it claims %d rows, its row groups %d", pf.NumRows(), n)
	}
	return n, nil
}

// footerEnd is the size of the end of a Parquet file, in bytes: the length of its footer, and a magic number.
const footerEnd = 8

// OpenParquet opens a Parquet file with a size in bytes. OpenParquet refuses a file that would cost more memory than a
// file of its size can need. parquet-go allocates a footer of whatever length the file claims, up to 4 GiB.
// parquet-go's LZ4 grows its buffer without bound on other data, and one damaged byte can name LZ4 as a column's codec.
// Each of these two faults would kill the process, and recover cannot prevent it. OpenParquet may panic on a damaged
// file, as parquet-go does.
func OpenParquet(r io.ReaderAt, size int64) (*parquet.File, error) {
	var end [footerEnd]byte
	if size < footerEnd {
		return nil, fmt.Errorf("not a complete Parquet file: it has %d bytes", size)
	}
	if _, err := r.ReadAt(end[:], size-footerEnd); err != nil {
		return nil, fmt.Errorf("not a complete Parquet file: %w", err)
	}
	if footer := int64(binary.LittleEndian.Uint32(end[:])); footer > size-footerEnd {
		return nil, fmt.Errorf("not a complete Parquet file: of %d bytes its footer claims %d", size, footer)
	}
	pf, err := parquet.OpenFile(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a complete Parquet file: %w", err)
	}
	for _, group := range pf.Metadata().RowGroups {
		for i := range group.Columns {
			if c := group.Columns[i].MetaData.Codec; c != format.Zstd && c != format.Uncompressed {
				return nil, fmt.Errorf("damaged Parquet file: a column is compressed with %s, which dpsight does not "+
					"write", c)
			}
		}
	}
	return pf, nil
}

// check refuses a file whose table, version or columns differ from T. Without check, parquet-go would silently
// convert types and fill absent columns with zeros.
func (t Table[T]) check(pf *parquet.File) error {
	got, _ := pf.Lookup(MetadataKey)
	if got != t.Schema() {
		return &SchemaError{File: t.File(), Got: got, Want: t.Schema()}
	}
	have := map[string]parquet.Field{}
	for _, f := range pf.Schema().Fields() {
		have[f.Name()] = f
	}
	for _, want := range parquet.SchemaOf(new(T)).Fields() {
		f, ok := have[want.Name()]
		switch {
		case !ok && want.Optional() && slices.Contains(t.Added, want.Name()):
		case !ok:
			return &SchemaError{File: t.File(), Column: want.Name(), Problem: "is absent"}
		case f.Type().Kind() != want.Type().Kind() || f.Optional() != want.Optional() || f.Repeated():
			return &SchemaError{File: t.File(), Column: want.Name(), Problem: fmt.Sprintf("has type %s, not %s", f,
				want)}
		}
	}
	return nil
}
