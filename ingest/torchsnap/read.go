package torchsnap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dpsight/dpsight/ingest/packed"
	"github.com/dpsight/dpsight/ingest/pickle"
	"github.com/dpsight/dpsight/schemas"
)

// Options are the options of reading a snapshot. The zero value is right for a single file.
type Options struct {
	Limits pickle.Limits
	// Stacks, if set, is the table in which stacks are interned. The chunks of a journal share one, so that their stack
	// ids agree.
	Stacks *Stacks
	// Size is the number of bytes to read; 0 = unknown. Size sets the initial capacity of the columns, which otherwise
	// grow by doubling.
	Size int64
}

// ErrNotSnapshot is wrapped by the errors about a valid pickle that is not a memory snapshot.
var ErrNotSnapshot = errors.New("not a torch memory snapshot")

// ReadFile reads the snapshot in a file, packed or not. Errors begin with the file's name.
func ReadFile(path string, o Options) (*Snapshot, error) {
	f, err := schemas.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := readOnly(f, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return s, nil
}

func readOnly(f *os.File, o Options) (*Snapshot, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	entries, err := packed.List(f, st.Size(), f.Name())
	if err != nil {
		return nil, err
	}
	if len(entries) != 1 {
		return nil, fmt.Errorf("%w: an archive of %d files", ErrNotSnapshot, len(entries))
	}
	r, err := entries[0].Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return Read(r, o)
}

// Read reads one snapshot from an uncompressed pickle. Read may read beyond the snapshot's end.
func Read(r io.Reader, o Options) (*Snapshot, error) { return read(pickle.NewDecoder(r, o.Limits), o) }

// ReadBytes reads one snapshot from an uncompressed pickle in memory, without a copy. ReadBytes is used for the chunks
// of a journal.
func ReadBytes(p []byte, o Options) (*Snapshot, error) {
	return read(pickle.NewBytesDecoder(p, o.Limits), o)
}

func read(d *pickle.Decoder, o Options) (*Snapshot, error) {
	d.Expect(o.Size)
	b := newBuilder(d, o.Stacks)
	root, err := d.Decode(b)
	if err != nil {
		return nil, err
	}
	return b.snapshot(root)
}
