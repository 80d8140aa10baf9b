package torchsnap

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/ingest/packed"
	"github.com/dpsight/dpsight/ingest/pickle"
)

// The view types hold the content of a snapshot in the form that testdata/eras/make.py writes.
type (
	viewStack [][]any
	viewEvent struct {
		Action   string    `json:"action"`
		Addr     uint64    `json:"addr"`
		Size     int64     `json:"size"`
		Stream   uint64    `json:"stream"`
		TimeNS   int64     `json:"time_ns"`
		Mark     uint32    `json:"mark"`
		Text     string    `json:"text"`
		Stack    viewStack `json:"stack"`
		Depth    int       `json:"depth"`
		Pool     uint64    `json:"pool"`
		Internal string    `json:"internal"`
	}
	viewDevice struct {
		Events int         `json:"events"`
		First  []viewEvent `json:"first"`
		Sums   [5]uint64   `json:"sums"`
		Stacks [2]uint64   `json:"stacks"`
	}
	viewSegment struct {
		Device        int       `json:"device"`
		Address       uint64    `json:"address"`
		TotalSize     int64     `json:"total_size"`
		AllocatedSize int64     `json:"allocated_size"`
		ActiveSize    int64     `json:"active_size"`
		RequestedSize int64     `json:"requested_size"`
		Stream        uint64    `json:"stream"`
		Type          string    `json:"type"`
		Pool          uint64    `json:"pool"`
		Expandable    bool      `json:"expandable"`
		Stack         viewStack `json:"stack"`
		Blocks        [][]any   `json:"blocks"`
		BlockCount    int       `json:"block_count"`
		BlockBytes    int64     `json:"block_bytes"`
	}
	viewSettings struct {
		Present    bool             `json:"present"`
		Conf       string           `json:"conf"`
		MaxSplit   int64            `json:"max_split_size"`
		Large      int64            `json:"large_segment_size"`
		GC         float64          `json:"gc"`
		Expandable bool             `json:"expandable"`
		Roundup    map[string]int64 `json:"roundup"`
	}
	view struct {
		Devices     []viewDevice  `json:"devices"`
		Segments    []viewSegment `json:"segments"`
		Settings    viewSettings  `json:"settings"`
		Annotations [][]any       `json:"annotations"`
		TraceKeys   []string      `json:"trace_keys"`
	}
)

func stackView(s *Snapshot, id uint32) viewStack {
	out := viewStack{}
	for _, f := range s.Stacks.Stack(id) {
		out = append(out, []any{f.Function, f.File, f.Line})
	}
	return out
}

func viewOf(s *Snapshot) view {
	v := view{Devices: []viewDevice{}, Segments: []viewSegment{}, Annotations: [][]any{}, TraceKeys: append([]string{},
		s.TraceKeys...)}
	for d, c := range s.Devices {
		dev := viewDevice{Events: c.Len(), First: []viewEvent{}}
		for i := range c.Len() {
			for k, x := range []uint64{c.Addr[i], uint64(c.Size[i]), uint64(c.TimeNS[i]), uint64(c.Mark[i]),
				c.PoolOf(i)} {
				dev.Sums[k] += x
			}
			stack := stackView(s, c.Stack[i])
			dev.Stacks[0] += uint64(len(stack))
			for _, f := range stack {
				dev.Stacks[1] += uint64(f[2].(int64))
			}
			if i < 40 {
				e := viewEvent{Action: c.Action[i].String(), Addr: c.Addr[i], Size: c.Size[i], Stream: c.StreamOf(i),
					TimeNS: c.TimeNS[i],
					Mark:   c.Mark[i], Text: s.Text(d, i), Stack: stack[:min(3, len(stack))], Depth: len(stack),
					Pool: c.PoolOf(i)}
				for _, in := range s.Internal {
					if in.Device == d && in.Event == i {
						e.Internal = in.Text
					}
				}
				dev.First = append(dev.First, e)
			}
		}
		v.Devices = append(v.Devices, dev)
	}
	for _, g := range s.Segments {
		x := viewSegment{g.Device, g.Address, g.TotalSize, g.AllocatedSize, g.ActiveSize, g.RequestedSize, g.Stream,
			g.Type, g.Pool,
			g.Expandable, stackView(s, g.Stack), [][]any{}, len(g.Blocks), 0}
		for i, b := range g.Blocks {
			x.BlockBytes += b.Size
			if i < 40 {
				x.Blocks = append(x.Blocks, []any{b.Address, b.Size, b.RequestedSize, b.State, stackView(s, b.Stack)})
			}
		}
		v.Segments = append(v.Segments, x)
	}
	v.Settings = viewSettings{s.Settings.Present, s.Settings.AllocConf, s.Settings.MaxSplitSize,
		s.Settings.LargeSegmentSize,
		s.Settings.GarbageCollectionThreshold, s.Settings.ExpandableSegments, map[string]int64{}}
	for class, n := range s.Settings.RoundupPower2Divisions {
		v.Settings.Roundup[strconv.FormatInt(class, 10)] = n
	}
	for _, a := range s.Annotations {
		v.Annotations = append(v.Annotations, []any{a.Name, a.Stage, a.Device, a.TimeNS})
	}
	return v
}

