package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// copyRun copies a run of a store under another id, with its manifest changed.
func copyRun(t *testing.T, from, store, id string, change func(*schemas.Manifest)) {
	t.Helper()
	dir := filepath.Join(store, id)
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.RunID = id
	change(m)
	if err := schemas.WriteManifest(dir, m); err != nil {
		t.Fatal(err)
	}
}

// If a run was killed or failed and was then made again, commands that compare all runs of a folder leave the first run
// out and print a note. The commands show the first run if the user names it.
func TestSupersededRunsAreLeftOut(t *testing.T) {
	t.Parallel()
	recorded, store, dir := journalStore(t), t.TempDir(), t.TempDir()
	start := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	add := func(id string, of int, key, status string) {
		copyRun(t, filepath.Join(recorded, journalID(of)), store, id, func(m *schemas.Manifest) {
			start = start.Add(time.Minute)
			m.Start, m.Status = start, status
			m.Suite = &schemas.SuiteRef{ID: "20260201T000000Z-s-000001", Name: "s", Key: key}
		})
	}
	add("vanilla-1", 0, "v", schemas.StatusOK)
	add("ghost-killed", 2, "g", schemas.StatusKilled)
	add("ghost-failed", 2, "g", schemas.StatusFailed)
	add("ghost-ok", 2, "g", schemas.StatusOK)
	add("dpsgd-oom", 1, "d", schemas.StatusOOM) // it was not run again, so it counts as a result

	const note = "dpsight: note: skipped 2 failed runs whose experiments were run again; "
	for _, args := range [][]string{
		{"check", store, "--write-baseline", "b.json"}, {"check", store, "--baseline", "b.json"},
		{"check", "vanilla-1", "--store", store, "--baseline", store, "--partial"},
		{"compare", store, "--rows", "method"}, {"report", store, "-o", "out"}, {"analyze", "overhead", store},
		{"analyze", "findings", store},
	} {
		r := must(t, dir, args...)
		if strings.Count(r.stderr, note) != 1 {
			t.Errorf("%v: %s", args, r.stderr)
		}
		if strings.Contains(r.stdout, "killed") || strings.Contains(r.stdout, "1 failed") {
			t.Errorf("%v:\n%s", args, r.stdout)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "out/summary.txt")); err != nil ||
		!strings.Contains(string(b), note[len("dpsight: note: "):]) || !strings.Contains(string(b), "oom") {
		t.Errorf("%v\n%s", err, b)
	}
	var doc struct {
		Cells []struct {
			RunIDs []string `json:"run_ids"`
		}
	}
	ids := func(args ...string) string {
		if err := json.Unmarshal([]byte(must(t, dir, append(args, "--rows", "method", "--format", "json")...).stdout),
			&doc); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, c := range doc.Cells {
			all = append(all, c.RunIDs...)
		}
		return strings.Join(all, " ")
	}
	if got := ids("compare", store); got != "vanilla-1 ghost-ok dpsgd-oom" {
		t.Errorf("by folder: %s", got)
	}
	if got := ids("compare", store, "ghost-killed", "--store", store); got != "vanilla-1 ghost-killed ghost-ok "+
		"dpsgd-oom" {
		t.Errorf("one of them by id: %s", got)
	}
}

// A check of a folder leaves out the trials of a search and says how many. check includes a trial if the user names it
// or the baseline has it.
func TestTrialsAreLeftOut(t *testing.T) {
	t.Parallel()
	recorded, runs, dir := journalStore(t), t.TempDir(), t.TempDir()
	start := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	add := func(id string, of int, key string) {
		copyRun(t, filepath.Join(recorded, journalID(of)), runs, id, func(m *schemas.Manifest) {
			start = start.Add(time.Minute)
			m.Start, m.Suite = start, nil
			if key != "" {
				m.Suite = &schemas.SuiteRef{ID: "20260201T000000Z-fit-n-000001", Name: "fit-n", Key: key, Search: true}
			}
		})
	}
	add("trial-1", 1, "n1")
	add("trial-2", 2, "n2")
	// If the folder has only trials, the check includes them.
	if r := must(t, dir, "check", runs, "--write-baseline", "trials.json"); strings.Contains(r.stderr, "skipped") ||
		!strings.Contains(r.stderr, "baseline of 2 experiments") {
		t.Error(r.stderr)
	}
	add("vanilla", 0, "")
	const note = "dpsight: note: skipped 2 search trials of dpsight predict --vary; "
	if r := must(t, dir, "check", runs, "--write-baseline", "b.json"); strings.Count(r.stderr, note) != 1 ||
		!strings.Contains(r.stderr, "baseline of 1 experiment") {
		t.Error(r.stderr)
	}
	for _, args := range [][]string{{"check", runs, "--baseline", "b.json"}, {"check", "vanilla", "--store", runs,
		"--baseline", runs}} {
		if r := must(t, dir, args...); strings.Count(r.stderr, note) != 1 || strings.Contains(r.stdout, "missing") ||
			strings.Contains(r.stdout, " new") {
			t.Errorf("%v:\n%s%s", args, r.stdout, r.stderr)
		}
	}
	for _, args := range [][]string{{"analyze", "findings", runs}, {"report", runs, "-o", "out"}} {
		if r := must(t, dir, args...); strings.Count(r.stderr, note) != 1 || strings.Contains(r.stdout, "trial-1") {
			t.Errorf("%v:\n%s%s", args, r.stdout, r.stderr)
		}
	}
	if r := must(t, dir, "check", "trial-1", "vanilla", "--store", runs, "--baseline",
		"b.json"); strings.Contains(r.stderr, "skipped") || !strings.Contains(r.stdout, " new") {
		t.Errorf("named:\n%s%s", r.stdout, r.stderr)
	}
	if r := must(t, dir, "check", runs, "--baseline", "trials.json"); strings.Contains(r.stderr, "skipped") ||
		strings.Count(r.stdout, " new") != 1 {
		t.Errorf("in the baseline:\n%s%s", r.stdout, r.stderr)
	}
	if r := must(t, dir, "analyze", "overhead", "trial-1", "vanilla", "--store", runs); strings.Contains(r.stderr,
		"skipped") {
		t.Errorf("named:\n%s%s", r.stdout, r.stderr)
	}
	add("ghost", 2, "")
	for _, args := range [][]string{{"compare", runs}, {"analyze", "overhead", runs}} {
		if r := must(t, dir, args...); strings.Count(r.stderr, note) != 1 || strings.Contains(r.stdout, "trial-") {
			t.Errorf("%v:\n%s%s", args, r.stdout, r.stderr)
		}
	}
}
