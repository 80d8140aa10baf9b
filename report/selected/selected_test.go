package selected

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

const (
	headline    = "../../examples/headline"
	vanillaID   = "20261122T203420Z-vanilla-cde3c5"
	vanillaBare = "20261122T203501Z-vanilla-bare-d5c7cc"
	ghostID     = "20261122T203651Z-ghost-3dc5ae"
)

// said holds the notes and warnings that a source reported to its user.
type said struct{ notes, warnings []string }

// source returns a source for a store. The second result holds what the source reports to its user.
func source(folder string) (*Source, *said) {
	var s said
	return &Source{Store: folder, Recording: func(string) *store.Progress { return nil }, Say: func(string) {},
		Note: func(text string) { s.notes = append(s.notes, text) },
		Warn: func(text string) { s.warnings = append(s.warnings, text) }}, &s
}

// hint returns the advice in an error, or "" if the error has none.
func hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

func runIDs(study compare.Study) (out []string) {
	for i := range study.Runs {
		out = append(out, study.Runs[i].RunID)
	}
	return out
}

// If the user names a baseline, the other runs are compared with it, and it is not one of them. If the user names none,
// the baseline is one of the runs.
func TestOverhead(t *testing.T) {
	s, _ := source(headline)
	study, err := s.Overhead([]string{"ghost"}, "vanilla")
	if err != nil || !slices.Equal(runIDs(study), []string{ghostID}) || study.Baseline.RunID != vanillaID ||
		study.Overhead == nil || len(study.Overhead.Runs) != 1 {
		t.Fatalf("beside a baseline: %v, %+v, %v", runIDs(study), study.Baseline, err)
	}
	if study, err = s.Overhead([]string{"ghost", "vanilla"}, ""); err != nil || study.Baseline.RunID != vanillaID ||
		!slices.Equal(runIDs(study), []string{ghostID, vanillaID}) {
		t.Errorf("among the runs: %v, %+v, %v", runIDs(study), study.Baseline, err)
	}
	for i := range study.Runs {
		if study.Runs[i].JoulesPerStep == nil {
			t.Errorf("%s has no energy, though the store has that of its bare run", study.Runs[i].Name)
		}
	}
	_, err = s.Overhead([]string{"vanilla"}, "")
	if err == nil || err.Error() != "one run has nothing to be compared with" ||
		!strings.Contains(hint(err), "--baseline") {
		t.Errorf("one run: %v, %q", err, hint(err))
	}
}

// If a run's steps are too short for the energy counter, the run takes the energy of its bare run, even if the user did
// not select the bare run. A run with its own energy keeps it.
func TestLendEnergy(t *testing.T) {
	s, _ := source(headline)
	r, runs, err := s.Summaries([]string{vanillaID, ghostID, vanillaBare}, leaveNone)
	if err != nil || len(runs) != 3 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	short, own, bare := &runs[0], *runs[1].JoulesPerStep, *runs[2].JoulesPerStep
	if short.NoEnergy == "" || short.JoulesPerStep != nil {
		t.Fatalf("the run has energy: %v", *short.JoulesPerStep)
	}
	apart, alone, err := s.Summaries([]string{vanillaID}, leaveNone)
	if err != nil {
		t.Fatal(err)
	}
	apart.lendEnergy(alone)
	if alone[0].JoulesPerStep == nil || *alone[0].JoulesPerStep != bare || alone[0].NoEnergy != "" {
		t.Errorf("lent %v, the bare run has %v (%q)", alone[0].JoulesPerStep, bare, alone[0].NoEnergy)
	}
	// If a study has both runs, the study itself gives the run the bare run's energy. The store then has no other bare
	// run to take energy from.
	if r.lendEnergy(runs); short.JoulesPerStep != nil || *runs[1].JoulesPerStep != own {
		t.Errorf("%v and %v, want none and %v", short.JoulesPerStep, *runs[1].JoulesPerStep, own)
	}
}

// baselineFile writes a baseline of some runs. change changes the baseline first.
func baselineFile(t *testing.T, s *Source, change func(*schemas.Baseline), names ...string) string {
	t.Helper()
	_, runs, err := s.Summaries(names, leaveNone)
	if err != nil {
		t.Fatal(err)
	}
	b := gate.BaselineOf(runs, "test")
	change(&b)
	path := filepath.Join(t.TempDir(), "baseline.json")
	if err := schemas.WriteBaseline(path, &b); err != nil {
		t.Fatal(err)
	}
	return path
}

