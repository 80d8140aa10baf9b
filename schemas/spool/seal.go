package spool

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A trailer is the seal at the end of a sealed journal: a summary of its two files at the time of sealing. A frame's
// own checksum shows that the frame is whole, but not that later frames exist. Without the trailer, a damaged frame
// looks like the torn tail of a killed process, and everything after the damage is lost silently. The collector makes
// the trailer after the process has ended, so it costs the experiment nothing.
//
//	marks u64 | frames u64 | last k u64 | SHA-256 of the marks | SHA-256 of the frames
type trailer struct {
	marks, frames uint64 // number of whole marks and frames
	last          uint64 // k of the last mark
	digests       [2][sha256.Size]byte
}

const (
	trailerSize = 3*8 + 2*sha256.Size
	// flagSeal is set in the first reserved byte of the header if a seal follows the parts. The seal needs no new
	// version: versions say how the parts are split, and older readers stop after the last part.
	flagSeal = 1
)

func trailerOf(marks, frames []byte) trailer {
	s := trailer{digests: [2][sha256.Size]byte{sha256.Sum256(marks), sha256.Sum256(frames)}}
	whole, _ := ScanFrames(frames) // the frames before an incomplete last frame
	s.frames = uint64(len(whole))
	if _, all, _ := ScanMarks(marks); len(all) > 0 {
		s.marks, s.last = uint64(len(all)), uint64(all[len(all)-1].K)
	}
	return s
}

func (s trailer) bytes() []byte {
	b := binary.LittleEndian.AppendUint64(nil, s.marks)
	b = binary.LittleEndian.AppendUint64(b, s.frames)
	b = binary.LittleEndian.AppendUint64(b, s.last)
	return append(append(b, s.digests[0][:]...), s.digests[1][:]...)
}

// verify compares unpacked files with the trailer of their sealed journal.
func verify(sealed, marks, frames []byte) error {
	got := trailerOf(marks, frames)
	if bytes.Equal(got.bytes(), sealed) {
		return nil
	}
	said := func(i int) uint64 { return binary.LittleEndian.Uint64(sealed[8*i:]) }
	if got.marks != said(0) || got.frames != said(1) || got.last != said(2) {
		return fmt.Errorf("it has %d marks up to %d and %d frames, and was sealed with %d up to %d and %d", got.marks,
			got.last, got.frames, said(0), said(2), said(1))
	}
	return errors.New("its digest is not the one that it was sealed with")
}

// atEnd reads to the end of a stream, and returns an error if bytes remain. Only at the end does the decoder compare
// zstd's checksum of all bytes, which journals without a seal have, too.
func atEnd(z io.Reader) error {
	switch n, err := io.Copy(io.Discard, io.LimitReader(z, 1)); {
	case err != nil:
		return err
	case n > 0:
		return errors.New("there is more after its end")
	}
	return nil
}

// A DamagedError says that a sealed journal's content is not what was sealed.
type DamagedError struct{ Err error }

func (e *DamagedError) Error() string { return "the journal is damaged: " + e.Err.Error() }

func (e *DamagedError) Unwrap() error { return e.Err }

// Hint returns advice on what to do about a damaged journal.
func (e *DamagedError) Hint() string {
	return "bring the file back from a copy; tables that were made from it stay as they are"
}
