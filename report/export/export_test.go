package export

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/schemas"
)

// run returns a run with two devices. The first device has events and a name that is hard to quote, and the second
// device has only steps.
func run() *Run {
	peak := int64(48)
	points := []timeline.TimelinePoint{{HighEvent: 0, Bytes: []int64{0, 0}},
		{HighEvent: 1, HighBytes: 16, Bytes: []int64{16, 0}}, {HighEvent: 2, HighBytes: 48, Bytes: []int64{16, 32}},
		{HighEvent: 3, HighBytes: 32, Bytes: []int64{0, 32}}}
	return &Run{Identity: identity.Identity{RunID: "r", Name: "a\"</script>\u00e9\x01"},
		Samples: []schemas.Sample{{Device: 3, TimeNS: 900_000, UsedBytes: 98}, {Device: 3, TimeNS: 2_000_000, UsedBytes: 99}},
		Devices: []Device{{Device: "cuda:0", Timeline: &timeline.DeviceTimeline{Points: points,
			Categories: []timeline.CategoryMaximum{{Category: schemas.Parameters}, {Category: schemas.Activations}}},
			TimeNS: []int64{1_000_000, 1_000_000, 1_002_000}, Reserved: []memory.Level{{Seq: 1, Bytes: 64}},
			Steps: []schemas.Step{{Step: 0, StartNS: 1_000_000, EndNS: 1_002_500, BeginSeq: 0, EndSeq: 3, Recorded: true,
				PeakBytes: &peak}},
			Phases: []schemas.Phase{{Phase: schemas.PhaseForward, StartNS: 1_000_500, EndNS: 1_001_500, BeginSeq: 0,
				EndSeq: 2, PeakBytes: &peak}},
			Failed: []schemas.OOM{{Seq: 3, RequestedBytes: 7}},
			Marks:  []timeline.Mark{{Label: "a\nmark", At: memory.Moment{Event: 2}, Allocated: 48}}},
			{Device: "cuda:1", Rank: 1, Steps: []schemas.Step{{Step: 0, StartNS: 1_000_000, EndNS: 1_001_000}}}}}
}

// A trace is valid JSON, whatever the run's name is. Each counter has the values of its events, in order.
func TestTrace(t *testing.T) {
	var b bytes.Buffer
	if err := run().WritePerfetto(&b); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		TraceEvents []struct {
			PID, TID int
			Ph, Name string
			TS, Dur  float64
			Args     map[string]any
		}
		OtherData map[string]string
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if doc.OtherData["name"] != run().Name {
		t.Errorf("named %q", doc.OtherData["name"])
	}
	var said []string
	for _, e := range doc.TraceEvents {
		switch e.Ph {
		case "C":
			said = append(said, strings.Join([]string{e.Name, number(int64(e.TS * 1000)),
				number(int64(e.Args["bytes"].(float64)))}, " "))
		case "X", "i":
			said = append(said, e.Name+" "+number(int64(e.TS*1000))+" "+number(int64(e.Dur*1000)))
		}
	}
	want := `allocated 100000 0
parameters 100000 0
activations 100000 0
allocated 100000 16
parameters 100000 16
allocated 100000 48
activations 100000 32
allocated 102000 32
parameters 102000 0
reserved 100000 64
step 0 100000 2500
forward 100500 1000
out of memory 102000 0
mark a
mark 100000 0
step 0 100000 1000
GPU 3 in use 0 98
GPU 3 in use 1100000 99`
	if got := strings.Join(said, "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// An export overwrites the files of an earlier export, and no other files.
func TestFiles(t *testing.T) {
	for format, count := range map[string]int{Perfetto: 1, TensorBoard: 2, Arrow: 5} {
		dir := t.TempDir()
		files := run().Files(format, "name", nil)
		for range 2 {
			paths, err := WriteAll(dir, files, false)
			if err != nil || len(paths) != count {
				t.Fatalf("%s: %q, %v", format, paths, err)
			}
			for _, path := range paths {
				if !IsExport(path) {
					t.Errorf("%s is not known as an export", path)
				}
			}
		}
		path := filepath.Join(dir, filepath.FromSlash(files[0].Path))
		if err := os.WriteFile(path, []byte("a file of somebody else's"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := WriteAll(dir, files, false); err == nil || IsExport(path) {
			t.Errorf("%s: another file is written over", format)
		}
		if _, err := WriteAll(dir, files, true); err != nil {
			t.Errorf("%s, forced: %v", format, err)
		}
	}
}