// Check compares runs with a baseline's file or with other runs. Without a baseline, it only reduces the runs to their
// figures.
func TestCheck(t *testing.T) {
	s, _ := source(headline)
	same := baselineFile(t, s, func(*schemas.Baseline) {}, "vanilla", "ghost")
	lower := baselineFile(t, s, func(b *schemas.Baseline) { *b.Experiments[1].PeakBytes /= 2 }, "vanilla", "ghost")
	thresholds, err := gate.ParseThresholds(gate.DefaultThresholds)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		baseline string
		ok       bool
	}{
		{same, true},
		{lower, false},
	} {
		checked, err := s.Check([]string{"vanilla", "ghost"}, "test", gate.Options{Baseline: c.baseline,
			Thresholds: thresholds})
		if err != nil || len(checked.Runs) != 2 || checked.Result == nil || checked.Result.OK != c.ok {
			t.Errorf("%s: %+v, %v", c.baseline, checked, err)
		}
	}
	peak, err := gate.ParseThresholds([]string{"peak=1.01"})
	if err != nil {
		t.Fatal(err)
	}
	grown, err := s.Check([]string{"ghost"}, "test", gate.Options{Baseline: "vanilla", Thresholds: peak})
	if err != nil {
		t.Fatal(err)
	}
	doc := report.NewCheckDocument(*grown.Result)
	if doc.OK || !strings.HasPrefix(doc.Sentence(), "ghost: peak allocated grew by ") {
		t.Errorf("beside a run: %q", doc.Sentence())
	}
	if c, err := s.Check([]string{"ghost"}, "test", gate.Options{}); err != nil || c.Result != nil || len(c.Runs) != 1 {
		t.Errorf("without a baseline: %+v, %v", c, err)
	}
	_, err = s.Check([]string{"ghost"}, "test", gate.Options{Baseline: "absent.json"})
	if err == nil || err.Error() != "the baseline absent.json does not exist" ||
		!strings.Contains(hint(err), "--write-baseline") {
		t.Errorf("a file that is not there: %v, %q", err, hint(err))
	}
}

// Accuracy compares predictions from a file with runs, or with a file of measurements.
func TestAccuracy(t *testing.T) {
	s, _ := source(headline)
	predicted := baselineFile(t, s, func(b *schemas.Baseline) {
		for i := range b.Experiments {
			x := &b.Experiments[i]
			if x.Source = schemas.Predicted; x.Name == "ghost" {
				*x.PeakBytes += 1 << 20
			}
		}
	}, "vanilla", "ghost")
	measured := baselineFile(t, s, func(*schemas.Baseline) {}, "ghost", "dpsgd")
	for _, c := range []struct {
		what                    string
		measured                []string
		compared                int
		unpredicted, unmeasured string
	}{
		{"runs", []string{"vanilla", "ghost", "dpsgd"}, 2, "dpsgd", ""},
		{"a file", []string{measured}, 1, "dpsgd", "vanilla"},
		{"a file and a run", []string{measured, "vanilla"}, 2, "dpsgd", ""},
	} {
		doc, err := s.Accuracy([]string{predicted}, c.measured, "test")
		if err != nil || len(doc.Experiments) != c.compared || strings.Join(doc.Unpredicted, " ") != c.unpredicted ||
			strings.Join(doc.Unmeasured, " ") != c.unmeasured || doc.Allocated.Exact != c.compared-1 {
			t.Errorf("%s: %+v, %v", c.what, doc, err)
		}
	}
	if doc, err := s.Accuracy(nil, []string{"vanilla"}, "test"); err == nil && len(doc.Experiments) != 0 {
		t.Errorf("no run is predicted: %+v", doc)
	}
}

