package ingest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

const journals = "testdata/journals"

// often returns n, or n/5 with -short. Tests under the race detector use -short, since they take ten times as long.
func often(n int) int {
	if testing.Short() {
		return n / 5
	}
	return n
}

// folder makes a run folder as package collect does, with the journal of a recorded run.
func folder(t *testing.T, name string) string {
	t.Helper()
	dir := empty(t, name)
	b, err := os.ReadFile(filepath.Join(journals, name+".dps.zst"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, spool.Dir, spool.SealedName(0)), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// empty makes a run folder without a journal.
func empty(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Join(dir, spool.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	m := &schemas.Manifest{RunID: name, Name: name, Source: schemas.Predicted, Status: schemas.StatusPartial,
		Start: time.Unix(1, 0).UTC(),
		GPUs:  []schemas.GPU{{Index: 0, UUID: "GPU-0"}}}
	if err := schemas.WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
	return dir
}

// live makes a run folder with a journal that the collector has not sealed: a marks file and a frames file.
func live(t *testing.T, pid int, marks, frames []byte) string {
	t.Helper()
	dir := empty(t, "live")
	base := filepath.Join(dir, spool.Dir, fmt.Sprintf("%d-17", pid))
	for suffix, b := range map[string][]byte{".marks": marks, ".frames": frames} {
		if err := os.WriteFile(base+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// unpacked returns the bytes of a recorded journal's two files.
func unpacked(t *testing.T, name string) (marks, frames []byte) {
	t.Helper()
	marks, frames, err := spool.Unpack(filepath.Join(journals, name+".dps.zst"))
	if err != nil {
		t.Fatal(err)
	}
	return marks, frames
}

// rewritten returns a copy of a frames file in which each frame has the payload that edit returns. If edit returns nil,
// the copy lacks the frame.
func rewritten(t *testing.T, frames []byte, edit func(i int, f spool.Frame) []byte) []byte {
	t.Helper()
	all, err := spool.ScanFrames(frames)
	if err != nil {
		t.Fatal(err)
	}
	out := spool.AppendHeader(nil)
	for i, f := range all {
		if b := edit(i, f); b != nil {
			out = spool.AppendFrame(out, f.Type, b)
		}
	}
	return out
}

// run ingests a folder and checks properties that the tables must have after any ingest.
func run(t *testing.T, dir string) *schemas.IngestReport {
	t.Helper()
	before, err := os.ReadFile(filepath.Join(dir, schemas.ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(dir, Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	after, _ := os.ReadFile(filepath.Join(dir, schemas.ManifestFile))
	if string(before) != string(after) {
		t.Error("ingest changed run.json")
	}
	read, err := schemas.ReadIngestReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(r)
	b, _ := json.Marshal(read)
	if string(a) != string(b) {
		t.Errorf("the report on disk differs:\n%s\n%s", a, b)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"+schemas.PartialSuffix))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return r
}

// rows reads a table, and fails the test if the table does not exist.
func rows[T any](t *testing.T, table schemas.Table[T], dir string) []T {
	t.Helper()
	out, err := table.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// breakdown sums the requested bytes by category just after event seq, and counts slack as a category. breakdown reads
// nothing except the two tables.
func breakdown(allocations []schemas.Allocation, owners []schemas.Owner, seq int64) map[string]int64 {
	category := map[int64]string{}
	for i := range owners {
		o := &owners[i]
		if !o.HoldsAt(seq) {
			continue
		}
		if c, ok := category[o.AllocID]; !ok || schemas.Precedence(o.Category) < schemas.Precedence(c) {
			category[o.AllocID] = o.Category
		}
	}
	out := map[string]int64{}
	for i := range allocations {
		a := &allocations[i]
		if a.LiveAt(seq) {
			out[category[a.AllocID]] += a.RequestedBytes
			out[schemas.Slack] += a.BlockBytes - a.RequestedBytes
		}
	}
	return out
}

func total(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

func hasWarning(r *schemas.IngestReport, part string) bool {
	for _, w := range r.Warnings {
		if strings.Contains(w, part) {
			return true
		}
	}
	return false
}
