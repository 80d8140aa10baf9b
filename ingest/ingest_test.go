package ingest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

var update = flag.Bool("update", false, "write the golden files anew")

type truth struct {
	Peak           int64 `json:"peak"`
	Reserved       int64 `json:"reserved"`
	Parameters     int64 `json:"parameters"`
	OptimizerState int64 `json:"optimizer_state"`
	Steps          int64 `json:"steps"`
}

// For the recorded runs, the tables have the same bytes as torch and the model reported.
func TestJournals(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(journals, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var truths map[string]truth
	if err := json.Unmarshal(b, &truths); err != nil {
		t.Fatal(err)
	}
	for name, want := range truths {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, name)
			r := run(t, dir)
			if len(r.Devices) != 1 || len(r.Ranks) != 1 {
				t.Fatalf("%d devices, %d ranks", len(r.Devices), len(r.Ranks))
			}
			d := r.Devices[0]
			if *d.TorchPeakAllocatedBytes != want.Peak || want.Reserved != 0 &&
				*d.TorchPeakReservedBytes != want.Reserved || r.Steps.Derived != want.Steps {
				t.Errorf("torch's peaks %d, %d; %d steps; want %+v", *d.TorchPeakAllocatedBytes,
					*d.TorchPeakReservedBytes, r.Steps.Derived, want)
			}
			if n := len(rows(t, schemas.Steps, dir)); int64(n) != want.Steps {
				t.Errorf("%d rows of steps", n)
			}
			if name == "bare" {
				if d.Verdict != schemas.Unverifiable || !strings.Contains(d.Reason, "bare") || d.Events != 0 {
					t.Errorf("%+v", d)
				}
				if s := rows(t, schemas.Steps, dir); *s[1].AllocatedBegin == 0 ||
					*s[1].AllocatedBegin != *s[0].AllocatedEnd || s[1].BeginSeq != 0 {
					t.Errorf("bytes of a bare step: %+v", s[1])
				}
			} else {
				recorded(t, dir, d, want)
			}
			golden(t, name, dir, r)
		})
	}
}

func recorded(t *testing.T, dir string, d schemas.DeviceVerdict, want truth) {
	if d.Verdict != schemas.Exact || d.PeakAllocatedBytes != want.Peak || d.ResidueBytes != 0 || d.MissingEvents != 0 ||
		d.AmbiguousTags != 0 || d.UnboundTags != 0 || d.DifferingBlocks != 0 || d.InstrumentedPeakSeq == nil {
		t.Errorf("verdict %+v", d)
	}
	allocations, owners := rows(t, schemas.Allocations, dir), rows(t, schemas.Owners, dir)
	checkpoints := rows(t, schemas.Checkpoints, dir)
	for _, c := range checkpoints {
		if !c.Agrees {
			t.Errorf("checkpoint %+v", c)
		}
		if got := total(breakdown(allocations, owners, c.Seq)); got != c.AllocatedBytes {
			t.Errorf("at event %d categories sum to %d, torch says %d", c.Seq, got, c.AllocatedBytes)
		}
	}
	at := breakdown(allocations, owners, *d.InstrumentedPeakSeq)
	if total(at) != want.Peak {
		t.Errorf("the peak is broken down into %d of %d bytes", total(at), want.Peak)
	}
	if rest := at[schemas.Other] + at[schemas.Untraced]; rest*20 > want.Peak {
		t.Errorf("%d of %d bytes are nobody's", rest, want.Peak)
	}
	for _, s := range rows(t, schemas.Steps, dir) {
		if s.Step == 0 {
			continue // the optimizer allocates its state in step 0
		}
		for _, seq := range []int64{s.BeginSeq, s.EndSeq} {
			at := breakdown(allocations, owners, seq)
			if at[schemas.Parameters] != want.Parameters || at[schemas.OptimizerState] != want.OptimizerState {
				t.Errorf("step %d, event %d: parameters %d, optimizer state %d; want %d, %d", s.Step, seq,
					at[schemas.Parameters], at[schemas.OptimizerState], want.Parameters, want.OptimizerState)
			}
		}
		if s.EndSeq == s.BeginSeq || s.WallNS <= 0 || s.GPUNS != 0 {
			t.Errorf("step %+v", s)
		}
	}
	seq := int64(0)
	for _, p := range rows(t, schemas.Phases, dir) {
		if p.BeginSeq != seq {
			t.Fatalf("phase %+v does not follow event %d", p, seq)
		}
		seq = p.EndSeq
	}
	if n := rows(t, schemas.Events, dir); int64(len(n)) != d.Events || seq != d.Events {
		t.Errorf("%d events in the table, phases end at %d, want %d", len(n), seq, d.Events)
	}
	if len(rows(t, schemas.Marks, dir)) == 0 || len(rows(t, schemas.Modules, dir)) == 0 ||
		len(rows(t, schemas.Segments, dir)) == 0 {
		t.Error("a table is empty")
	}
}

