package schemas

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// roundTrip writes a row in which all fields are set and a zero row, and reads both back.
func roundTrip[T any](t *testing.T, tab Table[T]) {
	t.Helper()
	t.Run(tab.Name, func(t *testing.T) {
		var full, zero T
		fill(reflect.ValueOf(&full).Elem())
		dir := t.TempDir()
		want := []T{full, zero, full}
		if err := tab.Write(dir, want); err != nil {
			t.Fatal(err)
		}
		got, err := tab.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read back\n%+v\nwant\n%+v", got, want)
		}
		if err := tab.Write(dir, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := tab.Read(dir); err != nil || len(got) != 0 {
			t.Errorf("empty table: %d rows, %v", len(got), err)
		}
	})
}

func fill(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Pointer {
			f.Set(reflect.New(f.Type().Elem()))
			f = f.Elem()
		}
		switch f.Kind() {
		case reflect.String:
			f.SetString("x" + v.Type().Field(i).Name)
		case reflect.Int32, reflect.Int64:
			f.SetInt(int64(i) + 1)
		case reflect.Uint64:
			f.SetUint(1<<63 + uint64(i))
		case reflect.Bool:
			f.SetBool(true)
		default:
			panic("fill: " + f.Kind().String())
		}
	}
}

func TestTablesRoundTrip(t *testing.T) {
	roundTrip(t, Events)
	roundTrip(t, Marks)
	roundTrip(t, Allocations)
	roundTrip(t, Owners)
	roundTrip(t, Steps)
	roundTrip(t, Phases)
	roundTrip(t, Modules)
	roundTrip(t, Processes)
	roundTrip(t, Checkpoints)
	roundTrip(t, Segments)
	roundTrip(t, Stacks)
	roundTrip(t, Samples)
	roundTrip(t, HostSamples)
}

