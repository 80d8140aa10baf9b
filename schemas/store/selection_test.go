package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// ingest writes an empty ingest report for each of the runs, so that they count as ingested.
func ingest(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		path := filepath.Join(s.Dir(), id, schemas.IngestReportFile)
		if err := schemas.WriteFile(path, (&schemas.IngestReport{RunID: id}).Encode); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPending(t *testing.T) {
	s, other := fill(t, "r1 a", "r2 b", "r3 c"), fill(t, "far a")
	ingest(t, s, "r1")
	all, err := s.All()
	if err != nil {
		t.Fatal(err)
	}
	p := all.Pending()
	want := "2 of 3 runs have not been ingested, so there is nothing to analyse of them: dpsight ingest " + s.Dir()
	if p.Warning() != want {
		t.Errorf("%s, want %s", p.Warning(), want)
	}
	if p.Err() != nil {
		t.Errorf("one run has tables: %v", p.Err())
	}
	one, _ := s.Resolve([]string{"r2"})
	var alone *NotIngestedError
	if err := one.Pending().Err(); !errors.As(err, &alone) || alone.RunID != "r2" {
		t.Errorf("one run without tables: %v", err)
	}
	none, _ := s.Resolve([]string{"r2", other.Dir()})
	var several *NoneIngestedError
	if err := none.Pending().Err(); !errors.As(err, &several) || several.Runs != 2 ||
		several.Hint() != "dpsight ingest FOLDER" {
		t.Errorf("runs of two stores: %v", err)
	}
	for i := range none.Runs {
		none.Runs[i].Manifest.Status = schemas.StatusPartial
	}
	none.SetRunning(func(string) *Progress { return &Progress{Steps: 14, Written: 3 * time.Second} })
	if p := none.Pending(); len(p.Runs) != 0 || p.Warning() != "" ||
		p.Note() != "2 of 2 runs are still running: their tables are made when they end" {
		t.Errorf("runs that are being recorded: %+v", p)
	}
}

// The error for a run that is still being recorded says when the run began and how far it has come.
func TestRunningRun(t *testing.T) {
	start := time.Date(2026, 11, 26, 12, 3, 0, 0, time.UTC)
	for _, c := range []struct {
		progress *Progress
		want     string
	}{
		{nil, "nothing is recorded yet"},
		{&Progress{Steps: -1, Written: -1}, "nothing is recorded yet"},
		{&Progress{Steps: 0, Written: -1}, "0 steps so far"},
		{&Progress{Steps: 1, Written: 400 * time.Millisecond}, "1 step so far, last written 0s ago"},
		{&Progress{Steps: 14, Written: 63 * time.Second}, "14 steps so far, last written 1m3s ago"},
	} {
		r := Run{ID: "r1", Manifest: &schemas.Manifest{Status: schemas.StatusRunning, Start: start}, Progress: c.progress}
		want := "run r1 is still running, since 2026-11-26 12:03 UTC: " + c.want + "; dpsight makes its tables when it ends"
		p := Pending{Running: []Run{r}, Of: 1}
		if err := p.Err(); err == nil || err.Error() != want || p.Note() != want {
			t.Errorf("%v, %s; want %s", err, p.Note(), want)
		}
	}
}

// If a run that the user named cannot be read, Each returns an error. If an argument stands for many runs, Each reads
// the readable runs.
func TestEach(t *testing.T) {
	s := fill(t, "r1 a", "r2 b")
	ingest(t, s, "r1")
	var seen []string
	use := func(tables *schemas.Tables) error { seen = append(seen, tables.Manifest.RunID); return nil }
	all, _ := s.All()
	read, damaged, err := all.Each(0, false, use)
	if err != nil || ids(read.Runs) != "r1" || len(damaged) != 1 || damaged[0].Dir != filepath.Join(s.Dir(), "r2") ||
		len(read.Damaged) != 1 || read.Damaged[0].Dir != damaged[0].Dir {
		t.Errorf("a store: %v, %+v, %v", err, read, damaged)
	}
	if ids(all.Runs) != "r1 r2" || len(all.Damaged) != 0 {
		t.Errorf("reading changed the selection: %+v", all)
	}
	named, _ := s.Resolve([]string{"r1", "r2"})
	var unread *TablesError
	if _, _, err := named.Each(0, false, use); !errors.As(err, &unread) || unread.Dir != filepath.Join(s.Dir(), "r2") {
		t.Errorf("named runs: %v", err)
	}
	if _, _, err := named.Each(0, true, use); err != nil || strings.Join(seen, " ") != "r1 r1 r1 r2" {
		t.Errorf("with what has no tables: %v, %v", err, seen)
	}
	empty := fill(t, "r3 a", "r4 b")
	none, _ := empty.All()
	var unreadable *NoneReadableError
	if _, _, err := none.Each(0, false, use); !errors.As(err, &unreadable) || unreadable.Runs != 2 {
		t.Errorf("nothing can be read: %v", err)
	}
	failed := errors.New("no")
	if _, _, err := named.Each(0, true, func(*schemas.Tables) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("an analysis that fails: %v", err)
	}
}

// ResolveOne looks for a baseline in the store first. After the store, ResolveOne looks among the selected runs, which
// may come from other folders.
func TestResolveOne(t *testing.T) {
	s, other := fill(t, "r1 a", "r2 b"), fill(t, "f1 x", "f2 x", "f3 y")
	among, err := s.Resolve([]string{other.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "r1", "r2": "r2", "x": "f2", "f1": "f1",
		filepath.Join(s.Dir(), "r1"): "r1"} {
		if got, err := s.ResolveOne(name, among); err != nil || ids(got.Runs) != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	var missing *NotFoundError
	if _, err := s.ResolveOne("z", among); !errors.As(err, &missing) {
		t.Errorf("absent: %v", err)
	}
	var several *NotOneError
	if _, err := s.ResolveOne(s.Dir(), among); !errors.As(err, &several) || several.Runs != 2 {
		t.Errorf("a store: %v", err)
	}
}

func TestOthers(t *testing.T) {
	s, other := fill(t, "r1 a", "r2 b", "r3 a"), fill(t, "f1 a", "f2 b")
	sel, err := s.Resolve([]string{"r1", filepath.Join(other.Dir(), "f2")})
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(sel.Others(func(m *schemas.Manifest) bool { return m.Name == "a" })); got != "r3 f1" && got != "f1 r3" {
		t.Errorf("of the name a: %s", got)
	}
	if got := len(sel.Others(nil)); got != 3 {
		t.Errorf("all others: %d", got)
	}
	elsewhere := fill(t, "e1 a", "e2 b")
	also, err := elsewhere.Resolve([]string{"e1"})
	if err != nil {
		t.Fatal(err)
	}
	beside := strings.Fields(ids(sel.Others(nil, also.Runs...)))
	if slices.Sort(beside); strings.Join(beside, " ") != "e2 f1 r2 r3" {
		t.Errorf("others beside a run of another store: %s", beside)
	}
	if got := len(sel.Manifests()); got != 5 {
		t.Errorf("manifests: %d", got)
	}
}

// Each error after which a user can do something has a hint.
func TestErrorsHaveHints(t *testing.T) {
	s := fill(t, "r1 a", "r1b b")
	absent := Open(filepath.Join(s.Dir(), "absent"))
	for want, ask := range map[string]func() error{
		"give more of the id":        func() error { _, err := s.Resolve([]string{"r"}); return err },
		"lists its runs":             func() error { _, err := s.Resolve([]string{"z"}); return err },
		"record one":                 func() error { _, err := absent.All(); return err },
		"has runs":                   func() error { _, err := Open(filepath.Dir(s.Dir())).All(); return err },
		"dpsight ingest takes files": func() error { _, err := s.Resolve([]string{"selection_test.go"}); return err },
	} {
		err := ask()
		var hinted interface{ Hint() string }
		if !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), want) {
			t.Errorf("%v has no hint with %q: %s", err, want, fmt.Sprintf("%T", err))
		}
	}
}
