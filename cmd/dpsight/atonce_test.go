package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

const atOnceRun = "20261121T205109Z-vanilla-096510"

// pairs returns how many times a test runs two processes that do the same thing at the same time. rest includes the
// cases that `make test` leaves out.
func pairs(rest bool) int {
	if rest {
		return 50
	}
	return 6
}

// twice runs two dpsight processes at the same time, with the same arguments.
func twice(t *testing.T, args ...string) (out [2]result) {
	t.Helper()
	var both sync.WaitGroup
	for i := range out {
		both.Go(func() {
			var stdout, stderr strings.Builder
			cmd := exec.Command("dpsight", args...)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			cmd.Run()
			out[i] = result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
		})
	}
	both.Wait()
	for _, r := range out {
		if r.code != exitDone {
			t.Errorf("dpsight %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
		}
	}
	return out
}

// states returns the states of one input in two processes' CSV output, in alphabetical order.
func states(out [2]result) string {
	var words [2]string
	for i, r := range out {
		for _, word := range []string{schemas.IngestNew, schemas.IngestKnown, schemas.IngestRefused} {
			if strings.Contains(r.stdout, ","+word+",") {
				words[i] = word
			}
		}
		if strings.Contains(r.stdout, ",true,") {
			words[i] = "again"
		}
	}
	if words[0] > words[1] {
		words[0], words[1] = words[1], words[0]
	}
	return words[0] + " " + words[1]
}

// tidy checks that a run has all its tables, and that the store has no half-written files.
func tidy(t *testing.T, dir string) {
	t.Helper()
	report, err := schemas.ReadIngestReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := schemas.CheckTables(dir, report.Tables, slices.Collect(maps.Keys(report.Tables))...); err != nil {
		t.Error(err)
	}
	for _, depth := range []string{"*", "*/*", "*/*/*"} {
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), depth+schemas.PartialSuffix))
		if len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestIngestTwiceAtOnce(t *testing.T) {
	t.Parallel()
	for range pairs(testkit.WithRest()) {
		dir := filepath.Join(t.TempDir(), atOnceRun)
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../examples/mlp", atOnceRun))); err != nil {
			t.Fatal(err)
		}
		if got := states(twice(t, "ingest", "--format", "csv", dir)); got != "known new" {
			t.Errorf("ingest: %s", got)
		}
		tidy(t, dir)
		if got := states(twice(t, "ingest", "--again", "--format", "csv", dir)); got != "again again" {
			t.Errorf("ingest --again: %s", got)
		}
		tidy(t, dir)
	}
}

func TestImportTwiceAtOnce(t *testing.T) {
	t.Parallel()
	for range pairs(testkit.WithRest()) {
		store := t.TempDir()
		snapshot := "../../ingest/torchsnap/testdata/vanilla.pickle.zst"
		if got := states(twice(t, "ingest", "--format", "csv", "--store", store, snapshot)); got != "known new" {
			t.Errorf("%s", got)
		}
		runs, _ := filepath.Glob(filepath.Join(store, "*"))
		if len(runs) != 1 {
			t.Fatalf("the store has %v", runs)
		}
		tidy(t, runs[0])
	}
}

func TestBaselineTwiceAtOnce(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	dir := filepath.Join(store, atOnceRun)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../examples/mlp", atOnceRun))); err != nil {
		t.Fatal(err)
	}
	must(t, "", "ingest", dir)
	other := filepath.Join(store, "other")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(store, "baseline.json")
	if err := os.Symlink(other, file+schemas.PartialSuffix); err != nil {
		t.Fatal(err)
	}
	for range pairs(testkit.WithRest()) {
		for _, r := range twice(t, "check", "--write-baseline", file, "--store", store) {
			if !strings.Contains(r.stderr+r.stdout, "baseline of 1 experiment in "+file) {
				t.Errorf("%s%s", r.stdout, r.stderr)
			}
		}
		if b, err := schemas.ReadBaseline(file); err != nil || len(b.Experiments) != 1 {
			t.Fatalf("%+v, %v", b, err)
		}
		os.Remove(file)
	}
	if kept, _ := os.ReadFile(other); string(kept) != "mine" {
		t.Errorf("a link was followed: %q", kept)
	}
}

func TestReportTwiceAtOnce(t *testing.T) {
	t.Parallel()
	testkit.Rest(t)
	store := t.TempDir()
	dir := filepath.Join(store, atOnceRun)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../examples/mlp", atOnceRun))); err != nil {
		t.Fatal(err)
	}
	must(t, "", "ingest", dir)
	for range 10 {
		twice(t, "report", dir, "-o", filepath.Join(t.TempDir(), "report"))
	}
}
