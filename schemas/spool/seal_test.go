package spool

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// If a bit of a sealed journal is flipped, or its end is missing, OpenSealed returns an error or the original content
// to the byte. OpenSealed does the same for journals of older versions, which have only zstd's checksum.
func TestNoFlipLosesAFrame(t *testing.T) {
	rnd := rand.New(rand.NewPCG(23, 2))
	refused, whole := 0, 0
	try := func(path string, sealed []byte, n int) {
		marks, frames, err := unpacked(t, sealed)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			b := bytes.Clone(sealed)
			if i%6 == 5 {
				b = b[:rnd.IntN(len(b))]
			} else {
				b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
			}
			m, f, err := unpacked(t, b)
			switch {
			case err != nil:
				refused++
			case bytes.Equal(m, marks) && bytes.Equal(f, frames):
				whole++
			default:
				t.Errorf("%s, try %d: %d bytes of frames of %d, and no error", path, i, len(f), len(frames))
			}
		}
	}
	for _, path := range recordings(t) {
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		marks, frames, err := unpacked(t, old)
		if err != nil {
			t.Fatal(err)
		}
		try(path, old, 12)
		try(path, sealedBytes(t, marks, frames), 12)
	}
	t.Logf("%d refused, %d came back to the byte", refused, whole)
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// If the trailer of a sealed journal states more frames, more marks or another number of bytes than the journal has,
// OpenSealed returns an error. OpenSealed returns this error even if the stream itself is intact.
func TestTrailer(t *testing.T) {
	marks, frames := testMarks(3), testFrames()
	marks = marks[:usedMarks(marks)]
	all, err := ScanFrames(frames)
	if err != nil {
		t.Fatal(err)
	}
	sealed := trailerOf(marks, frames).bytes()
	if err := verify(sealed, marks, frames); err != nil {
		t.Fatal(err)
	}
	renamed := bytes.Clone(frames)
	renamed[len(renamed)-1] ^= 1
	for _, c := range []struct {
		what          string
		marks, frames []byte
		want          string
	}{
		{"a frame less", marks, frames[:all[len(all)-1].Offset], "frames, and was sealed with"},
		{"a mark less", marks[:len(marks)-RecordSize], frames, "marks up to"},
		{"a torn frame", marks, renamed, "frames, and was sealed with"},
		{"another process", append([]byte("DPSM\x01\x00\x20\x00\xff"), marks[9:]...), frames, "its digest"},
	} {
		if err := verify(sealed, c.marks, c.frames); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	b := decompressed(t, sealedBytes(t, marks, frames))
	b[len(b)-1] ^= 1
	var damaged *DamagedError
	if _, _, err := unsealed(bytes.NewReader(b)); !errors.As(err, &damaged) || damaged.Hint() == "" {
		t.Errorf("a flipped digest: %v", err)
	}
	if _, _, err := unsealed(bytes.NewReader(b[:len(b)-trailerSize])); !errors.As(err, &damaged) {
		t.Errorf("no trailer: %v", err)
	}
	if _, _, err := unsealed(bytes.NewReader(append(b, 0))); !errors.As(err, &damaged) {
		t.Errorf("more after the trailer: %v", err)
	}
}