// Each calls its function for the readable runs of a selection, and warns about the others. The selection itself stays
// as it is.
func TestEachWarns(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{vanillaID, ghostID} {
		if err := os.CopyFS(filepath.Join(dir, id), os.DirFS(filepath.Join(headline, id))); err != nil {
			t.Fatal(err)
		}
	}
	damaged := filepath.Join(dir, ghostID, schemas.IngestReportFile)
	if err := os.WriteFile(damaged, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, said := source(dir)
	r, err := s.Select([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	read, err := r.Each(analyze.ListTables, true, func(in schemas.Tables) error {
		used = append(used, in.Manifest.RunID)
		return nil
	})
	if err != nil || !slices.Equal(used, []string{vanillaID}) || len(read.Runs) != 1 || len(r.Runs) != 2 {
		t.Errorf("used %q, %d of %d runs were read, %v", used, len(read.Runs), len(r.Runs), err)
	}
	if len(said.warnings) != 1 || !strings.Contains(said.warnings[0], ghostID) {
		t.Errorf("warned %q", said.warnings)
	}
}

// A prediction has the reasons for its confidence even if it is only compared with, and an older version of dpsight
// wrote its report.
func TestOthersHaveReasons(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{vanillaID, ghostID} {
		if err := os.CopyFS(filepath.Join(dir, id), os.DirFS(filepath.Join(headline, id))); err != nil {
			t.Fatal(err)
		}
	}
	edit := func(file, key string, value any) {
		path, doc := filepath.Join(dir, ghostID, file), map[string]any{}
		b, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(b, &doc)
		}
		doc[key] = value
		if b, _ := json.Marshal(doc); err == nil {
			err = os.WriteFile(path, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	edit(schemas.ManifestFile, "source", schemas.Predicted)
	edit(schemas.IngestReportFile, "prediction", schemas.Prediction{})
	s, _ := source(dir)
	r, err := s.Select([]string{vanillaID})
	if err != nil {
		t.Fatal(err)
	}
	others := r.outlines(analyze.ComparisonTables, nil)
	if len(others) != 1 || others[0].Confidence == "" || len(others[0].ConfidenceReasons) == 0 {
		t.Errorf("%+v", others)
	}
}

// A selection of a whole store leaves out the trials of a search, with a note. If the user names a trial, it stays.
func TestTrialsAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{vanillaID, ghostID} {
		if err := os.CopyFS(filepath.Join(dir, id), os.DirFS(filepath.Join(headline, id))); err != nil {
			t.Fatal(err)
		}
	}
	m, err := schemas.ReadManifest(filepath.Join(dir, ghostID))
	if err != nil {
		t.Fatal(err)
	}
	m.Suite = &schemas.SuiteRef{ID: "fit", Name: "fit", Key: "k", Search: true}
	if err := schemas.WriteManifest(filepath.Join(dir, ghostID), m); err != nil {
		t.Fatal(err)
	}
	s, said := source(dir)
	model, err := s.Report([]string{dir}, "")
	if err != nil || !slices.Equal(runIDs(model.Study), []string{vanillaID}) || len(said.notes) != 1 ||
		!slices.Equal(model.Notes, said.notes) || !strings.HasPrefix(said.notes[0], "skipped 1 search trial ") {
		t.Errorf("%v, notes %q, said %q, %v", runIDs(model.Study), model.Notes, said.notes, err)
	}
	if model, err = s.Report([]string{vanillaID, ghostID}, ""); err != nil || len(model.Study.Runs) != 2 ||
		len(model.Notes) != 0 {
		t.Errorf("named: %v, notes %q, %v", runIDs(model.Study), model.Notes, err)
	}
}

// If the user names runs, each named run has a row in the comparison. Repeats have separate rows, too, and so have runs
// that differ only in a hidden parameter. If the user selects a store, the runs with the same parameters share a row.
func TestCompareGivesEachNamedRunARow(t *testing.T) {
	s, _ := source(headline)
	rows := func(names ...string) (out []string) {
		t.Helper()
		doc, err := s.Compare(names, compare.Options{Value: compare.Metric{Name: compare.MetricPeak}}, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range doc.Cells {
			if len(c.RunIDs) == 1 && c.Value != nil {
				out = append(out, c.RunIDs[0])
			}
		}
		return out
	}
	bare := "20261122T203936Z-ghost-bare-1e2ad8"
	if got := rows("ghost-bare", "vanilla", "ghost"); !slices.Equal(got, []string{bare, vanillaID, ghostID}) {
		t.Errorf("%q", got)
	}
	doc, err := s.Compare([]string{"ghost", "vanilla", "dpsgd"},
		compare.Options{Value: compare.Metric{Name: compare.MetricPeak}}, "")
	if err != nil || !slices.Equal(doc.Rows, []string{"name"}) || doc.Baseline.RunID == nil ||
		*doc.Baseline.RunID != vanillaID {
		t.Errorf("rows %q beside %+v: %v", doc.Rows, doc.Baseline, err)
	}
}
