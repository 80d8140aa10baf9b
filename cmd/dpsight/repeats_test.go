package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If a command shows one of several repeats in a store, it prints a note with the number of repeats and their range.
// If a command shows all repeats of an experiment, it prints medians.
func TestRepeatsOfTheStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"dpsgd", "bk"} {
		runs, err := filepath.Glob(filepath.Join("../../examples/headline-batch", "*Z-"+name+"-*"))
		if err != nil || len(runs) != 5 {
			t.Fatalf("%d runs, %v", len(runs), err)
		}
		for _, r := range runs {
			if err := os.CopyFS(filepath.Join(dir, filepath.Base(r)), os.DirFS(r)); err != nil {
				t.Fatal(err)
			}
		}
	}
	must(t, "", "ingest", dir)
	const dpsgd, bk = "dpsgd: one of 5 repeats in the store: their medians range from 25.4 ms to 31.3 ms, median " +
		"26.2 ms",
		"bk: one of 5 repeats in the store: their medians range from 25.6 ms to 33.9 ms, median 30.1 ms"
	if out := must(t, "", "analyze", "overhead", "dpsgd", "bk", "--store", dir).stdout; !strings.Contains(out, dpsgd) ||
		!strings.Contains(out, bk) {
		t.Errorf("overhead:\n%s", out)
	}
	// The explained times are medians of all repeats, which differ from the recorded run's own step.
	out := must(t, "", "analyze", "explain", "dpsgd", "bk", "--store", dir).stdout
	for _, want := range []string{"A step of bk takes 30.1 ms, 3.979 ms (15 %) more than one of dpsgd (26.2 ms): " +
		"medians of 5 repeats (25.6 ms to 33.9 ms) and of 5 repeats (25.4 ms to 31.3 ms), in GPU time.",
		"The ranges of the repeats overlap", "dpsgd: times are medians over 5 repeats in the store (25.4 ms to " +
			"31.3 ms a step); run 20261121T204034Z-dpsgd-232154 itself takes 31.3 ms",
		"each phase is scaled to its median over 5 repeats, of 26.2 ms"} {
		if !strings.Contains(out, want) {
			t.Errorf("explain does not say %q:\n%s", want, out)
		}
	}
	for _, more := range [][]string{nil, {"--value", "time"}} {
		if out := must(t, "", append([]string{"compare", "dpsgd", "bk", "--store", dir},
			more...)...).stdout; !strings.Contains(out, dpsgd) || !strings.Contains(out, bk) {
			t.Errorf("compare %v:\n%s", more, out)
		}
	}
	for _, value := range []string{"peak", "time"} { // with --value, the table has only this value
		if out := must(t, "", "compare", "bk", "--baseline", "dpsgd", "--value", value, "--store",
			dir).stdout; strings.Count(out, "baseline "+dpsgd) != 1 || strings.Count(out, "in the store") != 2 {
			t.Errorf("compare %s beside a baseline that has no cell:\n%s", value, out)
		}
	}
	// A note says that the baseline is one of several repeats. If the baseline is one of the table's rows, the note is
	// about that row.
	named := []string{"analyze", "overhead", "bk", "--store", dir, "--baseline", "dpsgd"}
	if out := must(t, "", named...).stdout; strings.Count(out, "baseline "+dpsgd) != 1 ||
		strings.Count(out, "in the store") != 2 {
		t.Errorf("beside a baseline that is no row:\n%s", out)
	}
	var doc struct {
		Warnings []string `json:"baseline_warnings"`
		Runs     []struct{ Name string }
	}
	decodeOne(t, must(t, "", append(named, "--format", "json")...), overheadShape, &doc)
	if len(doc.Runs) != 1 || len(doc.Warnings) != 1 || "dpsgd: "+doc.Warnings[0] != dpsgd {
		t.Errorf("%+v", doc)
	}
	if out := must(t, "", "analyze", "overhead", "bk", "dpsgd", "--store", dir, "--baseline",
		"dpsgd").stdout; strings.Contains(out, "baseline dpsgd") || strings.Count(out, "in the store") != 2 {
		t.Errorf("beside a baseline that is a row:\n%s", out)
	}
	if out := must(t, "", "analyze", "overhead", dir).stdout; strings.Contains(out, "in the store") ||
		!strings.Contains(out, "30.1") {
		t.Errorf("all repeats are one experiment:\n%s", out)
	}
	// bk has the lower peak and is slower by 15 %, but the ranges of the step times overlap, so neither method is
	// named cheaper.
	for name, list := range findingsOf(t, dir, dir) {
		if f := findFinding(list, "cheaper-method"); f != nil {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
