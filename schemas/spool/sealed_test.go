package spool

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/dpsight/dpsight/schemas/internal/level"
)

// recordings returns the paths of sealed journals that the agent wrote in real processes.
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

func unpacked(t testing.TB, sealed []byte) (marks, frames []byte, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rank-0.dps.zst")
	if err := os.WriteFile(path, sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	return Unpack(path)
}

// plain returns a journal in version 1 of the sealed form.
func plain(t testing.TB, marks, frames []byte) []byte {
	return sealedAs(t, sealedPlain, marks, frames)
}

// split returns a journal in version 2 of the sealed form.
func split(t testing.TB, marks, frames []byte) []byte {
	t.Helper()
	all, err := ScanFrames(frames)
	if err != nil {
		t.Fatal(err)
	}
	parts := make([][]byte, nSplit)
	parts[partMarks] = append(bytes.Clone(marks[:RecordSize]), columns(marks[RecordSize:], RecordSize, markCounters)...)
	rest := append(binary.LittleEndian.AppendUint64(nil, uint64(len(all))), frames[:filesHeader]...)
	var tags []byte
	var s streams
	for _, f := range all {
		rest = append(rest, frames[f.Offset:f.Offset+frameHeader]...)
		switch f.Type {
		case FrameTags:
			tags = append(tags, f.Payload...)
		case FrameAllocator:
			s.split(f.Payload)
		default:
			rest = append(rest, f.Payload...)
		}
	}
	parts[partFrames], parts[partTags] = rest, columns(tags, RecordSize, tagCounters)
	for i := range s {
		parts[partStreams+i] = s.stored(i)
	}
	return sealedAs(t, sealedSplit, parts...)
}

func sealedAs(t testing.TB, version byte, parts ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderLevel(level.Best))
	if err != nil {
		t.Fatal(err)
	}
	z.Write([]byte{'D', 'P', 'S', 'J', version, 0, 0, 0})
	for _, p := range parts {
		z.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(p))))
		z.Write(p)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decompressed(t testing.TB, sealed []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	raw, err := z.DecodeAll(sealed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func version(t testing.TB, sealed []byte) uint16 {
	t.Helper()
	return binary.LittleEndian.Uint16(decompressed(t, sealed)[4:])
}

// Unsealing restores each byte of a recording, even if the recording was cut at any place before sealing. The sealed
// file is much smaller than in version 1. Journals of both older versions can still be read.
func TestSealedRecordings(t *testing.T) {
	var small, middle, large int
	for i, path := range recordings(t) {
		marks, frames, err := Unpack(path)
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		for _, cut := range []int{len(frames), rnd.IntN(len(frames)), 8, 3, 0} {
			sealed := sealedBytes(t, marks, frames[:cut])
			m, f, err := unpacked(t, sealed)
			if err != nil || !bytes.Equal(m, marks) || !bytes.Equal(f, frames[:cut]) {
				t.Fatalf("%s cut at %d: does not come back, %v", path, cut, err)
			}
			if cut == len(frames) {
				if v := version(t, sealed); v != sealedFiner {
					t.Errorf("%s: version %d", path, v)
				}
				old := plain(t, marks, frames)
				second := split(t, marks, frames)
				small, middle, large = small+len(sealed), middle+len(second), large+len(old)
				if m, f, err := unpacked(t, second); err != nil || !bytes.Equal(m, marks) || !bytes.Equal(f, frames) {
					t.Errorf("%s: version 2 does not come back, %v", path, err)
				}
				if m, f, err := unpacked(t, old); err != nil || !bytes.Equal(m, marks) || !bytes.Equal(f, frames) {
					t.Errorf("%s: version 1 does not come back, %v", path, err)
				}
			}
		}
	}
	t.Logf("%d bytes, version 2 takes %d, version 1 %d", small, middle, large)
	if 10*small > 6*large || 10*small > 9*middle {
		t.Errorf("%d bytes sealed: little less than the %d of version 2 and the %d of version 1", small, middle, large)
	}
}

// A journal may have content that the agent does not write, such as pickles with unexpected opcodes, literals that are
// longer than their pickle, or records of an odd size. Sealing and unsealing restores it too.
func TestSealedOddities(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	opcodes := []byte{'(', ')', '.', 'N', ']', 'a', 'e', 's', 't', 'u', '}', 0x85, 0x94, 0x80, 'K', 'h', 'q', 'M', 'J',
		'j', 'r', 0x95, 'G',
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
			frames = AppendFrame(frames, []FrameType{FrameAllocator, FrameTags, FrameTimes, FrameConfig}[rnd.IntN(4)],
				payload)
		}
		marks := AppendMarksHeader(nil, MarksHeader{PID: 1, StartNS: int64(round)})
		for k := range uint32(rnd.IntN(5)) {
			marks = Mark{K: k + 1, TimeNS: rnd.Int64(), A: rnd.Uint64()}.Append(marks)
		}
		m, f, err := unpacked(t, sealedBytes(t, marks, frames))
		if err != nil || !bytes.Equal(m, marks) || !bytes.Equal(f, frames) {
			t.Fatalf("round %d does not come back: %v", round, err)
		}
	}
}

// Numbers within texts are restored with the same digits, whatever text surrounds them.
func TestTextsComeBack(t *testing.T) {
	for text, numbers := range map[string]int{
		"":                        0,
		"N/A":                     0,
		"N/A6N/A7N/A107N/A107":    4,
		"12":                      1,
		"0N/A0":                   2,
		"007N/A00N/A08":           0,
		"999999999N/A1":           2,
		"1000000000N/A4294967296": 0,
		"7\x00":                   -1,
		"\x00":                    -1,
		"large_pool-1.5":          2,
		"\xff\xfe1\x80":           1,
	} {
		b := counted([]byte(text))
		got, err := uncounted(b)
		if err != nil || string(got) != text {
			t.Errorf("%q came back as %q, %v", text, got, err)
		}
		if n := binary.LittleEndian.Uint64(b); numbers < 0 && n != untouched || numbers >= 0 &&
			len(b)-8-int(n) != 4*numbers {
			t.Errorf("%q: %d bytes, %d of them texts, want %d numbers", text, len(b), n, numbers)
		}
	}
	for _, b := range [][]byte{nil, {1, 0, 0}, {9, 0, 0, 0, 0, 0, 0, 0, 'a'}, {1, 0, 0, 0, 0, 0, 0, 0, place},
		{0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4}} {
		if text, err := uncounted(b); err == nil {
			t.Errorf("%v: %q and no error", b, text)
		}
	}
}

// The encoding by distances restores all values, and also a rest that is shorter than a value.
func TestDistancesComeBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for _, width := range []int{6, 8} {
		for size := range 100 {
			b := make([]byte, size)
			for i := range b {
				b[i] = byte(rnd.IntN(2))
			}
			stored := distances(b, width)
			if got, err := undistances(stored, width); err != nil || !bytes.Equal(got, b) {
				t.Fatalf("%d bytes of %d did not come back: %v", size, width, err)
			}
			rest, lifted := lift(b, 32, 8, width)
			if got := lower(rest, lifted, 32, 8, width); !bytes.Equal(got, b) || len(lifted) != size/32*width {
				t.Fatalf("%d bytes: %d of %d lifted", size, len(lifted), width)
			}
			if size < width {
				continue
			}
			stored[8] = 1 // the distance of the first value would lead to before the first value
			if _, err := undistances(stored, width); err == nil {
				t.Fatalf("%d bytes of %d: a value from before the first", size, width)
			}
		}
	}
}