// golden compares a readable summary of the tables with a golden file.
func golden(t *testing.T, name, dir string, r *schemas.IngestReport) {
	t.Helper()
	var b strings.Builder
	d := r.Devices[0]
	fmt.Fprintf(&b, "verdict %s %s\nsteps %+v\n", d.Verdict, d.Reason, r.Steps)
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning %s\n", w)
	}
	for _, o := range r.OOMs {
		fmt.Fprintf(&b, "oom %d bytes at event %d: step %d, %s, module %s, fatal %v\n", o.RequestedBytes, o.Seq, o.Step,
			o.Phase, o.Module, o.Fatal)
	}
	for _, p := range rows(t, schemas.Processes, dir) {
		fmt.Fprintf(&b, "process rank %d, device %d %s, ended by %s\n", p.Rank, p.Device, p.UUID, p.Ended)
	}
	allocations, owners := rows(t, schemas.Allocations, dir), rows(t, schemas.Owners, dir)
	phases := rows(t, schemas.Phases, dir)
	for _, s := range rows(t, schemas.Steps, dir) {
		fmt.Fprintf(&b,
			"step %d: microbatches %d, warm-up %v, instrumented %v, recorded %v, events (%d, %d], peak %d\n", s.Step,
			s.Microbatches,
			s.Warmup, s.Instrumented, s.Recorded, s.BeginSeq, s.EndSeq, schemas.OrZero(s.PeakBytes))
		if d.Events == 0 {
			continue
		}
		for _, p := range phases {
			if p.Step != s.Step || p.EndSeq == p.BeginSeq {
				continue
			}
			at := breakdown(allocations, owners, p.PeakSeq)
			fmt.Fprintf(&b, "  %-13s (%d, %d] peak %d at %d:", p.Phase, p.BeginSeq, p.EndSeq,
				schemas.OrZero(p.PeakBytes), p.PeakSeq)
			for _, c := range schemas.Categories {
				if at[c] > 0 {
					fmt.Fprintf(&b, " %s %d", c, at[c])
				}
			}
			b.WriteByte('\n')
		}
	}
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		a, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range a {
			if i >= len(w) || a[i] != w[i] {
				t.Errorf("%s, line %d:\n got %s\nwant %s", path, i+1, a[i],
					slices.Concat(w, []string{"(end)"})[min(i, len(w))])
				break
			}
		}
	}
}

// A bare step has nearly the same breakdown at its peak as the instrumented step after it.
func TestBareStepsLikeInstrumented(t *testing.T) {
	for _, name := range []string{"vanilla", "dpsgd", "ghost"} {
		dir := folder(t, name)
		run(t, dir)
		allocations, owners := rows(t, schemas.Allocations, dir), rows(t, schemas.Owners, dir)
		var steps []map[string]int64
		for _, s := range rows(t, schemas.Steps, dir) {
			for _, p := range rows(t, schemas.Phases, dir) {
				if p.Step == s.Step && *p.PeakBytes == *s.PeakBytes {
					steps = append(steps, breakdown(allocations, owners, p.PeakSeq))
					break
				}
			}
		}
		for _, c := range schemas.Categories {
			bare, instrumented := steps[3][c], steps[4][c]
			// In the run ghost, the bytes of the embedding layer depend on the ids in the batch.
			if d := abs(bare - instrumented); d*100 > instrumented && d > 4096 {
				t.Errorf("%s: %s is %d in a bare step, %d in an instrumented one", name, c, bare, instrumented)
			}
		}
	}
}

// A second ingest of the same folder gives the same tables, and leaves no temporary files.
func TestAgain(t *testing.T) {
	dir := folder(t, "vanilla")
	run(t, dir)
	before := rows(t, schemas.Owners, dir)
	run(t, dir)
	if !slices.Equal(before, rows(t, schemas.Owners, dir)) {
		t.Error("the second ingest differs")
	}
}

// If a SIGKILL cuts a journal at any byte, ingest recovers all drains before the cut exactly.
func TestCutAnywhere(t *testing.T) {
	for _, name := range []string{"vanilla", "windows"} {
		t.Run(name, func(t *testing.T) { cutAnywhere(t, name) })
	}
}

