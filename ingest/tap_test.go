package ingest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/s2"
)

// A tap copies a stream while a user reads it. A tap ends without an error whether the user reads all of the stream, a
// part of it, or nothing.
func TestTap(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), tapBytes/4) // four times as long as the tap's buffer
	sum := sha256.Sum256(data)
	broken := errors.New("the disk is gone")
	breaks := io.MultiReader(bytes.NewReader(data[:tapBytes+7]), iotest.ErrReader(broken))
	for name, c := range map[string]struct {
		from io.Reader
		take int64
		err  error
	}{
		"whole":       {bytes.NewReader(data), int64(len(data)), nil},
		"a part":      {bytes.NewReader(data), tapBytes + 5, nil},
		"nothing":     {bytes.NewReader(data), 0, nil},
		"empty":       {bytes.NewReader(nil), 0, nil},
		"broken":      {breaks, int64(len(data)), broken},
		"one by one":  {iotest.OneByteReader(bytes.NewReader(data[:999])), 999, nil},
		"short reads": {iotest.HalfReader(bytes.NewReader(data)), int64(len(data)), nil},
	} {
		path := filepath.Join(t.TempDir(), "copy")
		tap := newTap(c.from, path)
		var got bytes.Buffer
		_, err := io.CopyN(&got, tap, c.take)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
		digests, err := tap.end()
		if err != nil || !bytes.Equal(got.Bytes(), data[:got.Len()]) {
			t.Errorf("%s: %d bytes, %v", name, got.Len(), err)
		}
		if name != "whole" && name != "short reads" {
			continue
		}
		if digests.content != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: the digest is %s", name, digests.content)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if kept, err := io.ReadAll(s2.NewReader(f)); err != nil || !bytes.Equal(kept, data) {
			t.Errorf("%s: the copy has %d bytes, %v", name, len(kept), err)
		}
		f.Close()
	}
	// If the tap cannot write its copy, the user can still read the stream.
	tap := newTap(bytes.NewReader(data), filepath.Join(t.TempDir(), "no such folder", "copy"))
	if n, err := io.Copy(io.Discard, tap); err != nil || n != int64(len(data)) {
		t.Error(n, err)
	}
	if _, err := tap.end(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
