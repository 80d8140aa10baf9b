package torchsnap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/ingest/pickle"
	"github.com/klauspost/compress/zstd"
)

// Options of reading; the zero value is right for a file of its own.
type Options struct {
	Limits pickle.Limits
	// Stacks, if set, is where stacks are interned, so that the ids of several snapshots agree: the chunks of a
	// journal.
	Stacks *Stacks
}

// ErrNotSnapshot is wrapped by the errors about a pickle that is sound but holds no memory snapshot.
var ErrNotSnapshot = errors.New("not a torch memory snapshot")

var magics = []struct {
	magic string
	name  string
}{
	{"\x1f\x8b", "gzip"},
	{"\x28\xb5\x2f\xfd", "zstd"},
	{"\xfd7zXZ\x00", "xz"},
	{"PK\x03\x04", "zip"},
}

func compression(head []byte) string {
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.name
		}
	}
	return ""
}

// ReadFile reads the snapshot in a file: plain, gzip or zstd. Errors begin with the file's name.
func ReadFile(path string, o Options) (*Snapshot, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := Read(f, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return s, nil
}

// Read reads one snapshot: plain, gzip or zstd, which it tells by their first bytes. It may read beyond the snapshot's
// end.
func Read(r io.Reader, o Options) (*Snapshot, error) {
	head := make([]byte, 6)
	n, err := io.ReadFull(r, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	r = io.MultiReader(bytes.NewReader(head[:n]), r)
	switch name := compression(head[:n]); name {
	case "gzip":
		z, err := gzip.NewReader(bufio.NewReaderSize(r, 64<<10))
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		r = z
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		defer z.Close()
		r = z
	case "xz", "zip":
		return nil, fmt.Errorf("a %s file, which is not read: unpack it first", name)
	}
	return read(pickle.NewDecoder(r, o.Limits), o)
}

// ReadBytes reads one snapshot from an uncompressed pickle in memory, without a copy: the way to read the chunks of a
// journal.
func ReadBytes(p []byte, o Options) (*Snapshot, error) {
	return read(pickle.NewBytesDecoder(p, o.Limits), o)
}

func read(d *pickle.Decoder, o Options) (*Snapshot, error) {
	b := newBuilder(d, o.Stacks)
	root, err := d.Decode(b)
	if err != nil {
		return nil, err
	}
	return b.snapshot(root)
}