func cutAnywhere(t *testing.T, name string) {
	marks, frames := unpacked(t, name)
	rnd := rand.New(rand.NewPCG(7, 7))
	for range often(25) {
		m, f := 32+rnd.IntN(len(marks)-32), rnd.IntN(len(frames))
		dir := live(t, 1<<30, marks[:m], frames[:f])
		r := run(t, dir)
		whole, _ := spool.ScanFrames(frames[:f])
		drains := 0
		for i := 1; i < len(whole); i++ {
			if whole[i].Type == spool.FrameCheckpoint && whole[i-1].Type == spool.FrameAllocator &&
				!opensWindow(t, whole[i]) {
				drains++
			}
		}
		var events, checked int64
		for _, d := range r.Devices {
			events += d.Events
			if drains > 0 && d.Verdict != schemas.Exact {
				t.Errorf("cut at %d: %+v", f, d)
			}
		}
		for _, c := range rows(t, schemas.Checkpoints, dir) {
			if c.Agrees {
				checked++
			}
		}
		if checked != int64(drains) || drains > 0 && events == 0 {
			t.Errorf("cut at %d: %d of %d drains recovered, %d events", f, checked, drains, events)
		}
		if !hasWarning(r, "without its last word") {
			t.Errorf("warnings %q", r.Warnings)
		}
		if left, _ := spool.LiveJournals(filepath.Join(dir, spool.Dir)); len(left) > 0 {
			t.Error("the journal was not sealed")
		}
	}
}

func TestStillRunning(t *testing.T) {
	marks, frames := unpacked(t, "killed")
	dir := live(t, os.Getpid(), marks, frames)
	r := run(t, dir)
	if !hasWarning(r, "still runs") || r.Devices[0].Verdict != schemas.Exact {
		t.Errorf("%q, %+v", r.Warnings, r.Devices)
	}
	if left, _ := spool.LiveJournals(filepath.Join(dir, spool.Dir)); len(left) != 1 {
		t.Error("the journal of a living process was sealed")
	}
}

