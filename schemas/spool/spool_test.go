package spool

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

func testMarks(n int) []byte {
	b := AppendMarksHeader(nil, MarksHeader{PID: 42, StartNS: 7})
	for k := 1; k <= n; k++ {
		b = Mark{K: uint32(k), Thread: 1, Kind: ForwardBegin, Flags: 3, TimeNS: int64(1000 + k), A: 1 << 60,
			B: uint64(k)}.Append(b)
	}
	return append(b, make([]byte, 100*RecordSize)...)
}

func testFrames() []byte {
	b := AppendHeader(nil)
	b = AppendFrame(b, FrameProcess, []byte(`{"pid":42,"rank":3,"mode":"full"}`))
	b = AppendFrame(b, FrameNames, []byte(`{"names":[[1,"forward"],[2,"näme"]]}`))
	b = AppendFrame(b, FrameType(200), []byte("from the future"))
	b = AppendFrame(b, FrameTags, Tag{K: 2, Kind: TagParameter, DType: 4, Address: 1 << 46, Bytes: 512,
		Name: 1}.Append(Tag{K: 2, Untag: true, Kind: TagGradient}.Append(nil)))
	b = AppendFrame(b, FrameTimes, Interval{1, 2, 1500}.Append(nil))
	b = AppendFrame(b, FrameCheckpoint, []byte(`{"drain":0,"reason":"start"}`))
	b = AppendFrame(b, FrameAllocator, []byte("\x80\x04}."))
	b = AppendFrame(b, FrameCheckpoint,
		[]byte(`{"drain":1,"devices":[{"device":0,"stats":{"allocated_bytes.all.current":5}}]}`))
	return AppendFrame(b, FrameAllocator, []byte("\x80\x04}."))
}

func TestParse(t *testing.T) {
	j, err := Parse(testMarks(3), testFrames())
	if err != nil {
		t.Fatal(err)
	}
	if j.Torn != nil || len(j.Damaged) != 0 {
		t.Errorf("torn %v, damaged %v", j.Torn, j.Damaged)
	}
	if len(j.Marks) != 3 || j.Marks[2] != (Mark{3, 1, ForwardBegin, 3, 1003, 1 << 60, 3}) {
		t.Errorf("marks %+v", j.Marks)
	}
	want := []Tag{{K: 2, Untag: true, Kind: TagGradient}, {K: 2, Kind: TagParameter, DType: 4, Address: 1 << 46,
		Bytes: 512, Name: 1}}
	if !reflect.DeepEqual(j.Tags, want) {
		t.Errorf("tags %+v, want %+v", j.Tags, want)
	}
	if j.Names[2] != "näme" || j.Intervals[0].NS != 1500 || *j.Process.Rank != 3 {
		t.Errorf("names %v, intervals %v, process %+v", j.Names, j.Intervals, j.Process)
	}
	if len(j.Chunks) != 3 || j.Chunks[0].Pickle != nil || j.Chunks[1].Checkpoint.Drain != 1 ||
		j.Chunks[2].Checkpoint != nil {
		t.Errorf("chunks %+v", j.Chunks)
	}
}

