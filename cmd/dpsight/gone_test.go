package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// If a table of a run was removed, breakdown, phases and check name the missing table and do not print "conservation:
// exact". breakdown, phases and check do so whether or not the run has digests of its tables, which older versions did
// not write.
func TestGoneTablesAreSaid(t *testing.T) {
	for what, from := range map[string]string{
		"with digests":    filepath.Join(journalStore(t), journalID(1)),
		"without digests": filepath.Join("..", "..", "examples", "headline", "20261122T204121Z-fgc-b22adb"),
	} {
		whole := filepath.Join(t.TempDir(), "whole")
		if err := os.CopyFS(whole, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		baseline := filepath.Join(t.TempDir(), "baseline.json")
		must(t, "", "check", whole, "--write-baseline", baseline)
		printed := [][]string{{"analyze", "breakdown"}, {"analyze", "phases"}, {"check", "--baseline", baseline}}
		for _, args := range printed {
			if r := dpsight(t, "", append(args, whole)...); r.code != exitDone || strings.Contains(r.stdout, "is missing") {
				t.Fatalf("%s, %q of the whole run: exit code %d\n%s%s", what, args, r.code, r.stdout, r.stderr)
			}
		}
		for _, name := range []string{schemas.Steps.File(), schemas.Phases.File(), schemas.Marks.File()} {
			dir := filepath.Join(t.TempDir(), "run")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			for _, args := range printed {
				r := dpsight(t, "", append(args, dir)...)
				if all := r.stdout + r.stderr; !strings.Contains(all, name) ||
					!strings.Contains(all, "is gone") && !strings.Contains(all, "is missing") ||
					strings.Contains(all, "conservation: exact") {
					t.Errorf("%s, %q without %s: exit code %d\n%s", what, args, name, r.code, all)
				}
			}
		}
	}
}

// A check fails if one of its thresholds needs a table that was removed from the run or from the baseline's run. If no
// threshold needs the table, the check only warns that the table is missing.
func TestChecksWithoutTheirTables(t *testing.T) {
	whole := filepath.Join("..", "..", "examples", "headline", "20261122T204121Z-fgc-b22adb")
	baseline := filepath.Join(t.TempDir(), "baseline.json")
	must(t, "", "check", whole, "--write-baseline", baseline)
	for _, c := range []struct{ table, threshold string }{
		{schemas.Steps.File(), "time=1.1"}, {schemas.Steps.File(), "samples=1.1"}, {schemas.Steps.File(), "tokens=1.1"},
		{schemas.Phases.File(), "phase-peak:backward.grad=1.05"},
		{schemas.Steps.File(), "peak=1.05"}, {schemas.Phases.File(), "time=1.1"}, {schemas.Marks.File(), "peak=1.05"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, c.table)); err != nil {
			t.Fatal(err)
		}
		rests := c.table == schemas.Phases.File() && c.threshold != "time=1.1" ||
			c.table == schemas.Steps.File() && c.threshold != "peak=1.05"
		for _, side := range []struct{ who, baseline, run string }{{"the run's ", baseline, dir},
			{"the baseline's ", dir, whole}} {
			r := dpsight(t, "", "check", "--baseline", side.baseline, "--threshold", c.threshold, side.run)
			said := "could not be checked: " + side.who + c.table + " is missing"
			if failed := r.code == exitFailed && strings.Contains(r.stderr, said); failed != rests ||
				!strings.Contains(r.stdout+r.stderr, c.table+" is missing, so its figures") ||
				!rests && r.code != exitDone {
				t.Errorf("%s with %s gone from %s: exit code %d\n%s%s", c.threshold, c.table, side.who, r.code, r.stdout,
					r.stderr)
			}
		}
		r := must(t, "", "check", dir, "--write-baseline", filepath.Join(t.TempDir(), "other.json"))
		if !strings.Contains(r.stderr, "the baseline lacks figures: the run has no "+c.table) {
			t.Errorf("a baseline without %s: %s", c.table, r.stderr)
		}
	}
}
