package torchsnap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/ingest/pickle"
	"github.com/dpsight/dpsight/schemas"
)

// str, dict, list, num and file write the few pickle opcodes that the tests need.
func str(s string) string { return fmt.Sprintf("\x8c%c%s", len(s), s) }

func dict(items ...string) string { return "}(" + strings.Join(items, "") + "u" }

func list(items ...string) string { return "](" + strings.Join(items, "") + "e" }

func num(n byte) string { return string([]byte{'K', n}) }

func key(k, v string) string { return str(k) + v }

func file(body string) []byte { return []byte("\x80\x04" + body + ".") }

func eventsFile(e string) []byte { return file(dict(key("device_traces", list(list(e))))) }

func segmentsFile(s string) []byte { return file(dict(key("segments", list(s)))) }

// TestWrongTypes reads snapshots with a part of the wrong type. If a snapshot does not need the part, the reader skips
// it and names it. If the snapshot needs the part, the reader returns an error that names the part.
func TestWrongTypes(t *testing.T) {
	alloc := []string{key("action", str("alloc")), key("addr", num(9)), key("size", num(1))}
	with := func(k, v string) []byte { return eventsFile(dict(append(alloc[:3:3], key(k, v))...)) }
	blockWith := func(k, v string) []byte {
		return segmentsFile(dict(key("total_size", num(1)),
			key("blocks", list(dict(key("state", str("inactive")), key("size", num(1)), key(k, v))))))
	}
	segmentWith := func(k, v string) []byte { return segmentsFile(dict(key("total_size", num(1)), key(k, v))) }
	settingWith := func(k, v string) []byte {
		return file(dict(key("segments", "]"), key("allocator_settings", dict(key(k, v)))))
	}
	noteWith := func(k, v string) []byte {
		return file(dict(key("segments", "]"), key("external_annotations",
			list(dict(key("stage", str("START")), key(k, v))))))
	}
	frameWith := func(k, v string) []byte {
		return with("frames", list(dict(key("filename", str("f.py")), key(k, v))))
	}
	// Each wrong part in needed makes the whole file unreadable, since the file has nothing else.
	needed := map[string]bool{}
	for _, name := range []string{"trace of ints", "traces", "segments", "a segment", "segment size", "segment device",
		"segment blocks", "a block", "block state", "block size", "not a snapshot", "an empty dict", "a string",
		"a broken segment", "a list of ints"} {
		needed[name] = true
	}
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"action": {eventsFile(dict(key("action", num(1)))),
			`key "action" of a trace event holds an int, want a str`},
		"addr":           {with("addr", str("x")), `key "addr" of a trace event holds a str, want an int`},
		"addr float":     {with("addr", "G12345678"), `"addr" of a trace event holds a float`},
		"size":           {with("size", "N"), `"size" of a trace event holds None, want a number of bytes`},
		"negative size":  {with("size", "J\xff\xff\xff\xff"), `"size"`},
		"size of 2^64-1": {with("size", "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"), `"size"`},
		"stream":         {with("stream", "\x88"), `"stream" of a trace event holds a bool`},
		"time_us":        {with("time_us", str("now")), `"time_us"`},
		"time too large": {with("time_us", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"), `"time_us"`},
		"frames":         {with("frames", num(1)), `"frames" of a trace event holds an int, want a list of frames`},
		"frames of ints": {with("frames", list(num(1))),
			`"frames" of a trace event holds a list, want a list of frames`},
		"frame name, long": {with("frames", list(dict(key("filename", str("f.py")),
			str("name")+"X\x00\x00\x00\x02"+strings.Repeat("n", 32<<20)))),
			`key "name" of a frame holds a text of more than 4096 bytes`},
		"frames, mixed": {with("frames", list(dict(key("filename", str("f"))), num(1))),
			`a list of frames holds an int`},
		"metadata": {with("user_metadata", num(1)),
			`"user_metadata" of a trace event holds an int, want a str or a dict`},
		"pool":          {with("pool_id", str("0")), `"pool_id"`},
		"pool of three": {with("pool_id", num(1)+num(2)+num(3)+"\x87"), `"pool_id" of a trace event holds a tuple`},
		"internal":      {with("internal_metadata", num(1)), `"internal_metadata"`},
		"frame name":    {frameWith("name", num(1)), `key "name" of a frame holds an int, want a str`},
		"frame line":    {frameWith("line", str("x")), `key "line" of a frame holds a str, want an int`},
		"no size":       {eventsFile(dict(alloc[0], alloc[1])), `a trace event (alloc) has no key "size"`},
		"no addr":       {eventsFile(dict(alloc[0], alloc[2])), `a trace event (alloc) has no key "addr"`},
		"trace of ints": {file(dict(key("device_traces", list(list(num(1)))))),
			`the trace of device 0 is a list, want a list of trace events`},
		"trace, mixed": {eventsFile(dict(alloc...) + num(1)), `a list of trace events holds an int`},
		"traces": {file(dict(key("device_traces", num(1)))),
			`key "device_traces" of the snapshot holds an int`},
		"segments":       {file(dict(key("segments", num(1)))), `key "segments" of the snapshot holds an int`},
		"a segment":      {segmentsFile(num(1)), "segment 0 is an int"},
		"segment size":   {segmentsFile(dict(key("total_size", "N"))), `key "total_size" of a segment holds None`},
		"segment device": {segmentWith("device", str("cuda:0")), `"device" of a segment`},
		"segment blocks": {segmentWith("blocks", num(1)),
			`"blocks" of a segment holds an int, want a list of blocks`},
		"segment type":  {segmentWith("segment_type", num(1)), `"segment_type"`},
		"segment pool":  {segmentWith("segment_pool_id", str("x")), `"segment_pool_id"`},
		"expandable":    {segmentWith("is_expandable", num(1)), `"is_expandable"`},
		"a block":       {segmentWith("blocks", list(num(1))), "segment 0: block 0 is an int"},
		"block state":   {blockWith("state", str("gone")), `key "state" of a block holds "gone"`},
		"block size":    {blockWith("size", str("x")), `"size" of a block`},
		"block request": {blockWith("requested_size", str("x")), `"requested_size" of a block`},
		"block history": {blockWith("history", num(1)), `"history" of a block`},
		"settings": {file(dict(key("segments", "]"), key("allocator_settings", num(1)))),
			`"allocator_settings" of the snapshot holds an int, want a dict`},
		"max_split_size": {settingWith("max_split_size", str("x")),
			`"max_split_size" of the allocator's settings holds a str`},
		"expandable conf": {settingWith("expandable_segments", num(1)), `"expandable_segments"`},
		"roundup":         {settingWith("roundup_power2_divisions", num(1)), `"roundup_power2_divisions"`},
		"roundup class": {settingWith("roundup_power2_divisions", dict(key("a", num(1)))),
			`"roundup_power2_divisions"`},
		"annotations": {file(dict(key("segments", "]"), key("external_annotations", num(1)))),
			`"external_annotations"`},
		"annotation time":  {noteWith("time_us", str("x")), `"time_us" of an annotation`},
		"annotation name":  {noteWith("name", num(1)), `"name" of an annotation`},
		"not a snapshot":   {file(dict(key("weights", num(1)))), "not a torch memory snapshot"},
		"an empty dict":    {file("}"), "not a torch memory snapshot"},
		"a string":         {file(str("x")), "not a torch memory snapshot: a str"},
		"a broken segment": {file(list(dict(key("total_size", "N")))), `"total_size" of a segment`},
		"a list of ints":   {file(list(num(1))), "segment 0 is an int"},
	} {
		s, err := ReadBytes(c.in, Options{})
		if refused := err != nil; refused != needed[name] {
			t.Errorf("%s: refused %t, want %t (%v)", name, refused, needed[name], err)
		}
		if err == nil {
			err = s.Strict()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want …%s…", name, err, c.want)
			continue
		}
		if strings.Contains(c.want, "not a torch") && !errors.Is(err, ErrNotSnapshot) {
			t.Errorf("%s: no ErrNotSnapshot", name)
		}
		if strings.Count(err.Error(), "\n") != 0 {
			t.Errorf("%s: several lines: %q", name, err)
		}
	}
}

// TestOddEventsCostThemselves checks that an event that cannot be read gets an unknown action, and that the events
// beside it do not change. If the list of segments cannot be used, the events remain.
func TestOddEventsCostThemselves(t *testing.T) {
	event := func(addr string, more ...string) string {
		return dict(append([]string{key("action", str("alloc")), key("addr", addr), key("size", num(1))}, more...)...)
	}
	looksLikeOne := key("user_metadata", dict(key("action", num(1)), key("addr", str("home"))))
	trace := list(event(num(9)), event(str("x")), event(num(8), key("time_us", "G12345678")), num(3),
		event(num(7), looksLikeOne))
	s, err := ReadBytes(file(dict(key("segments", list(dict(key("total_size", "N")))),
		key("device_traces", list(trace)))), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Devices[0]
	if !slices.Equal(c.Addr, []uint64{9, 0, 8, 7}) || s.Unread[0] != 1 || !slices.Equal(c.Action, []schemas.Action{
		schemas.ActionAlloc, schemas.ActionUnknown, schemas.ActionAlloc, schemas.ActionAlloc}) {
		t.Errorf("%v, %v, %d unread", c.Addr, c.Action, s.Unread[0])
	}
	want := []string{`key "addr" of a trace event holds a str, want an int`,
		`key "time_us" of a trace event holds a float, want a number of microseconds`,
		"a list of trace events holds an int"}
	for _, w := range want {
		if !slices.Contains(s.Odd, w) {
			t.Errorf("%q is not among %q", w, s.Odd)
		}
	}
	if n := len(s.Odd); n != len(want)+1 || !strings.HasPrefix(s.Odd[n-1], "the list of segments is passed over: ") {
		t.Errorf("got %q", s.Odd)
	}
}

func TestRefusalNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot.pickle")
	if err := os.WriteFile(path, []byte("\x80\x04}(\x8c\x08segments]uq\x00cos\nsystem\n."), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ReadFile(path, Options{})
	if err == nil || err.Error() != "snapshot.pickle: opcode GLOBAL at byte 18 would run code: refused" {
		t.Errorf("got %v", err)
	}
	var r *pickle.RefusedError
	if !errors.As(err, &r) || r.Opcode != "GLOBAL" {
		t.Errorf("no RefusedError in %v", err)
	}
}

// TestTruncatedSnapshot checks that a snapshot that is cut after any byte gives an error.
func TestTruncatedSnapshot(t *testing.T) {
	p, err := os.ReadFile("testdata/eras/torch-2.15.pickle")
	if err != nil {
		t.Fatal(err)
	}
	for n := range p {
		if _, err := ReadBytes(p[:n], Options{}); err == nil {
			t.Fatalf("no error after %d of %d bytes", n, len(p))
		}
	}
}

// TestSharingIsNotMultiplied reads small files with shared parts. If the reader copied a shared part at each use, the
// result would be enormous.
func TestSharingIsNotMultiplied(t *testing.T) {
	event := dict(key("action", str("alloc")), key("addr", num(9)), key("size", num(1)))
	many := func(n int, one string) string { return strings.Repeat(one, n) }
	blocks := list(many(2000, dict(key("state", str("inactive")), key("size", num(1)))))
	nested := "]\x94"
	for i := range 30 {
		nested += "0" + "]\x94(" + string([]byte{'h', byte(i), 'h', byte(i)}) + "e"
	}
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"one trace, many devices": {file(dict(key("device_traces", "]("+list(many(20000, event))+"\x94"+many(1000,
			"h\x00")+"e"))), ""},
		"too many devices": {file(dict(key("device_traces", "](]\x94"+many(2000, "h\x00")+"e"))), "devices"},
		"one list of blocks": {file(list(dict(key("total_size", num(1)), key("blocks", blocks+"\x94")),
			many(3000, dict(key("total_size", num(1)), key("blocks", "h\x00"))))), "another segment's"},
		"one segment": {file("](" + dict(key("total_size", num(1)), key("blocks", blocks)) + "\x94" + many(3000,
			"h\x00") + "e"), "listed twice"},
		"metadata": {file(nested + "0" +
			dict(key("device_traces",
				list(list(dict(key("action", str("x")), key("user_metadata", dict(key("x", "h\x1e"))))))))), ""},
	} {
		n := allocated(func() {
			_, err := ReadBytes(c.in, Options{})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: got %v, want %q", name, err, c.want)
			}
		})
		if limit := uint64(1<<20 + 40*len(c.in)); n > limit {
			t.Errorf("%s: %d bytes allocated for %d bytes of input", name, n, len(c.in))
		}
	}
}

