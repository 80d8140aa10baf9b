package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// A squeezed store is smaller and has the same content, to the byte and to the row. Squeezing the store again changes
// nothing. In this test, the Go module's encoder replaces the command zstd, which not every machine has.
func TestSqueeze(t *testing.T) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	t.Run("library", func(t *testing.T) {
		testSqueeze(t, func(plain []byte) ([]byte, error) { return z.EncodeAll(plain, nil), nil })
	})
	t.Run("command", func(t *testing.T) {
		if _, err := exec.LookPath("zstd"); err != nil {
			t.Skip(err)
		}
		testSqueeze(t, command)
	})
}

func testSqueeze(t *testing.T, compress compressor) {
	store := t.TempDir()
	dir := filepath.Join(store, "run")
	if err := os.MkdirAll(filepath.Join(dir, spool.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	// an older version of dpsight sealed this journal
	b, err := os.ReadFile("../../ingest/testdata/journals/ghost.dps.zst")
	if err != nil {
		t.Fatal(err)
	}
	sealed, table := filepath.Join(dir, spool.Dir, spool.SealedName(0)), filepath.Join(dir, schemas.Samples.File())
	marks, frames := write(t, sealed, b)
	var samples []schemas.Sample
	for i := range int64(500) {
		samples = append(samples, schemas.Sample{RunID: "run", TimeNS: i * 10_000_000, UsedBytes: i << 20,
			PowerMW: new(100 + i)})
	}
	var plain bytes.Buffer
	w := parquet.NewGenericWriter[schemas.Sample](&plain, parquet.KeyValueMetadata(schemas.MetadataKey,
		schemas.Samples.Schema()))
	if _, err := w.Write(samples); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(table, plain.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := squeeze(store, compress); err == nil { // the folder has no runs, as if its name were mistyped
		t.Error("a store without runs is squeezed")
	}
	if err := schemas.WriteManifest(dir, &schemas.Manifest{RunID: "run", Source: schemas.Measured,
		Status: schemas.StatusOK, Tables: digests(t, dir)}); err != nil {
		t.Fatal(err)
	}
	before, after, err := squeeze(store, compress)
	if err != nil || before != int64(len(b)+plain.Len()) || after > before*4/5 {
		t.Fatalf("%d bytes, were %d, %v", after, before, err)
	}
	n, f, err := spool.Unpack(sealed)
	if err != nil || !bytes.Equal(n, marks) || !bytes.Equal(f, frames) {
		t.Errorf("the journal does not come back, %v", err)
	}
	m, err := schemas.ReadManifest(dir)
	if err != nil || !maps.Equal(m.Tables, digests(t, dir)) {
		t.Errorf("the manifest has other digests, %v", err)
	}
	if rows, err := schemas.Samples.Read(dir); err != nil || !reflect.DeepEqual(rows, samples) {
		t.Errorf("the samples do not come back, %v", err)
	}
	if was, is, err := squeeze(store, compress); err != nil || was != after || is != after {
		t.Errorf("squeezed again: %d bytes, were %d, %v; squeezed first %d", is, was, err, after)
	}
}

func digests(t *testing.T, dir string) map[string]string {
	t.Helper()
	d, err := schemas.TableDigests(dir, schemas.SampledTables()...)
	if err != nil || len(d) == 0 {
		t.Fatal(d, err)
	}
	return d
}

func write(t *testing.T, path string, sealed []byte) (marks, frames []byte) {
	t.Helper()
	if err := os.WriteFile(path, sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	marks, frames, err := spool.Unpack(path)
	if err != nil {
		t.Fatal(err)
	}
	return marks, frames
}
