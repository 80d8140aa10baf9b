package ingest

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/klauspost/compress/s2"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// An imported run keeps a copy of its file in its spool folder, compressed by S2. zstd would need half the disk space
// but twice the time, and a user waits for an import. Older versions used zstd.
const (
	copySuffix  = ".s2"
	olderSuffix = ".zst"
)

// copyPath returns the path of the copy of a file that a run keeps, with this version's suffix or an older one.
func copyPath(dir, name string) string {
	path := filepath.Join(dir, spool.Dir, name)
	if _, err := os.Stat(path + copySuffix); err != nil {
		if _, err := os.Stat(path + olderSuffix); err == nil {
			return path + olderSuffix
		}
	}
	return path + copySuffix
}

const (
	tapBytes  = 4 << 20 // bytes of the stream in one piece, which is how far S2 looks back
	tapPieces = 4       // pieces that are read ahead, passed on or kept at a time
)

// A tap is a reader that passes a stream on. A tap reads ahead, hashes the stream, and writes a copy of it, while the
// tap's user reads.
type tap struct {
	from    io.Reader
	passed  chan *piece
	keeping chan *piece
	used    chan *piece // pieces to be filled again
	stop    chan struct{}
	failed  error // error of reading, other than the end; set before passed is closed

	now  *piece
	rest []byte // the unread rest of now

	content, copy hash.Hash
	kept          chan error
}

// A piece is a buffer with a part of the stream. A piece is reused when its bytes have been passed on and copied.
type piece struct {
	bytes []byte
	users atomic.Int32
}

// newTap returns a tap of a stream that writes a compressed copy to a path.
func newTap(r io.Reader, path string) *tap {
	t := &tap{from: r, passed: make(chan *piece, tapPieces), keeping: make(chan *piece, tapPieces),
		used: make(chan *piece, tapPieces), stop: make(chan struct{}), content: sha256.New(), copy: sha256.New(),
		kept: make(chan error, 1)}
	for range tapPieces {
		t.used <- new(piece)
	}
	go t.fetch()
	go func() {
		err := schemas.WriteFile(path, t.keep)
		for p := range t.keeping { // no piece needs to be kept any more, and the reader must not wait
			t.release(p)
		}
		t.kept <- err
	}()
	return t
}

// fetch reads the stream to its end, or until the tap is stopped.
func (t *tap) fetch() {
	defer close(t.passed)
	defer close(t.keeping)
	for {
		var p *piece
		select {
		case <-t.stop:
			return
		case p = <-t.used:
		}
		if p.bytes == nil {
			p.bytes = make([]byte, tapBytes)
		}
		n, err := io.ReadFull(t.from, p.bytes[:tapBytes])
		if n > 0 {
			p.bytes = p.bytes[:n]
			p.users.Store(2)
			t.passed <- p
			t.keeping <- p
		}
		if err != nil {
			if err != io.EOF && err != io.ErrUnexpectedEOF {
				t.failed = err
			}
			return
		}
	}
}

func (t *tap) release(p *piece) {
	if p.users.Add(-1) == 0 {
		t.used <- p
	}
}

func (t *tap) keep(w io.Writer) error {
	z := s2.NewWriter(io.MultiWriter(w, t.copy), s2.WriterConcurrency(1), s2.WriterBlockSize(tapBytes))
	for p := range t.keeping {
		t.content.Write(p.bytes)
		err := z.EncodeBuffer(p.bytes)
		t.release(p)
		if err != nil {
			return err
		}
	}
	return z.Close()
}

func (t *tap) Read(p []byte) (int, error) {
	for len(t.rest) == 0 {
		if t.now != nil {
			t.release(t.now)
		}
		if t.now = <-t.passed; t.now == nil {
			if t.failed != nil {
				return 0, t.failed
			}
			return 0, io.EOF
		}
		t.rest = t.now.bytes
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// end waits until the copy has all bytes that were read. To copy the whole stream, the caller must first read it to its
// end.
func (t *tap) end() (digests, error) {
	close(t.stop)
	for p := range t.passed { // fetch does not wait
		t.release(p)
	}
	err := <-t.kept
	return digests{hex.EncodeToString(t.content.Sum(nil)), hex.EncodeToString(t.copy.Sum(nil))}, err
}
