package pickle

import (
	"bytes"
	"errors"
	"io"
)

var (
	errShort   = errors.New("input ends")
	errTooLong = errors.New("input too long")
)

const windowBytes = 256 << 10

// A window is a buffered input whose bytes are read in place, since calls of package bufio for each opcode would halve
// the speed.
type window struct {
	r    io.Reader // nil: buf has the whole input
	buf  []byte
	pos  int
	base int64 // offset of buf[0]
	max  int64 // largest number of bytes to read
	long []byte
}

func (w *window) offset() int64 { return w.base + int64(w.pos) }

func (w *window) left() int { return len(w.buf) - w.pos }

// fill makes n bytes available, n at most windowBytes.
func (w *window) fill(n int) error {
	if w.left() >= n {
		return nil
	}
	if w.r == nil {
		return errShort
	}
	if cap(w.buf) == 0 {
		w.buf = make([]byte, 0, windowBytes)
	}
	if w.offset() >= w.max {
		return errTooLong
	}
	rest := copy(w.buf[:cap(w.buf)], w.buf[w.pos:])
	w.base += int64(w.pos)
	w.buf, w.pos = w.buf[:rest], 0
	for len(w.buf) < n {
		m, err := io.ReadAtLeast(w.r, w.buf[len(w.buf):cap(w.buf)], n-len(w.buf))
		w.buf = w.buf[:len(w.buf)+m]
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			if len(w.buf) < n {
				return errShort
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take returns the next n bytes, which are valid until the next call. take allocates memory only as bytes arrive, since
// a damaged file may claim any length.
func (w *window) take(n int) ([]byte, error) {
	if n <= w.left() {
		b := w.buf[w.pos : w.pos+n]
		w.pos += n
		return b, nil
	}
	if w.r == nil {
		return nil, errShort
	}
	if n <= windowBytes {
		if err := w.fill(n); err != nil {
			return nil, err
		}
		b := w.buf[w.pos : w.pos+n]
		w.pos += n
		return b, nil
	}
	w.long = w.long[:0]
	for len(w.long) < n {
		if w.left() == 0 {
			if err := w.fill(1); err != nil {
				return nil, err
			}
		}
		m := min(n-len(w.long), w.left())
		w.long = append(w.long, w.buf[w.pos:w.pos+m]...)
		w.pos += m
	}
	b := w.long
	if cap(w.long) > 4*windowBytes {
		w.long = nil
	}
	return b, nil
}

// line returns the bytes up to the next newline, without the newline. tooLong is true if there are more than limit
// bytes. line returns errShort if the input has no newline.
func (w *window) line(limit int64) (line []byte, tooLong bool, err error) {
	w.long = w.long[:0]
	for {
		if w.left() == 0 {
			if err := w.fill(1); err != nil {
				return nil, false, err
			}
		}
		if i := bytes.IndexByte(w.buf[w.pos:], '\n'); i >= 0 {
			part := w.buf[w.pos : w.pos+i]
			w.pos += i + 1
			if len(w.long) > 0 {
				w.long = append(w.long, part...)
				part = w.long
			}
			return part, int64(len(part)) > limit, nil
		}
		w.long = append(w.long, w.buf[w.pos:]...)
		w.pos = len(w.buf)
		if int64(len(w.long)) > limit {
			return nil, true, nil
		}
	}
}
