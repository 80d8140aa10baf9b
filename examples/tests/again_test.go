package examples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
)

// For every run of examples/headline, ingest makes the same tables and the same report from the journal again. Tables,
// columns and keys that are newer than the store do not count.
func TestIngestAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("it derives every table of a store: a minute under the race detector, which has ingest's own tests")
	}
	for e := range runsOf(t, headline) {
		from, version := e.Dir, e.in.Report.Version // so that subtests do not hold the run's tables
		t.Run(e.ID, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), filepath.Base(from))
			if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			for _, name := range ingest.DerivedFiles() {
				if err := os.Remove(filepath.Join(dir, name)); err != nil && !newerTable(name) {
					t.Fatal(err)
				}
			}
			if _, err := ingest.Run(dir, ingest.Options{Version: version}); err != nil {
				t.Fatal(err)
			}
			reservedAsDerived(t, from, dir)
			for _, name := range ingest.DerivedFiles() {
				if newerTable(name) {
					continue
				}
				want, err := os.ReadFile(filepath.Join(from, name))
				if err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				if name == schemas.IngestReportFile {
					got, want = withoutNewKeys(t, got), withoutNewKeys(t, want)
				}
				if !bytes.Equal(got, want) && !(filepath.Ext(name) == ".parquet" && sameRows(t, got, want)) {
					t.Errorf("%s came out differently: %d bytes, recorded %d", name, len(got), len(want))
				}
			}
		})
	}
}

// reservedAsDerived checks the table of reserved levels that ingest writes now. The recorded run is older than this
// table, so the levels are compared with those that loading derives from the run's events.
func reservedAsDerived(t *testing.T, recorded, ingested string) {
	t.Helper()
	written, err := schemas.Reserved.Read(ingested)
	if err != nil {
		t.Fatal(err)
	}
	events, err := schemas.Events.Read(recorded)
	if err != nil {
		t.Fatal(err)
	}
	report, err := schemas.ReadIngestReport(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) > 0 && len(written) == 0 {
		t.Error("no level of reserved was written")
	}
	if !slices.Equal(written, schemas.DeriveReserved(events, report.Devices)) {
		t.Error("the levels of reserved differ from those derived from the events")
	}
}

// noLongerWritten is a column of allocations.parquet that recorded stores still have.
const noLongerWritten = "category_at_peak"

// newerTable reports whether a table is newer than the recorded stores.
func newerTable(name string) bool {
	return name == schemas.Reserved.File() || name == schemas.Lines.File() || name == schemas.Holders.File() ||
		name == schemas.HostMarks.File()
}

// newColumns are columns of allocations.parquet that are newer than the recorded stores.
var newColumns = []string{"open_bytes", "line_id"}

// zerosLeftOut are columns of steps.parquet and phases.parquet in which the recorded stores have null instead of 0.
var zerosLeftOut = []string{"allocated_begin_bytes", "allocated_end_bytes", "reserved_begin_bytes",
	"reserved_end_bytes", "peak_bytes"}

// withoutNewKeys returns an ingest report without its schema, and without the digests, which are newer than the
// recorded stores.
func withoutNewKeys(t *testing.T, document []byte) []byte {
	t.Helper()
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(document, &keys); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"schema", "tables", "digest"} {
		delete(keys, key)
	}
	out, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sameRows compares the values of two tables column by column, since builds for different processors may compress
// equal tables differently.
func sameRows(t *testing.T, got, want []byte) bool {
	t.Helper()
	recorded := columnsOf(t, want)
	delete(recorded, noLongerWritten)
	derived := columnsOf(t, got)
	for _, column := range newColumns {
		for _, v := range derived[column] { // these recordings have no blocks of open size and no lines
			if v.Int64() != 0 {
				t.Errorf("%s is %s", column, v)
			}
		}
		delete(derived, column)
	}
	for _, column := range zerosLeftOut {
		for i, v := range recorded[column] {
			if d := derived[column]; i < len(d) && v.IsNull() && !d[i].IsNull() && d[i].Int64() == 0 {
				recorded[column][i] = d[i]
			}
		}
	}
	return maps.EqualFunc(derived, recorded, func(a, b []parquet.Value) bool {
		return slices.EqualFunc(a, b, func(a, b parquet.Value) bool { return parquet.Equal(a, b) })
	})
}

// columnsOf returns the values of a table's columns by name. No table has nested columns.
func columnsOf(t *testing.T, table []byte) map[string][]parquet.Value {
	t.Helper()
	r := parquet.NewReader(bytes.NewReader(table))
	defer r.Close()
	fields := r.Schema().Fields()
	out := map[string][]parquet.Value{}
	batch := make([]parquet.Row, 1024)
	for {
		n, err := r.ReadRows(batch)
		for _, row := range batch[:n] {
			for _, v := range row {
				name := fields[v.Column()].Name()
				out[name] = append(out[name], v.Clone())
			}
		}
		if errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
