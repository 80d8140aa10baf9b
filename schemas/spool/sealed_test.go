package spool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/dpsight/dpsight/schemas/internal/level"
)

// recordings are sealed journals that real processes wrote.
func recordings(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("../../ingest/testdata/journals/*.dps.zst")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d recordings, %v", len(paths), err)
	}
	return paths
}

func sealedBytes(t testing.TB, marks, frames []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Pack(&b, marks, frames); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unsealed(t testing.TB, sealed []byte) (marks, frames []byte, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rank-0.dps.zst")
	if err := os.WriteFile(path, sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	return Unpack(path)
}

// plain is a journal as version 1 sealed it.
func plain(t testing.TB, marks, frames []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderLevel(level.Best))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range [][]byte{{'D', 'P', 'S', 'J', 1, 0, 0, 0}, binary.LittleEndian.AppendUint64(nil, uint64(len(marks))), marks,
		binary.LittleEndian.AppendUint64(nil, uint64(len(frames))), frames} {
		z.Write(p)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func version(t testing.TB, sealed []byte) uint16 {
	t.Helper()
	z, err := zstd.NewReader(bytes.NewReader(sealed))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var h [8]byte
	if _, err := z.Read(h[:]); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint16(h[4:])
}

// Every byte of a recording comes back, whole or cut at any place, and it takes much less than in version 1, which is
// still read.
func TestSealedRecordings(t *testing.T) {
	var small, large int
	for i, path := range recordings(t) {
		marks, frames, err := Unpack(path)
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		for _, cut := range []int{len(frames), rnd.IntN(len(frames)), 8, 3, 0} {
			sealed := sealedBytes(t, marks, frames[:cut])
			m, f, err := unsealed(t, sealed)
			if err != nil || !bytes.Equal(m, marks) || !bytes.Equal(f, frames[:cut]) {
				t.Fatalf("%s cut at %d: does not come back, %v", path, cut, err)
			}
			if cut == len(frames) {
				if v := version(t, sealed); v != sealedSplit {
					t.Errorf("%s: version %d", path, v)
				}
				old := plain(t, marks, frames)
				small, large = small+len(sealed), large+len(old)
				if m, f, err := unsealed(t, old); err != nil || !bytes.Equal(m, marks) || !bytes.Equal(f, frames) {
					t.Errorf("%s: version 1 does not come back, %v", path, err)
				}
			}
		}
	}
	t.Logf("%d bytes, version 1 takes %d", small, large)
	if 10*small > 6*large {
		t.Errorf("%d bytes sealed: little less than the %d of version 1", small, large)
	}
}

// What is no recording of ours is sealed as it is: pickles with opcodes that nobody expects, literals longer than their
// pickle, records of an odd size.
func TestSealedOddities(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	opcodes := []byte{'(', ')', '.', 'N', ']', 'a', 'e', 's', 't', 'u', '}', 0x85, 0x94, 0x80, 'K', 'h', 'q', 'M', 'J', 'j', 'r', 0x95, 'G',
		0x8a, 0x8c, 'C', 'X', 'B', 'c', 'R', 0x8d, 0xff}
	for round := range 80 {
		frames := AppendHeader(nil)
		for range rnd.IntN(6) {
			payload := make([]byte, rnd.IntN(120))
			for i := range payload {
				if payload[i] = byte(rnd.IntN(9)); rnd.IntN(3) == 0 {
					payload[i] = opcodes[rnd.IntN(len(opcodes))]
				}
			}
			frames = AppendFrame(frames, []FrameType{FrameAllocator, FrameTags, FrameConfig}[rnd.IntN(3)], payload)
		}
		marks := AppendMarksHeader(nil, MarksHeader{PID: 1, StartNS: int64(round)})
		for k := range uint32(rnd.IntN(5)) {
			marks = Mark{K: k + 1, TimeNS: rnd.Int64(), A: rnd.Uint64()}.Append(marks)
		}
		m, f, err := unsealed(t, sealedBytes(t, marks, frames))
		if err != nil || !bytes.Equal(m, marks) || !bytes.Equal(f, frames) {
			t.Fatalf("round %d does not come back: %v", round, err)
		}
	}
}

// Parts that do not fit together are an error, never a panic, nor more memory than they have.
func TestSealedDamaged(t *testing.T) {
	marks, frames, err := Unpack(recordings(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	parts := apart(marks, frames)
	for i := range parts {
		rnd := rand.New(rand.NewPCG(uint64(i), 5))
		for round := range 20 {
			damaged := make([][]byte, len(parts))
			for j := range parts {
				damaged[j] = bytes.Clone(parts[j])
			}
			what := "cut"
			if n := len(damaged[i]); n > 0 && round%2 == 0 {
				damaged[i] = damaged[i][:rnd.IntN(n)]
			} else if n > 0 {
				what = "flipped"
				damaged[i][rnd.IntN(n)] ^= byte(1 + rnd.IntN(255))
			}
			m, f, err := together(damaged)
			if err == nil && len(parts[i]) > 0 && bytes.Equal(m, marks) && bytes.Equal(f, frames) {
				t.Errorf("part %d, %s: nothing was noticed", i, what)
			}
		}
	}
	unknown := plain(t, marks, frames)
	z, _ := zstd.NewReader(bytes.NewReader(unknown))
	defer z.Close()
	var b bytes.Buffer
	z.WriteTo(&b)
	raw := b.Bytes()
	raw[4] = 9
	var again bytes.Buffer
	w, _ := zstd.NewWriter(&again)
	w.Write(raw)
	w.Close()
	if _, _, err := unsealed(t, again.Bytes()); err == nil || err.Error() != "journal version 9 is not one that this dpsight reads (1 and 2)" {
		t.Errorf("got %v", err)
	}
}

func BenchmarkPack(b *testing.B) {
	marks, frames, err := Unpack("../../ingest/testdata/journals/ghost.dps.zst")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(marks) + len(frames)))
	for b.Loop() {
		b.ReportMetric(float64(len(sealedBytes(b, marks, frames))), fmt.Sprintf("bytes-of-%d", len(marks)+len(frames)))
	}
}