func TestHolders(t *testing.T) {
	frame := func(blocks string) []byte {
		look := `{"k":3,"moment":"step","complete":true,"blocks":` + blocks + `}`
		return AppendFrame(testFrames(), FrameHolders, []byte(look))
	}
	j, err := Parse(testMarks(3), frame(`[[4096,512,8,"python","global kept[0]"]]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []HoldersInfo{{3, schemas.HeldAtStep, true,
		[]HolderInfo{{4096, 512, 8, schemas.HeldByPython, "global kept[0]"}}}}
	if !reflect.DeepEqual(j.Holders, want) || len(j.Damaged) != 0 {
		t.Errorf("holders %+v, damaged %v", j.Holders, j.Damaged)
	}
	for _, blocks := range []string{`[[4096,512,8,"python"]]`, `[{"path":"x"}]`, `[[4096,"512",8,"python","x"]]`} {
		if j, err := Parse(testMarks(3), frame(blocks)); err != nil || len(j.Damaged) != 1 || j.Holders != nil {
			t.Errorf("%s: %v, holders %+v, damaged %v", blocks, err, j.Holders, j.Damaged)
		}
	}
}

// The source lines of a journal come in several frames. The last frame has the total cost of following lines. A line
// with other fields counts as damage.
func TestLines(t *testing.T) {
	frames := AppendFrame(testFrames(), FrameLines,
		[]byte(`{"lines":[[1,"train.py",7,"main"]],"by":"tracing","reason":"","events":1,"spent_ns":5,"wall_ns":9}`))
	frames = AppendFrame(frames, FrameLines,
		[]byte(`{"lines":[[2,"net.py",40,"Net.forward"]],"by":"tracing","events":8,"spent_ns":70,"wall_ns":99}`))
	j, err := Parse(testMarks(3), frames)
	if err != nil {
		t.Fatal(err)
	}
	want := &LinesInfo{Lines: []LineInfo{{1, "train.py", 7, "main"}, {2, "net.py", 40, "Net.forward"}}, By: "tracing",
		Events: 8, SpentNS: 70, WallNS: 99}
	if !reflect.DeepEqual(j.Lines, want) || len(j.Damaged) != 0 {
		t.Errorf("lines %+v, damaged %v", j.Lines, j.Damaged)
	}
	for _, row := range []string{`[1,"train.py",7]`, `[1,"train.py",7,"main",0]`, `{"id":1}`, `["1","a.py",7,"main"]`} {
		j, err := Parse(testMarks(3), AppendFrame(testFrames(), FrameLines, []byte(`{"lines":[`+row+`]}`)))
		if err != nil || len(j.Damaged) != 1 || j.Lines != nil {
			t.Errorf("%s: lines %+v, damaged %v, error %v", row, j.Lines, j.Damaged, err)
		}
	}
}

// If a kill cuts a journal at any byte, ScanFrames returns all whole frames before the cut.
func TestTornAtEveryByte(t *testing.T) {
	all := testFrames()
	whole, err := ScanFrames(all)
	if err != nil {
		t.Fatal(err)
	}
	for n := range all {
		got, err := ScanFrames(all[:n])
		want := 0
		for _, f := range whole {
			if int(f.Offset)+frameHeader+len(f.Payload) <= n {
				want++
			}
		}
		var torn *TornError
		if len(got) != want || err != nil && !errors.As(err, &torn) {
			t.Fatalf("cut at %d: %d frames, want %d (%v)", n, len(got), want, err)
		}
		if at := n; err == nil && at != 8 &&
			(want == 0 || int(whole[want-1].Offset)+frameHeader+len(whole[want-1].Payload) != at) {
			t.Fatalf("cut at %d inside a frame went unseen", n)
		}
	}
}

func TestDamagedFrame(t *testing.T) {
	b := testFrames()
	b[len(b)-1] ^= 1
	got, err := ScanFrames(b)
	if err == nil || !strings.Contains(err.Error(), "checksum") || len(got) != 8 {
		t.Errorf("%d frames, %v", len(got), err)
	}
	for _, c := range []struct{ data, want string }{{"PK\x03\x04junkjunk", "not a frames file"},
		{"DPSF\x09\x00\x00\x00", "version 9"}} {
		if _, err := ScanFrames([]byte(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.data, err)
		}
	}
}

func TestHole(t *testing.T) {
	b := testMarks(3)
	clear(b[2*RecordSize : 3*RecordSize])
	_, marks, err := ScanMarks(b)
	if err != nil || len(marks) != 2 || marks[1].K != 3 {
		t.Errorf("%+v, %v", marks, err)
	}
}

func TestSealAndRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("42-7.marks", testMarks(2))
	write("42-7.frames", testFrames())
	write("43-9.marks", testMarks(1)) // this process died before its first frame
	before, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Seal(dir); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	after, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	left, _ := LiveJournals(dir)
	if len(left) != 0 || len(after) != 2 || after[0].Rank != 0 || after[1].Rank != 3 {
		t.Fatalf("left %v, ranks %d", left, len(after))
	}
	for i := range after {
		before[i].Path, after[i].Path = "", ""
		if !reflect.DeepEqual(before[i], after[i]) {
			t.Errorf("journal %d changed by sealing", i)
		}
	}
	if n, err := Seal(dir); n != 0 || err != nil {
		t.Error(n, err)
	}
}

func TestRequest(t *testing.T) {
	p := filepath.Join(t.TempDir(), "1-1.marks")
	os.WriteFile(p, testMarks(1), 0o600)
	if err := Request(p, RequestDrain); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(p)
	if b[requestOffset] != RequestDrain {
		t.Error("the request is not in the header")
	}
	if h, marks, err := ScanMarks(b); err != nil || h.PID != 42 || len(marks) != 1 {
		t.Error(h, marks, err)
	}
}

func TestKinds(t *testing.T) {
	for k := Kind(1); k <= OpenKinds; k++ {
		if k.String() == "unknown" || k.Opens() == k.Closes() {
			t.Errorf("kind %d: %s opens %v closes %v", k, k, k.Opens(), k.Closes())
		}
	}
	if StepEnd.Opens() || StepEnd.Closes() {
		t.Error("step_end is no span")
	}
}

// The first module of a frame is the root of a model, since a frame has the modules of one model.
func TestModuleFrames(t *testing.T) {
	frames := AppendFrame(AppendHeader(nil), FrameModules,
		[]byte(`{"modules":[{"id":1,"class":"Net"},{"id":2,"path":"Encoder","class":"Encoder"}]}`))
	frames = AppendFrame(frames, FrameModules, []byte(`{"modules":[]}`))
	frames = AppendFrame(frames, FrameModules, []byte(`{"modules":[{"id":3,"path":"Net","class":"Net"}]}`))
	j, err := Parse(testMarks(0), frames)
	if err != nil || len(j.Damaged) > 0 || len(j.Modules) != 3 {
		t.Fatalf("%+v, %v", j, err)
	}
	for i, want := range []bool{true, false, true} {
		if j.Modules[i].First != want {
			t.Errorf("%+v", j.Modules[i])
		}
	}
}

// For any bytes, Parse returns a journal or an error. The journal has no more marks and frames than fit into the bytes.
func FuzzParse(f *testing.F) {
	f.Add(testMarks(2), testFrames())
	f.Add([]byte("DPSM"), []byte("DPSF"))
	f.Fuzz(func(t *testing.T, marks, frames []byte) {
		j, err := Parse(marks, frames)
		if err != nil {
			return
		}
		if len(j.Marks) > len(marks)/RecordSize || j.Frames > int64(len(frames)/frameHeader) {
			t.Fatalf("%d marks of %d bytes, %d frames of %d bytes", len(j.Marks), len(marks), j.Frames, len(frames))
		}
	})
}

// dpsight may be killed after it has renamed a sealed file, and before it has removed the two files of the journal.
// After such a kill, the journal must not appear twice.
func TestSealInterrupted(t *testing.T) {
	for _, left := range []string{"both", "marks"} {
		dir := t.TempDir()
		h := MarksHeader{PID: 7, StartNS: 9}
		marks := Mark{K: 1, Kind: Start, TimeNS: 1}.Append(AppendMarksHeader(nil, h))
		frames := AppendFrame(AppendHeader(nil), FrameProcess, []byte(`{"pid":7}`))
		live := filepath.Join(dir, "7-9")
		write := func() {
			if err := os.WriteFile(live+marksSuffix, marks, 0o600); err != nil {
				t.Fatal(err)
			}
			if left == "both" {
				if err := os.WriteFile(live+framesSuffix, frames, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		write()
		if err := os.WriteFile(live+framesSuffix, frames, 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := Seal(dir); n != 1 || err != nil {
			t.Fatalf("%d sealed, %v", n, err)
		}
		write()
		if journals, err := ReadDir(dir); err != nil || len(journals) != 1 || journals[0].Process == nil {
			t.Errorf("%s left: %d journals, %v", left, len(journals), err)
		}
		if n, err := Seal(dir); n != 0 || err != nil {
			t.Errorf("%s left: %d sealed again, %v", left, n, err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 || entries[0].Name() != SealedName(0) {
			t.Errorf("%s left: %v, %v", left, entries, err)
		}
	}
}
