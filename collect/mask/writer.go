package mask

import (
	"bytes"
	"io"
)

// A Writer masks the collected values in the text written through it, even if a secret is split over several writes. A
// Writer holds back only the end of the last write, if that may begin a secret, so that a prompt without a line end
// appears at once.
type Writer struct {
	w       io.Writer
	secrets *Secrets
	pending []byte
	out     []byte
}

// NewWriter returns a Writer to w, for text that is shown but not stored.
func (s *Secrets) NewWriter(w io.Writer) *Writer { return &Writer{w: w, secrets: s} }

// Write reports all of b as written, unless the underlying writer fails.
func (w *Writer) Write(b []byte) (int, error) {
	if len(w.secrets.values) == 0 {
		return w.w.Write(b)
	}
	w.pending = append(w.pending, b...)
	var rest []byte
	w.out, rest = w.secrets.replace(w.out[:0], w.pending, false, nil)
	w.pending = append(w.pending[:0], rest...)
	if _, err := w.w.Write(w.out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush writes what was held back. Call it after the last write.
func (w *Writer) Flush() error {
	out, _ := w.secrets.replace(w.out[:0], w.pending, true, nil)
	w.pending = w.pending[:0]
	_, err := w.w.Write(out)
	return err
}

// maxLine is the most bytes of an unfinished line that are held back.
const maxLine = 256 << 10

// A LineWriter masks all secrets in the text written through it, for text that is stored. A LineWriter holds back each
// line until the line ends or exceeds maxLine, so that it sees a secret with a recognisable form, or a secret beside a
// name, as a whole.
type LineWriter struct {
	w      io.Writer
	known  *Writer
	line   []byte
	within bool // whether the text is within a private key
}

// NewLineWriter returns a LineWriter to w.
func (s *Secrets) NewLineWriter(w io.Writer) *LineWriter {
	l := &LineWriter{w: w}
	l.known = s.NewWriter(writerFunc(l.lines))
	return l
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Write reports all of b as written, unless the underlying writer fails.
func (l *LineWriter) Write(b []byte) (int, error) { return l.known.Write(b) }

// lines receives text in which the collected values are already masked.
func (l *LineWriter) lines(b []byte) (int, error) {
	l.line = append(l.line, b...)
	end := bytes.LastIndexAny(l.line, "\r\n") + 1
	if end == 0 && len(l.line) > maxLine {
		end = len(l.line)
	}
	if end == 0 {
		return len(b), nil
	}
	err := l.write(l.line[:end])
	l.line = append(l.line[:0], l.line[end:]...)
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (l *LineWriter) write(b []byte) error {
	var out []byte
	for len(b) > 0 {
		n := bytes.IndexAny(b, "\r\n") + 1
		if n == 0 {
			n = len(b)
		}
		out = append(out, l.masked(string(b[:n]))...)
		b = b[n:]
	}
	_, err := l.w.Write(out)
	return err
}

// masked returns a line with its secrets masked. Of a private key it keeps only the first line.
func (l *LineWriter) masked(line string) string {
	r := theRules()
	if l.within {
		if at := r.endsKey.FindStringIndex(line); at != nil {
			l.within = false
			return hide(line[at[1]:], false)
		}
		return ""
	}
	if at := r.beginsKey.FindStringIndex(line); at != nil && !r.endsKey.MatchString(line[at[0]:]) {
		l.within = true
		return hide(line[:at[0]], false) + Mask
	}
	return hide(line, false)
}

// Flush writes what was held back. Call it after the last write.
func (l *LineWriter) Flush() error {
	if err := l.known.Flush(); err != nil {
		return err
	}
	err := l.write(l.line)
	l.line = l.line[:0]
	return err
}
