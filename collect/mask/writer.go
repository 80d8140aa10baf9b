package mask

import "io"

// A Writer masks what passes through it, also where a secret is split over several writes. It holds back no more than
// the part of the last write that may be the beginning of a secret, so a prompt without a line end is seen at once.
type Writer struct {
	w       io.Writer
	secrets *Secrets
	pending []byte
	out     []byte
}

// NewWriter returns a writer to w.
func (s *Secrets) NewWriter(w io.Writer) *Writer { return &Writer{w: w, secrets: s} }

// Write always reports all of b as written unless the underlying writer fails.
func (w *Writer) Write(b []byte) (int, error) {
	if w.secrets.Empty() {
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