// If the parts of a sealed journal do not fit together, unsealing returns an error or another journal, and does not
// panic.
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
			m, f, err := together(damaged, sealedFiner)
			if err == nil && len(parts[i]) > 0 && bytes.Equal(m, marks) && bytes.Equal(f, frames) {
				t.Errorf("part %d, %s: nothing was noticed", i, what)
			}
		}
	}
	raw := decompressed(t, plain(t, marks, frames))
	raw[4] = 9
	var again bytes.Buffer
	w, _ := zstd.NewWriter(&again)
	w.Write(raw)
	w.Close()
	if _, _, err := unpacked(t, again.Bytes()); err == nil ||
		err.Error() != "journal version 9 is not one that this dpsight reads (1 to 3)" {
		t.Errorf("got %v", err)
	}
}

// For any bytes, unsealing returns a journal or an error. The journal is at most twice as long as the unpacked bytes.
func FuzzUnsealed(f *testing.F) {
	// Go's fuzzer minimises each input that reaches new code for up to a minute, and tries no other inputs meanwhile.
	// The inputs here are so long that a run of seconds would spend all its time on the first input.
	if err := flag.Set("test.fuzzminimizetime", "100x"); err != nil {
		f.Fatal(err)
	}
	marks, frames := testMarks(3), testFrames()
	frames = AppendFrame(frames, FrameAllocator,
		[]byte("\x80\x04]\x94(\x8a\x06\x00\x00\x00\x00\x60\x7f\x8c\x0aN/A7N/A108\x8a\x06\x00\x00\x00\x00\x60\x7fe."))
	for _, sealed := range [][]byte{sealedBytes(f, marks, frames), split(f, marks, frames), plain(f, marks, frames)} {
		f.Add(decompressed(f, sealed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		marks, frames, err := unsealed(bytes.NewReader(b))
		// a number of ten digits takes five bytes, and eight bytes of a value take four
		if n := len(marks) + len(frames); err == nil && n > 2*len(b) {
			t.Fatalf("%d bytes of %d", n, len(b))
		}
	})
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
