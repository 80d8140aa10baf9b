package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

// bounded makes a store with copies of recorded runs, and gives one of the copies a bounded peak.
func bounded(t *testing.T, which int) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS(journalStore(t))); err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(dir, journalID(which))
	r, err := schemas.ReadIngestReport(run)
	if err != nil {
		t.Fatal(err)
	}
	d := &r.Devices[0]
	d.Verdict, d.Reason = schemas.Bounded, "recording began after the first allocation"
	d.PeakLowBytes, d.PeakHighBytes = new(d.PeakAllocatedBytes), new(d.PeakAllocatedBytes+50<<20)
	d.TorchPeakAllocatedBytes = nil
	replaced := schemas.WriteFile(filepath.Join(run, schemas.IngestReportFile), func(w io.Writer) error {
		return r.Encode(w)
	})
	if replaced != nil {
		t.Fatal(replaced)
	}
	return dir
}

// All output about a run with a bounded peak says that the peak is bounded.
func TestBoundedPeaksAreSaid(t *testing.T) {
	const base, run = 0, 1
	dir := bounded(t, run)
	one, other := filepath.Join(dir, journalID(run)), filepath.Join(dir, journalID(base))
	baseline, out := filepath.Join(t.TempDir(), "baseline.json"), t.TempDir()
	must(t, "", "check", one, "--write-baseline", baseline)
	for _, args := range [][]string{
		{"runs", "--store", dir}, {"analyze", "breakdown", one}, {"analyze", "phases", one},
		{"compare", other, one},
		{"compare", one, filepath.Join(dir, journalID(2)), other},
		{"analyze", "overhead", other, one}, {"analyze", "explain", other, one},
		{"analyze", "cost", one}, {"analyze", "ladder", one}, {"analyze", "timeline", one}, {"analyze", "findings", one},
		{"check", one, "--baseline", baseline, "--threshold", "peak=2"},
	} {
		for _, format := range []string{"table", "json", "csv"} {
			r := dpsight(t, "", append(args, "--format", format)...)
			said := strings.Contains(r.stdout, schemas.Bounded) ||
				format == "csv" && strings.Contains(r.stdout, ",147726336,") // part of a cell's range
			if format == "json" {
				said = strings.Contains(r.stdout, "peak_high_bytes") || strings.Contains(r.stdout, "current_high")
			}
			if r.code != exitDone || !said {
				t.Errorf("%v, %s, exit code %d, does not say that the peak is bounded:\n%s%s", args, format, r.code, r.stdout,
					r.stderr)
			}
		}
	}
	var found report.FindingsDocument
	must(t, "", "report", other, one, "--out", out)
	text := must(t, "", "analyze", "findings", one, "--format", "json").stdout
	if err := json.Unmarshal([]byte(text), &found); err != nil || len(found.Runs[0].Findings) < 2 {
		t.Fatal(err, text)
	}
	for _, f := range found.Runs[0].Findings { // a reader who quotes one finding may not have read the others
		if !strings.Contains(f.Sentence, schemas.Bounded) && f.ID != findings.NotConserved {
			t.Errorf("%s does not say that the peak is bounded: %s", f.ID, f.Sentence)
		}
	}
	must(t, "", "export", one, "--out", filepath.Join(out, "result.json"))
	for _, name := range []string{"figures/breakdown.svg", "figures/timeline-*.svg", "results.csv", "results.json",
		"summary.txt", "result.json"} {
		found, err := filepath.Glob(filepath.Join(out, name))
		if err != nil || len(found) == 0 {
			t.Errorf("%s: %q, %v", name, found, err)
		}
		said := false // whether one of the files says that the peak is bounded
		for _, path := range found {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			said = said || strings.Contains(string(b), schemas.Bounded) || strings.Contains(string(b), "at most")
		}
		if !said {
			t.Errorf("%s does not say that the peak is bounded", name)
		}
	}
	if r := dpsight(t, "", "check", one, "--baseline", baseline, "--threshold", "peak=1.05"); r.code == exitDone {
		t.Errorf("a check passes within bounds that reach over its threshold:\n%s", r.stdout)
	}
}
