package replay_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/klauspost/compress/zstd"
)

// rows returns the list of a device's blocks in a snapshot.
func rows(s *torchsnap.Snapshot, device int) []schemas.SegmentBlock {
	var out []schemas.SegmentBlock
	for _, g := range s.Segments {
		if g.Device != device {
			continue
		}
		for _, b := range g.Blocks {
			out = append(out, schemas.SegmentBlock{Seq: int64(s.Devices[device].Len()), SegmentAddress: g.Address,
				SegmentBytes: g.TotalSize,
				SegmentType:  g.Type, Stream: g.Stream, Pool: g.Pool, Expandable: g.Expandable, Address: b.Address,
				BlockBytes:     b.Size,
				RequestedBytes: max(b.RequestedSize, 0), State: b.State})
		}
	}
	return out
}

func settings(t *testing.T, s *torchsnap.Snapshot) replay.Settings {
	t.Helper()
	out := replay.Settings{MaxSplitSize: max(s.Settings.MaxSplitSize, 0),
		ExpandableSegments: s.Settings.ExpandableSegments}
	for mib, n := range s.Settings.RoundupPower2Divisions {
		if err := out.SetDivisions(mib, n); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// replayFile replays the first device of a snapshot file, with counters at the last event.
func replayFile(t *testing.T, path string) *replay.Result {
	t.Helper()
	s, err := torchsnap.ReadFile(path, torchsnap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := &s.Devices[0]
	res, err := replay.Run(e, settings(t, s), nil, rows(s, 0), int64(e.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if res.Anomalies != (replay.Anomalies{}) {
		t.Errorf("%s: anomalies in a recording from the start: %s", filepath.Base(path), res.Anomalies.Reason())
	}
	// Requested bytes are conserved: all requests minus all freed requests equal the requested bytes in the final list.
	var balance int64
	for i := range e.Len() {
		switch e.Action[i] {
		case schemas.ActionAlloc:
			balance += e.Size[i]
		case schemas.ActionFreeCompleted:
			balance -= e.Size[i]
		}
	}
	for _, b := range rows(s, 0) {
		if b.State != schemas.BlockInactive {
			balance -= b.RequestedBytes
		}
	}
	if balance != 0 || res.Final.Requested != 0 {
		t.Errorf("%s: %d requested bytes are not accounted for; %d by the replay", filepath.Base(path), balance,
			res.Final.Requested)
	}
	if !res.Final.Exact() || res.Final.Unchecked > 0 {
		t.Errorf("%s: %d of %d blocks differ from the snapshot's own list, %d unchecked: %v", filepath.Base(path),
			res.Final.Differing,
			res.Final.Blocks, res.Final.Unchecked, res.Final.Differences)
	}
	return res
}

const recorded = "../torchsnap/testdata"

// truth has torch.cuda.max_memory_allocated() and max_memory_reserved() of three trainings with Opacus on an H200.
var truth = []struct {
	file                string
	events, blocks      int64
	allocated, reserved int64
}{
	{"vanilla", 5358, 242, 558963712, 578 << 20},
	{"dpsgd", 13980, 340, 591393792, 638 << 20},
	{"fgc", 18889, 401, 658543104, 686 << 20},
}

func TestRecordedSnapshots(t *testing.T) {
	for _, w := range truth {
		res := replayFile(t, filepath.Join(recorded, w.file+".pickle.zst"))
		if res.Events != w.events || res.Final.Blocks != w.blocks || res.PeakAllocated != w.allocated ||
			res.PeakReserved != w.reserved {
			t.Errorf("%s: %d events, %d blocks, peaks %d and %d; want %d, %d, %d and %d", w.file, res.Events,
				res.Final.Blocks,
				res.PeakAllocated, res.PeakReserved, w.events, w.blocks, w.allocated, w.reserved)
		}
	}
}

// python returns a Python interpreter, which runs the tools beside the test data. python skips the test if there is no
// Python.
func python(t *testing.T) string {
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT CHECKED AGAINST THE ORACLE: no python3 on PATH")
	}
	return path
}

// agree replays snapshots with this package and with an independent replay in Python, and compares the results.
func agree(t *testing.T, files ...string) {
	t.Helper()
	cmd := exec.Command(python(t), append([]string{"../testdata/tools/replay_oracle.py"}, files...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(out))
	for _, file := range files {
		var want struct {
			Events, Blocks, Unknown int64
			PeakAllocated           int64 `json:"peak_allocated"`
			PeakReserved            int64 `json:"peak_reserved"`
			PeakRequested           int64 `json:"peak_requested"`
			PeakEvent               int64 `json:"peak_event"` // counted from 0
			Differ                  int64 `json:"blocks_that_differ"`
		}
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if want.Differ != 0 || want.Unknown != 0 || want.Events == 0 {
			t.Fatalf("%s: the oracle itself fails: %+v", file, want)
		}
		res := replayFile(t, file)
		if res.Events != want.Events || res.Final.Blocks != want.Blocks || res.PeakAllocated != want.PeakAllocated ||
			res.PeakSeq != want.PeakEvent+1 || res.PeakReserved != want.PeakReserved {
			t.Errorf("%s: %d events, %d blocks, peaks %d at %d and %d; the oracle has %+v", filepath.Base(file),
				res.Events, res.Final.Blocks,
				res.PeakAllocated, res.PeakSeq, res.PeakReserved, want)
		}
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("the oracle found more devices than files")
	}
}

func TestOracleOnRecorded(t *testing.T) {
	python(t)
	var files []string
	for _, w := range truth {
		files = append(files, unpack(t, filepath.Join(recorded, w.file+".pickle.zst")))
	}
	agree(t, files...)
}

func unpack(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), filepath.Base(path[:len(path)-len(".zst")]))
	if err := os.WriteFile(out, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOracleOnGenerated(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for seed := range 4 {
		out := filepath.Join(dir, strconv.Itoa(seed)+".pickle")
		cmd := exec.Command(python(t), "../testdata/tools/make_snapshot.py", "8000", out, "1", strconv.Itoa(seed))
		if msg, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, msg)
		}
		files = append(files, out)
	}
	agree(t, files...)
}