// If the values of a column are equal or repeat, the column takes almost no space in a table. The list of null values
// and the bounds of pages take almost no space either.
func TestTablesAreSmall(t *testing.T) {
	const n = 300_000 // more rows than a row group holds
	marks := make([]Mark, n)
	for i := range marks {
		marks[i] = Mark{RunID: "a run's name of usual length-0123ab", K: int64(i + 1), Kind: "tag"}
		if i%3 == 0 {
			marks[i].Address, marks[i].Label, marks[i].Module = uint64(i%900)<<20, "blocks.3.attention.weight",
				int64(i%90)
		}
	}
	var large, short bytes.Buffer
	if err := Marks.Encode(&large, marks); err != nil {
		t.Fatal(err)
	}
	if err := HostSamples.Encode(&short, []HostSample{{RunID: "a run's name of usual length-0123ab", TimeNS: 1 << 60,
		RSSBytes: 1 << 30, CPUNS: 1 << 30, Processes: 1}}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes for %d marks, %d for a sample", large.Len(), n, short.Len())
	if large.Len() > n/8 { // one column's list of null values would take a bit for each row
		t.Errorf("%d marks that repeat take %d bytes", n, large.Len())
	}
	if short.Len() > 1900 {
		t.Errorf("a table of one row takes %d bytes", short.Len())
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Steps.File())
	var good bytes.Buffer
	if err := Steps.Encode(&good, []Step{{RunID: "r", Step: 1}, {RunID: "r", Step: 2}}); err != nil {
		t.Fatal(err)
	}
	encode := func(schema string, rows any) []byte {
		var b bytes.Buffer
		w := parquet.NewWriter(&b, parquet.SchemaOf(rows), parquet.KeyValueMetadata(MetadataKey, schema))
		if err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	type narrow struct {
		RunID string `parquet:"run_id"`
	}
	type retyped struct {
		RunID string `parquet:"run_id"`
		Rank  string `parquet:"rank"`
	}
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"empty", "not a complete Parquet file", nil},
		{"text", "not a complete Parquet file", []byte("hello, world, this is no table")},
		{"truncated", "not a complete Parquet file", good.Bytes()[:good.Len()-9]},
		{"another table", "schema phases/1 is not one", encode("phases/1", &narrow{"r"})},
		{"a newer version", "schema steps/99 is not one", encode("steps/99", &narrow{"r"})},
		{"foreign", "not a dpsight file", encode("", &narrow{"r"})},
		{"absent column", "column rank is absent", encode("steps/1", &narrow{"r"})},
		{"changed type", "column rank has type", encode("steps/1", &retyped{"r", "0"})},
	} {
		if err := os.WriteFile(path, c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Steps.Read(dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "steps.parquet") {
			t.Errorf("%s: error %v, want one with steps.parquet and %q", c.name, err, c.want)
		}
	}
	if _, err := Phases.Read(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

// The footer of a damaged file may claim any number of rows. Reading does not allocate memory for the claimed number.
func TestReadRefusesClaimedRows(t *testing.T) {
	var good bytes.Buffer
	if err := Steps.Encode(&good, []Step{{RunID: "r", Step: 1}, {RunID: "r", Step: 2}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name        string
		rows, group int64
		want        string
	}{
		{"as it was", 2, 2, ""},
		{"the file claims more", 1 << 20, 2, "claims 1048576 rows, its row groups 2"},
		{"both claim more", 1 << 22, 1 << 22, "2 of 4194304 rows"},
		{"a row group claims less than nothing", 2, -1, "-1"},
		{"the file claims less", 1, 2, "claims 1 rows, its row groups 2"},
	} {
		data := withFooter(t, good.Bytes(), func(m *format.FileMetaData) {
			m.NumRows, m.RowGroups[0].NumRows = c.rows, c.group
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rows, err := Steps.Decode(bytes.NewReader(data), int64(len(data)))
		runtime.ReadMemStats(&after)
		switch {
		case c.want == "" && (err != nil || len(rows) != 2):
			t.Errorf("%s: %d rows, %v", c.name, len(rows), err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
		// The limit leaves room for parquet-go's own buffers. Memory for 1<<22 rows would exceed the limit.
		if n := after.TotalAlloc - before.TotalAlloc; n > 256<<20 {
			t.Errorf("%s: %d bytes were allocated for two rows", c.name, n)
		}
	}
}

// The end of a damaged file may claim a footer that is longer than the file. Reading does not allocate memory for the
// claimed length.
func TestReadRefusesClaimedFooter(t *testing.T) {
	var b bytes.Buffer
	if err := Steps.Encode(&b, []Step{{RunID: "r", Step: 1}}); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	binary.LittleEndian.PutUint32(data[len(data)-footerEnd:], math.MaxUint32)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Steps.Decode(bytes.NewReader(data), int64(len(data)))
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "its footer claims 4294967295") {
		t.Errorf("error %v, want one of the claim", err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// withFooter returns a copy of a Parquet file in which edit has changed the footer.
func withFooter(t *testing.T, data []byte, edit func(*format.FileMetaData)) []byte {
	t.Helper()
	end := len(data) - 8
	start := end - int(binary.LittleEndian.Uint32(data[end:]))
	var m format.FileMetaData
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), data[start:end], &m); err != nil {
		t.Fatal(err)
	}
	edit(&m)
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &m)
	if err != nil {
		t.Fatal(err)
	}
	out := append(bytes.Clone(data[:start]), footer...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(footer)))
	return append(out, "PAR1"...)
}

// If any bytes of a table are damaged, reading returns rows or an error, and does not panic.
func FuzzDecode(f *testing.F) {
	var b bytes.Buffer
	if err := Steps.Encode(&b, []Step{{RunID: "r", Step: 1}, {RunID: "s", Step: 2, GPUNS: 5}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		Steps.Decode(bytes.NewReader(data), int64(len(data)))
	})
}

func TestWriteFileLeavesNoHalf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := WriteDocument(path, make(chan int)); err == nil {
		t.Fatal("a channel was written as JSON")
	}
	left, _ := filepath.Glob(filepath.Dir(path) + "/*")
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// If a column is newer than a file, it is null in the file's rows.
func TestAddedColumns(t *testing.T) {
	type before struct {
		Step int64 `parquet:"step"`
	}
	type now struct {
		Step  int64 `parquet:"step"`
		Added bool  `parquet:"added,optional"`
	}
	var b bytes.Buffer
	if err := (Table[before]{Name: "t", Version: 1}).Encode(&b, []before{{3}, {4}}); err != nil {
		t.Fatal(err)
	}
	rows, err := Table[now]{Name: "t", Version: 1, Added: []string{"added"}}.Decode(bytes.NewReader(b.Bytes()),
		int64(b.Len()))
	if err != nil || !slices.Equal(rows, []now{{Step: 3}, {Step: 4}}) {
		t.Errorf("%+v, %v", rows, err)
	}
	if _, err := (Table[now]{Name: "t", Version: 1}).Decode(bytes.NewReader(b.Bytes()), int64(b.Len())); err == nil ||
		!strings.Contains(err.Error(), "column added is absent") {
		t.Errorf("a column that was always there: %v", err)
	}
}