func parse(t *testing.T, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestEras compares what this package reads from each fixture with what Python's pickle reads from it, field by field.
func TestEras(t *testing.T) {
	raw, err := os.ReadFile("testdata/eras/truth.json")
	if err != nil {
		t.Fatal(err)
	}
	var truth map[string]json.RawMessage
	if err := json.Unmarshal(raw, &truth); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("testdata/eras/*.pickle*")
	if len(files) != len(truth) || len(files) < 16 {
		t.Fatalf("%d fixtures, %d in truth.json", len(files), len(truth))
	}
	for _, path := range files {
		name, _, _ := strings.Cut(filepath.Base(path), ".pickle")
		t.Run(name, func(t *testing.T) {
			s, err := ReadFile(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(viewOf(s))
			if err != nil {
				t.Fatal(err)
			}
			diff(t, name, parse(t, truth[name]), parse(t, got))
			again, err := ReadBytes(unpacked(t, path), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if again.Stacks, s.Stacks = nil, nil; !reflect.DeepEqual(again, s) {
				t.Error("ReadBytes and ReadFile differ")
			}
		})
	}
}

// unpacked returns the uncompressed content of a fixture.
func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := packed.List(f, st.Size(), path)
	if err != nil || len(entries) != 1 {
		t.Fatal(len(entries), err)
	}
	r, err := entries[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// diff reports where two JSON documents differ.
func diff(t *testing.T, at string, want, got any) {
	t.Helper()
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			t.Errorf("%s: want %v, got %v", at, want, got)
			return
		}
		for k := range w {
			diff(t, at+"."+k, w[k], g[k])
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			t.Errorf("%s: want %v, got %v", at, want, got)
			return
		}
		for i := range w {
			diff(t, at+"["+strconv.Itoa(i)+"]", w[i], g[i])
		}
	case json.Number:
		g, ok := got.(json.Number)
		if !ok || !sameNumber(string(w), string(g)) {
			t.Errorf("%s: want %v, got %v", at, want, got)
		}
	default:
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s: want %v, got %v", at, want, got)
		}
	}
}

// sameNumber reports whether two JSON numbers are equal. 0.0 equals 0, and two integers are equal only if all digits
// agree.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	if !strings.ContainsAny(a+b, ".e") {
		return false
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

// TestWordsAreTheirIDs checks that the builder interns the known words in order, so that a word's id is its index. The
// builder compares keys by id.
func TestWordsAreTheirIDs(t *testing.T) {
	b := newBuilder(pickle.NewBytesDecoder(nil, pickle.Limits{}), nil)
	for id := uint32(1); id <= lastKey; id++ {
		if words[id] == "" || b.d.Intern(words[id]) != id {
			t.Errorf("word %d, %q, has id %d", id, words[id], b.d.Intern(words[id]))
		}
	}
	if len(tagNames) != int(tagTuple)+1 {
		t.Errorf("%d names for %d tags", len(tagNames), tagTuple+1)
	}
}