// ingest reports that a recording lost events, or that its counters disagree with its events.
func TestLossy(t *testing.T) {
	marks, frames := unpacked(t, "vanilla")
	stats := func(key string, by int64) func(int, spool.Frame) []byte {
		n := 0
		return func(_ int, f spool.Frame) []byte {
			if f.Type != spool.FrameCheckpoint {
				return f.Payload
			}
			if n++; n != 4 { // change the counters of one drain only
				return f.Payload
			}
			var c map[string]any
			if err := json.Unmarshal(f.Payload, &c); err != nil {
				t.Fatal(err)
			}
			s := c["devices"].([]any)[0].(map[string]any)["stats"].(map[string]any)
			s[key] = int64(s[key].(float64)) + by
			b, _ := json.Marshal(c)
			return b
		}
	}
	dropped, drains := 0, 0
	for _, c := range []struct {
		name    string
		edit    func(int, spool.Frame) []byte
		reason  string
		residue int64
		missing bool
	}{
		{"events lost", stats("allocation.all.allocated", 3), "3 allocator events are missing", 0, true},
		{"bytes lost", stats("requested_bytes.all.allocated", 512), "differ at", 0, false},
		{"another counter", stats("allocated_bytes.all.current", 512), "differ at 1 of", 512, false},
		{"another peak", stats("allocated_bytes.all.peak", 1024), "differ at 1 of", 0, false},
		{"another reserve", stats("reserved_bytes.all.current", -2<<20), "differ at 1 of", 0, false},
		{"a drain lost", func(_ int, f spool.Frame) []byte {
			if f.Type == spool.FrameAllocator {
				if dropped++; dropped == 3 {
					return nil
				}
			}
			return f.Payload
		}, "allocator events are missing", -1, true},
		{"a damaged drain without its counters", func(i int, f spool.Frame) []byte {
			if f.Type == spool.FrameAllocator {
				if drains++; drains == 3 {
					return []byte("\x80\x04cos\nsystem\n")
				}
			}
			if f.Type == spool.FrameCheckpoint && drains == 3 {
				return nil
			}
			return f.Payload
		}, "the allocator's events at byte", -1, true},
		{"a damaged drain", func(i int, f spool.Frame) []byte {
			if f.Type == spool.FrameAllocator && i > 20 {
				return append([]byte("\x80\x04cos\nsystem\n"), f.Payload...)
			}
			return f.Payload
		}, "the allocator's events at byte", -1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := run(t, live(t, 1<<30, marks, rewritten(t, frames, c.edit))).Devices[0]
			if d.Verdict != schemas.Lossy || !strings.Contains(d.Reason, c.reason) || c.residue >= 0 &&
				d.ResidueBytes != c.residue ||
				(d.MissingEvents > 0) != c.missing && !strings.HasPrefix(c.name, "a damaged drain") {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestNoJournal(t *testing.T) {
	dir := empty(t, "nothing")
	r := run(t, dir)
	if len(r.Devices) != 0 || !hasWarning(r, "no journal") {
		t.Errorf("%+v", r)
	}
	if n := len(rows(t, schemas.Allocations, dir)); n != 0 {
		t.Errorf("%d rows", n)
	}
	run(t, dir) // again
}

// If a run has tables and its journal is missing, ingest keeps the tables. ingest does not treat such a run as a run
// that never had a journal.
func TestLostJournal(t *testing.T) {
	dir := folder(t, "vanilla")
	b, err := os.ReadFile(filepath.Join(dir, spool.Dir, spool.SealedName(0)))
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(dir, spool.Dir, spool.SealedName(1))
	if err := os.WriteFile(second, b, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, dir)
	before := contents(t, dir)
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(dir, Options{}); err == nil || !strings.Contains(err.Error(), "the journal of rank 1 is gone") {
		t.Errorf("error %v", err)
	}
	if !maps.Equal(before, contents(t, dir)) {
		t.Error("the folder changed")
	}
}

func TestOutOfMemory(t *testing.T) {
	r := run(t, folder(t, "oom"))
	if len(r.OOMs) != 2 || r.OOMs[0].Fatal || !r.OOMs[1].Fatal {
		t.Fatalf("%+v", r.OOMs)
	}
	for i, step := range []int64{2, 5} {
		o := r.OOMs[i]
		if o.Step != step || o.Phase != schemas.PhaseForward || o.Seq == 0 || o.RequestedBytes != 1<<30 {
			t.Errorf("%+v", o)
		}
	}
}

// A failed ingest leaves the run folder as it was, even if it had already written files.
func TestFailureLeavesTheOldResult(t *testing.T) {
	vanilla := folder(t, "vanilla")
	run(t, vanilla)
	imported, err := Import(filepath.Join(snapshots, "vanilla.pickle.zst"), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{vanilla, imported[0].Dir} {
		for _, name := range []string{schemas.Owners.File(), schemas.Processes.File()} {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o755)); err != nil {
				t.Fatal(err)
			}
			before := contents(t, dir)
			if _, err := Run(dir, Options{Version: "another"}); err == nil {
				t.Errorf("%s: no error", name)
			}
			if after := contents(t, dir); !maps.Equal(before, after) {
				t.Errorf("%s cannot be written: the folder changed", name)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Run(dir, Options{Version: "another"}); err != nil {
			t.Error(err)
		}
	}
}

// contents returns the contents of the files in a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		if !e.IsDir() {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			out[e.Name()] = string(b)
		}
	}
	return out
}

// A failed ingest leaves no half-written tables.
func TestFailureLeavesNothing(t *testing.T) {
	dir := folder(t, "vanilla")
	run(t, dir)
	if err := os.WriteFile(filepath.Join(dir, spool.Dir, spool.SealedName(1)), []byte("no journal"),
		0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(dir, Options{}); err == nil || !strings.Contains(err.Error(), "rank-1") {
		t.Errorf("error %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+schemas.PartialSuffix)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// If a journal has damaged marks and tags, ingest still returns tables whose categories sum to the last counter. ingest
// does not panic.
func TestDamagedMarksAndTags(t *testing.T) {
	marks, frames := unpacked(t, "killed")
	for seed := range uint64(often(40)) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		m := slices.Clone(marks)
		for range 1 + rnd.IntN(200) {
			at := 32 * (1 + rnd.IntN(len(m)/32-1))
			switch rnd.IntN(4) {
			case 0:
				m[at+6] = byte(rnd.IntN(60)) // the mark's kind
			case 1:
				m[at+7] = byte(rnd.IntN(256)) // the mark's flags
			case 2:
				m[at+4+rnd.IntN(2)] = byte(rnd.IntN(4)) // the mark's thread
			default:
				clear(m[at : at+32]) // a mark that the process did not finish
			}
		}
		f := rewritten(t, frames, func(_ int, f spool.Frame) []byte {
			if f.Type != spool.FrameTags {
				return f.Payload
			}
			b := slices.Clone(f.Payload)
			for range 20 {
				b[rnd.IntN(len(b))] = byte(rnd.IntN(256))
			}
			return b
		})
		dir := live(t, 1<<30, m, f)
		d := run(t, dir).Devices[0]
		if d.Verdict != schemas.Exact {
			t.Fatalf("seed %d: %+v", seed, d)
		}
		checkpoints := rows(t, schemas.Checkpoints, dir)
		last := checkpoints[len(checkpoints)-1]
		if got := total(breakdown(rows(t, schemas.Allocations, dir), rows(t, schemas.Owners, dir), last.Seq)); got !=
			last.AllocatedBytes {
			t.Fatalf("seed %d: categories sum to %d, torch says %d", seed, got, last.AllocatedBytes)
		}
	}
}
