package torchsnap

import (
	"encoding/json"
	"io"
	"os"
	"reflect"
	"testing"

	"github.com/dpsight/dpsight/schemas"
	"github.com/klauspost/compress/zstd"
)

// truth holds the content of testdata/truth.json: the figures that truth.py read with Python's pickle, and the peaks
// that torch reported.
type truth struct {
	PeakAllocatedBytes int64 `json:"peak_allocated_bytes"`
	PeakReservedBytes  int64 `json:"peak_reserved_bytes"`
	Events             int
	Actions            map[string]int
	Sums               struct {
		Addr, Size, Stream uint64
		TimeUS             uint64 `json:"time_us"`
	}
	Frames         int
	FrameLines     int64 `json:"frame_lines"`
	NameBytes      int   `json:"name_bytes"`
	DistinctStacks int   `json:"distinct_stacks"`
	Segments       int
	SegmentBytes   int64 `json:"segment_bytes"`
	Blocks         int
	BlockBytes     int64 `json:"block_bytes"`
	RequestedBytes int64 `json:"requested_bytes"`
	Annotations    int
}

func describeSnapshot(s *Snapshot) truth {
	w := truth{Actions: map[string]int{}, Segments: len(s.Segments), Annotations: len(s.Annotations)}
	used := map[uint32]bool{}
	for _, c := range s.Devices {
		w.Events += c.Len()
		for i := range c.Len() {
			w.Actions[c.Action[i].String()]++
			w.Sums.Addr += c.Addr[i]
			w.Sums.Size += uint64(c.Size[i])
			w.Sums.Stream += c.StreamOf(i)
			w.Sums.TimeUS += uint64(c.TimeNS[i] / 1000)
			for _, f := range s.Stacks.Stack(c.Stack[i]) {
				w.Frames++
				w.FrameLines += f.Line
				w.NameBytes += len(f.Function) + len(f.File)
			}
			if c.Stack[i] != 0 {
				used[c.Stack[i]] = true
			}
			if c.Action[i] == schemas.ActionSegmentAlloc {
				w.PeakReservedBytes += c.Size[i]
			}
		}
	}
	w.DistinctStacks = len(used)
	for _, g := range s.Segments {
		w.SegmentBytes += g.TotalSize
		w.Blocks += len(g.Blocks)
		for _, b := range g.Blocks {
			w.BlockBytes += b.Size
			w.RequestedBytes += max(b.RequestedSize, 0)
		}
	}
	return w
}

// TestRecordings reads the recordings of three trainings on an H200.
func TestRecordings(t *testing.T) {
	raw, err := os.ReadFile("testdata/truth.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]truth
	if err := json.Unmarshal(raw, &all); err != nil || len(all) != 3 {
		t.Fatalf("%d recordings: %v", len(all), err)
	}
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			s, err := ReadFile("testdata/"+name+".pickle.zst", Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := describeSnapshot(s)
			// package replay computes this peak; in these recordings reserved never falls
			got.PeakAllocatedBytes = want.PeakAllocatedBytes
			if !reflect.DeepEqual(got, want) {
				t.Errorf("\n got %+v\nwant %+v", got, want)
			}
			if s.Protocol != 4 || !s.Settings.Present || s.MetadataID[0] != nil {
				t.Errorf("protocol %d, settings %v, metadata %v", s.Protocol, s.Settings.Present, s.Metadata)
			}
		})
	}
}

func plainRecording(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".pickle.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	p, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSharedStacks checks that two chunks of a journal share the ids of equal stacks.
func TestSharedStacks(t *testing.T) {
	p := plainRecording(t, "vanilla")
	stacks := NewStacks()
	a, err := ReadBytes(p, Options{Stacks: stacks})
	if err != nil {
		t.Fatal(err)
	}
	n, frames := stacks.Len(), len(stacks.Frames())
	b, err := ReadBytes(p, Options{Stacks: stacks})
	if err != nil {
		t.Fatal(err)
	}
	if stacks.Len() != n || len(stacks.Frames()) != frames || n == 0 || !reflect.DeepEqual(a.Devices, b.Devices) {
		t.Errorf("%d stacks became %d", n, stacks.Len())
	}
}
