package torchsnap

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"testing"
)

// generated writes a snapshot of about n events with stacks of depth frames. If python3 is missing, generated skips the
// test.
func generated(t testing.TB, n, depth int) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	path := filepath.Join(t.TempDir(), "generated.pickle")
	out, err := exec.Command(python, "../testdata/tools/make_snapshot.py", strconv.Itoa(n), path,
		strconv.Itoa(depth)).CombinedOutput()
	if err != nil {
		t.Fatalf("make_snapshot.py: %v\n%s", err, out)
	}
	return path
}

// TestGenerated compares what this package reads from a generated snapshot with what Python's pickle reads from it.
func TestGenerated(t *testing.T) {
	path := generated(t, 20_000, 7)
	out, err := exec.Command("python3", "testdata/truth.py", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]truth
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	want := all["generated"]
	s, err := ReadFile(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := describeSnapshot(s)
	got.PeakReservedBytes = 0
	if !reflect.DeepEqual(got, want) || got.Events < 20_000 {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

// TestGarbage checks that reading a snapshot allocates at most four times the file's size and another MiB. The decoder
// was designed for this limit.
func TestGarbage(t *testing.T) {
	p := plainRecording(t, "fgc")
	runtime.GC()
	if n := allocated(func() {
		if _, err := ReadBytes(p, Options{}); err != nil {
			t.Fatal(err)
		}
	}); n > uint64(4*len(p)+1<<20) {
		t.Errorf("%d bytes allocated for a file of %d", n, len(p))
	}
}

func benchmarkRead(b *testing.B, p []byte) {
	b.Run("reader", func(b *testing.B) {
		b.SetBytes(int64(len(p)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Read(bytes.NewReader(p), Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bytes", func(b *testing.B) {
		b.SetBytes(int64(len(p)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ReadBytes(p, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRead reads a recording of 18,889 events, a chunk of a journal and, with python3, a generated snapshot.
// DPSIGHT_BENCH_EVENTS sets the number of generated events.
func BenchmarkRead(b *testing.B) {
	b.Run("recording", func(b *testing.B) { benchmarkRead(b, plainRecording(b, "fgc")) })
	b.Run("chunk", func(b *testing.B) {
		p, err := os.ReadFile("testdata/eras/torch-2.11.pickle")
		if err != nil {
			b.Fatal(err)
		}
		benchmarkRead(b, p)
	})
	b.Run("generated", func(b *testing.B) {
		n, err := strconv.Atoi(os.Getenv("DPSIGHT_BENCH_EVENTS"))
		if err != nil {
			n = 200_000
		}
		p, err := os.ReadFile(generated(b, n, 10))
		if err != nil {
			b.Fatal(err)
		}
		benchmarkRead(b, p)
	})
}
