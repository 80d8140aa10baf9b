package examples_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/dpsight/dpsight/ingest"
)

// Everything can be derived again from the journals, with the same result: every table of every run.
func TestIngestAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("it derives every table of a store: a minute under the race detector, which has ingest's own tests")
	}
	for e := range runsOf(t, headline) {
		from, version := e.Dir, e.in.Report.Version // and not the run's tables, for as long as others are compared
		t.Run(e.ID, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), filepath.Base(from))
			if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			for _, name := range ingest.DerivedFiles() {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := ingest.Run(dir, ingest.Options{Version: version}); err != nil {
				t.Fatal(err)
			}
			for _, name := range ingest.DerivedFiles() {
				want, err := os.ReadFile(filepath.Join(from, name))
				if err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) && !(filepath.Ext(name) == ".parquet" && sameRows(t, got, want)) {
					t.Errorf("%s came out differently: %d bytes, recorded %d", name, len(got), len(want))
				}
			}
		})
	}
}

// sameRows compares tables that were compressed differently, as builds for other processors may do it.
func sameRows(t *testing.T, a, b []byte) bool {
	t.Helper()
	return slices.EqualFunc(rowsOf(t, a), rowsOf(t, b), func(a, b parquet.Row) bool { return a.Equal(b) })
}

func rowsOf(t *testing.T, table []byte) (out []parquet.Row) {
	t.Helper()
	r := parquet.NewReader(bytes.NewReader(table))
	defer r.Close()
	batch := make([]parquet.Row, 1024)
	for {
		n, err := r.ReadRows(batch)
		for _, row := range batch[:n] {
			out = append(out, row.Clone())
		}
		if errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
