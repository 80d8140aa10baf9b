package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// liveRun makes a run as a killed collector leaves it: the manifest, and a journal that consists of the two given
// files.
func liveRun(t *testing.T, marks, frames []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	folder := filepath.Join(dir, spool.Dir)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	raw := fixture(t, "raw", rawStore)
	m, err := schemas.ReadManifest(filepath.Join(raw, journalID(1)))
	if err != nil {
		t.Fatal(err)
	}
	m.Status, m.Reason = schemas.StatusPartial, "the collector did not finish"
	if err := schemas.WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	// No process has this id.
	for name, b := range map[string][]byte{"999999999-1.marks": marks, "999999999-1.frames": frames} {
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// If a journal is cut at any place, dpsight ingests the intact part before the cut. The verdict is not lossy, and a
// longer part never gives a lower peak.
func TestTornJournals(t *testing.T) {
	marks, frames, err := spool.Unpack(filepath.Join(fixture(t, "raw", rawStore), journalID(1), spool.Dir,
		spool.SealedName(0)))
	if err != nil {
		t.Fatal(err)
	}
	var peak int64
	const cuts = 10
	for i := 1; i <= cuts; i++ {
		dir := liveRun(t, marks, frames[:len(frames)*i/cuts-i%2])
		must(t, "", "ingest", dir)
		r, err := schemas.ReadIngestReport(dir)
		if err != nil || len(r.Ranks) != 1 {
			t.Fatalf("cut %d: %+v, %v", i, r, err)
		}
		if torn := i%2 == 1; torn && !r.Ranks[0].Torn {
			t.Errorf("cut %d: %+v", i, r.Ranks[0])
		}
		left, _ := filepath.Glob(filepath.Join(dir, spool.Dir, "*"))
		if len(left) != 1 || filepath.Base(left[0]) != spool.SealedName(0) {
			t.Errorf("cut %d: the spool holds %v", i, left)
		}
		out := dpsight(t, "", "analyze", "breakdown", dir, "--format", "json")
		if out.code != exitDone {
			if !strings.Contains(out.stderr, "has no allocator events") {
				t.Errorf("cut %d: %s", i, out.stderr)
			}
			continue
		}
		var doc breakdownDoc
		if err := json.Unmarshal([]byte(out.stdout), &doc); err != nil {
			t.Fatal(err)
		}
		d := doc.Runs[0].Devices[0]
		if d.Allocated < peak || d.Conservation.Verdict == schemas.Lossy {
			t.Errorf("cut %d: %d bytes after %d before, %+v", i, d.Allocated, peak, d.Conservation)
		}
		peak = d.Allocated
	}
	if peak <= 0 {
		t.Error("nothing was recovered")
	}
}

// If a run ended well, its journal is sealed or complete. A journal that is neither has lost its end. Neither the
// tables nor a check may hide that a journal has lost its end.
func TestLostTails(t *testing.T) {
	raw := filepath.Join(fixture(t, "raw", rawStore), journalID(1))
	marks, frames, err := spool.Unpack(filepath.Join(raw, spool.Dir, spool.SealedName(0)))
	if err != nil {
		t.Fatal(err)
	}
	all, err := spool.ScanFrames(frames)
	if err != nil {
		t.Fatal(err)
	}
	baseline := filepath.Join(t.TempDir(), "baseline.json")
	must(t, "", "check", filepath.Join(journalStore(t), journalID(1)), "--write-baseline", baseline)
	for name, b := range map[string][]byte{"torn": frames[:len(frames)*6/10],
		"a frame less": frames[:all[len(all)-1].Offset], "half of the frames": frames[:all[len(all)/2].Offset],
		"whole": frames} {
		dir := liveRun(t, marks, b)
		m, err := schemas.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Status, m.Reason = schemas.StatusOK, ""
		if err := schemas.WriteManifest(dir, m); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			r := dpsight(t, "", "ingest", "--again", dir)
			if whole := name == "whole"; whole != (r.code == exitDone) ||
				!whole && !strings.Contains(r.stderr, "the recording is not whole: the run ended well") {
				t.Errorf("%s: exit code %d\n%s", name, r.code, r.stderr)
			}
		}
		if r := dpsight(t, "", "check", dir, "--baseline", baseline); (r.code == exitDone) != (name == "whole") {
			t.Errorf("%s: a check says %d\n%s%s", name, r.code, r.stdout, r.stderr)
		}
		if got, err := os.ReadFile(filepath.Join(dir, spool.Dir, "999999999-1.frames")); name != "whole" &&
			(err != nil || string(got) != string(b)) {
			t.Errorf("%s: the journal is another, %v", name, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(raw)); err != nil {
		t.Fatal(err)
	}
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Collector.SealedJournals = 2
	if err := schemas.WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	if r := dpsight(t, "", "ingest", dir); r.code == exitDone || !strings.Contains(r.stderr,
		"1 of the 2 journals that were sealed are gone") {
		t.Errorf("a journal less: %s", r.stderr)
	}
}

// A file that is no journal is refused by name, and stays where it is.
func TestForeignJournals(t *testing.T) {
	for name, b := range map[string][2][]byte{
		"marks":  {[]byte("nothing to see here, and that at some length"), nil},
		"frames": {nil, []byte("nothing to see here, and that at some length")},
	} {
		dir := liveRun(t, b[0], b[1])
		r := dpsight(t, "", "ingest", dir)
		if r.code != exitUsage || strings.Count(r.stderr, "dpsight: error: ") != 1 ||
			!strings.Contains(r.stderr, "999999999-1") {
			t.Errorf("%s: exit code %d\n%s", name, r.code, r.stderr)
		}
		for i, file := range []string{"999999999-1.marks", "999999999-1.frames"} {
			if got, err := os.ReadFile(filepath.Join(dir, spool.Dir, file)); err != nil || string(got) != string(b[i]) {
				t.Errorf("%s: %s is now %q, %v", name, file, got, err)
			}
		}
	}
}
