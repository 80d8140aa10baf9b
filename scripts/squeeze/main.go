// Squeeze makes recorded runs smaller in stores that are to be published, without losing a byte:
//
//	go run ./scripts/squeeze STORE...
//
// Squeeze unpacks sealed journals and seals them again with the present version of dpsight. Squeeze compresses the
// journals with zstd's own encoder (the command zstd) at level 19. The result is a third smaller than with dpsight's
// encoder, and takes a hundred times as long. Squeeze also writes the collector's tables (samples, host) again with the
// present version. A file that would not become smaller stays unchanged. "dpsight ingest --again" derives the other
// tables.
package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"

	"github.com/klauspost/compress/zstd"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: squeeze STORE...")
		os.Exit(2)
	}
	for _, store := range os.Args[1:] {
		before, after, err := squeeze(store, command)
		if err != nil {
			fmt.Fprintln(os.Stderr, "squeeze:", err)
			os.Exit(1)
		}
		fmt.Printf("%s: %d bytes, were %d\n", store, after, before)
	}
}

// A compressor turns bytes into a zstd stream.
type compressor func(plain []byte) ([]byte, error)

// command compresses with zstd's own encoder, since the Go module has no level as strong as 19.
func command(plain []byte) ([]byte, error) {
	hard := exec.Command("zstd", "-19", "-qc")
	hard.Stdin, hard.Stderr = bytes.NewReader(plain), os.Stderr
	return hard.Output()
}

// squeeze rewrites the files of a store. squeeze returns the size of these files in bytes, before and after.
func squeeze(store string, compress compressor) (before, after int64, err error) {
	runs, err := filepath.Glob(filepath.Join(store, "*", schemas.ManifestFile))
	if err != nil {
		return 0, 0, err
	}
	if len(runs) == 0 {
		return 0, 0, fmt.Errorf("no run in %s", store)
	}
	for _, kind := range []struct {
		files string
		again func(path string) ([]byte, error)
	}{
		{filepath.Join("*", spool.Dir, "*.dps.zst"), func(path string) ([]byte, error) {
			return journal(path, compress)
		}},
		{filepath.Join("*", schemas.Samples.File()), func(path string) ([]byte, error) {
			return table(schemas.Samples, path)
		}},
		{filepath.Join("*", schemas.HostSamples.File()), func(path string) ([]byte, error) {
			return table(schemas.HostSamples, path)
		}},
	} {
		paths, err := filepath.Glob(filepath.Join(store, kind.files))
		if err != nil {
			return 0, 0, err
		}
		for _, path := range paths {
			st, err := os.Stat(path)
			if err != nil {
				return 0, 0, err
			}
			if err := whole(path); err != nil {
				return 0, 0, err
			}
			b, err := kind.again(path)
			if err != nil {
				return 0, 0, fmt.Errorf("%s: %w", path, err)
			}
			size := min(st.Size(), int64(len(b)))
			before, after = before+st.Size(), after+size
			if size == st.Size() {
				continue
			}
			if err := schemas.WriteFile(path, func(w io.Writer) error {
				_, err := w.Write(b)
				return err
			}); err != nil {
				return 0, 0, err
			}
		}
	}
	for _, path := range runs {
		if err := digest(filepath.Dir(path)); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", path, err)
		}
	}
	return before, after, nil
}

// digest updates the digests in a run's manifest after the run's sampled tables have changed. If the manifest has no
// digests, digest does nothing.
func digest(dir string) error {
	m, err := schemas.ReadManifest(dir)
	if err != nil || m.Tables == nil {
		return err
	}
	digests, err := schemas.TableDigests(dir, schemas.SampledTables()...)
	if err != nil || maps.Equal(digests, m.Tables) {
		return err
	}
	m.Tables = digests
	return schemas.WriteManifest(dir, m)
}

// whole returns an error for a damaged table. Without whole, squeezing would give damaged content a valid digest.
func whole(path string) error {
	dir := filepath.Dir(path)
	if filepath.Base(dir) == spool.Dir { // a journal contains its own digest
		return nil
	}
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		return err
	}
	return schemas.CheckTables(dir, m.Tables, filepath.Base(path))
}

// journal returns the bytes of a sealed journal, sealed and compressed again.
func journal(path string, compress compressor) ([]byte, error) {
	marks, frames, err := spool.Unpack(path)
	if err != nil {
		return nil, err
	}
	var sealed bytes.Buffer
	if err := spool.Pack(&sealed, marks, frames); err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(&sealed)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	plain, err := io.ReadAll(z)
	if err != nil {
		return nil, err
	}
	out, err := compress(plain)
	if err != nil {
		return nil, err
	}
	return out, check(out, marks, frames)
}

// check reads a newly sealed journal and compares it with the original marks and frames.
func check(sealed, marks, frames []byte) error {
	f, err := os.CreateTemp("", "squeeze")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(sealed)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	m, fr, err := spool.Unpack(f.Name())
	if err == nil && !(bytes.Equal(m, marks) && bytes.Equal(fr, frames)) {
		err = fmt.Errorf("the journal does not come back")
	}
	return err
}

// table returns the bytes of a table, written again.
func table[T any](t schemas.Table[T], path string) ([]byte, error) {
	rows, err := t.Read(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Encode(&out, rows); err != nil {
		return nil, err
	}
	again, err := t.Decode(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err == nil && !reflect.DeepEqual(again, rows) {
		err = fmt.Errorf("the rows do not come back")
	}
	return out.Bytes(), err
}