// TestLinear checks that a container that grows by one item at a time takes time in proportion to its length.
func TestLinear(t *testing.T) {
	event := dict(key("action", str("alloc")), key("addr", num(9)), key("size", num(1)))
	frame := dict(key("filename", str("f"))) + "\x94"
	for name, make := range map[string]func(n int) string{
		"trace":  func(n int) string { return dict(key("device_traces", list("]"+strings.Repeat(event+"a", n)))) },
		"fields": func(n int) string { return list(list("}" + strings.Repeat(key("action", str("alloc"))+"s", n))) },
		"rows":   func(n int) string { return list("](" + event + "\x94e" + strings.Repeat("h\x00a", n)) },
		"frames": func(n int) string { return "](" + frame + "e" + strings.Repeat("h\x00a", n) },
		"dict":   func(n int) string { return "}" + strings.Repeat("K\x01K\x02s", n) },
	} {
		cost := func(n int) uint64 {
			p := file(make(n))
			return allocated(func() { _, _ = ReadBytes(p, Options{}) })
		}
		if a, b := cost(10_000), cost(40_000); b > 8*a+1<<20 {
			t.Errorf("%s: %d bytes for n, %d for 4n", name, a, b)
		}
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/eras/*.pickle")
	for _, path := range files {
		p, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if len(p) < 5000 {
			f.Add(p)
		}
	}
	f.Add(eventsFile(dict(key("action", num(1)))))
	f.Fuzz(func(t *testing.T, p []byte) {
		s, err := ReadBytes(p, Options{Limits: pickle.Limits{Memory: 4 << 20, Elements: 1 << 16}})
		if err != nil {
			return
		}
		for d, c := range s.Devices {
			n := c.Len()
			if len(c.Addr) != n || len(c.Size) != n || len(c.TimeNS) != n || len(c.Mark) != n || len(c.Stack) != n ||
				len(c.Stream) != n && len(c.Stream) != 0 || len(c.Pool) != n && len(c.Pool) != 0 ||
				len(c.Line) != n && len(c.Line) != 0 {
				t.Fatal("columns of different lengths")
			}
			for i := range n {
				_ = s.Text(d, i)
				_ = s.Stacks.Stack(c.Stack[i])
			}
		}
	})
}
