package repeats_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/repeats"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

// code returns the code of a run. The code is a script and a module, each with the beginning of its digest.
func code(script, module string) *schemas.Code {
	return schemas.NewCode([]schemas.CodeFile{
		{Module: schemas.MainModule, File: "train.py", SHA256: &script},
		{Module: "layers", File: "layers.py", SHA256: &module}})
}

// before and after are the peaks of two runs that may be repeats of one experiment.
const before, after = 70 << 20, 121 << 20

// made returns a summary of a run of method ghost. change changes the run's tables first.
func made(id string, bytes int64, change func(in *schemas.Tables)) analyze.Summary {
	in := fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: bytes})
	m := *in.Manifest
	m.RunID, m.Params, m.Command = id, map[string]any{"method": "ghost"}, []string{"bash", "run.sh"}
	m.Suite = &schemas.SuiteRef{ID: "s1", Name: "s", Key: "k"}
	m.Code, m.Git = code("aaaa", "bbbb"), &schemas.Git{Revision: "1111111111111111"}
	m.Host = schemas.Host{Name: "one"}
	m.GPUs = []schemas.GPU{{Name: "H100", UUID: "GPU-1", TotalBytes: 80 << 30}}
	m.Environment = &schemas.Environment{Torch: "2.11.0"}
	m.Collector = schemas.Collector{Version: "1.0", Built: &schemas.Built{Agent: "sha256:aa", Phantom: "sha256:bb"}}
	m.Start = time.Unix(int64(len(id)), 0)
	report := *in.Report
	report.Rules = 1
	in.Manifest, in.Report = &m, &report
	change(&in)
	return analyze.Summarize(in)
}

func manifest(change func(m *schemas.Manifest)) func(*schemas.Tables) {
	return func(in *schemas.Tables) { change(in.Manifest) }
}

func both(changes ...func(*schemas.Tables)) func(*schemas.Tables) {
	return func(in *schemas.Tables) {
		for _, c := range changes {
			c(in)
		}
	}
}

var (
	unchanged = func(*schemas.Tables) {}
	old       = manifest(func(m *schemas.Manifest) { m.Code, m.Collector.Built = nil, nil })
	predicted = manifest(func(m *schemas.Manifest) { m.Source, m.Profile = schemas.Predicted, new("h100") })
	revised   = manifest(func(m *schemas.Manifest) { m.Git = &schemas.Git{Revision: "2222222222222222"} })
	dirty     = manifest(func(m *schemas.Manifest) { m.Git = &schemas.Git{Revision: m.Git.Revision, Dirty: true} })
	edited    = manifest(func(m *schemas.Manifest) { m.Code = code("cccc", "bbbb") })
	imported  = manifest(func(m *schemas.Manifest) { m.Code = code("aaaa", "dddd") })
	elsewhere = manifest(func(m *schemas.Manifest) {
		m.Host.Name, m.GPUs = "two", []schemas.GPU{{Name: "H100", UUID: "GPU-2", TotalBytes: 80 << 30}}
	})
	otherAgent = manifest(func(m *schemas.Manifest) {
		m.Collector.Built = &schemas.Built{Agent: "sha256:cc", Phantom: "sha256:bb"}
	})
	otherPhantom = manifest(func(m *schemas.Manifest) {
		m.Collector.Built = &schemas.Built{Agent: "sha256:aa", Phantom: "sha256:dd"}
	})
	newer = manifest(func(m *schemas.Manifest) { m.Collector.Version = "2.0" })
)

// If two runs differ in one part of their origin, no document pools them as repeats, and a sentence names the
// difference.
func TestWhatIsNotPooled(t *testing.T) {
	for _, c := range []struct {
		what, named string
		one, other  func(*schemas.Tables)
	}{
		{"an edited script", "train.py=cccc", unchanged, edited},
		{"an edited script at two revisions", "revision=222222222222", unchanged, both(revised, edited)},
		{"uncommitted edits", "revision=111111111111+", unchanged, both(dirty, edited)},
		{"uncommitted edits beside others", "train.py=cccc", dirty, both(dirty, edited)},
		{"an edited module", "layers.py=dddd", unchanged, imported},
		{"an edited module of predictions", "layers.py=dddd", predicted, both(predicted, imported)},
		{"a module that only one imports", "layers.py=bbbb", unchanged, manifest(func(m *schemas.Manifest) {
			m.Code = schemas.NewCode(m.Code.Files[:1])
		})},
		{"old runs at two revisions", "revision=222222222222", old, both(old, revised)},
		{"old runs with and without edits", "revision=111111111111+", old, both(old, dirty)},
		{"another host's card", "host=two", unchanged, elsewhere},
		{"another host's card, old runs", "host=two", old, both(old, elsewhere)},
		{"another device", "GPU=H200", unchanged, manifest(func(m *schemas.Manifest) { m.GPUs[0].Name = "H200" })},
		{"a part of a device", "GPU memory=40960 MiB", unchanged, manifest(func(m *schemas.Manifest) {
			m.GPUs[0].TotalBytes /= 2
		})},
		{"another dpsight", "dpsight=2.0", unchanged, both(newer, otherAgent)},
		{"another dpsight, old runs", "dpsight=2.0", old, both(old, newer)},
		{"another agent", "agent=cc", unchanged, otherAgent},
		{"another phantom GPU", "phantom=dd", predicted, both(predicted, otherPhantom)},
		{"other rules", "rules=2", unchanged, func(in *schemas.Tables) { in.Report.Rules = 2 }},
		{"another torch", "torch=2.15.0", unchanged, manifest(func(m *schemas.Manifest) {
			m.Environment = &schemas.Environment{Torch: "2.15.0"}
		})},
	} {
		t.Run(c.what, func(t *testing.T) {
			runs := []analyze.Summary{made("1", before, c.one), made("22", after, c.other)}
			for _, runs := range [][]analyze.Summary{runs, {runs[1], runs[0]}} {
				expectApart(t, runs, c.named)
			}
		})
	}
}

// expectApart checks that documents have a separate row for each of two runs.
func expectApart(t *testing.T, runs []analyze.Summary, named string) {
	t.Helper()
	if repeats.Same(&runs[0], &runs[1]) || repeats.Same(&runs[1], &runs[0]) {
		t.Error("they are repeats")
	}
	study := compare.NewStudy(runs, &runs[0])
	if len(study.Cells) != 2 || *study.Cells[0].PeakBytes != *runs[0].PeakBytes ||
		*study.Cells[1].PeakBytes != *runs[1].PeakBytes || !strings.Contains(study.Cells[0].Label+
		study.Cells[1].Label, named) {
		t.Errorf("overhead and report: %d cells, %q", len(study.Cells), study.Labels)
	}
	third := made("333", after, func(in *schemas.Tables) { in.Manifest.Params, in.Manifest.Suite = nil, nil })
	third.Params = map[string]any{"method": "vanilla"}
	doc := pivot(t, compare.Options{}, runs[0], runs[1], third)
	shown := 0
	for _, cell := range doc.Cells {
		if len(cell.RunIDs) > 1 {
			t.Errorf("compare: %v, one cell of %q", doc.Rows, cell.RunIDs)
		}
		if cell.Value != nil {
			shown++
		}
	}
	if shown != 3 {
		t.Errorf("compare: %d figures of 3 runs", shown)
	}
	doc = pivot(t, compare.Options{Rows: []string{"method"}, Cols: []string{}}, runs[0], runs[1], third)
	if c := doc.Cells[0]; c.Value != nil || c.Experiments != 2 || !strings.Contains(strings.Join(doc.Warnings, "\n"),
		named) {
		t.Errorf("compare with rows that do not show it: %+v, %q", c, doc.Warnings)
	}
	newest, left := gate.Newest(runs)
	if len(newest) != 1 || newest[0].RunID != "22" || len(left) != 1 {
		t.Errorf("check: %d runs, %+v left out", len(newest), left)
	}
	found := findings.Find([]findings.Checked{{Summary: runs[0]}, {Summary: runs[1]}}, nil)
	if n := len(found.Experiments()); n != 2 {
		t.Errorf("findings: %d experiments", n)
	}
	for _, r := range found.Runs {
		if len(r.Findings) > 0 {
			t.Errorf("findings: %s has %s", r.RunID, r.Findings[0].ID)
		}
	}
}

func pivot(t *testing.T, o compare.Options, runs ...analyze.Summary) compare.Document {
	t.Helper()
	o.Value = compare.Metric{Name: compare.MetricPeak}
	doc, err := compare.Compare(runs, o)
	if err != nil {
		t.Fatal(err)
	}
	return report.CompareTables(doc)[0].Document.(compare.Document)
}

// If two runs executed the same code, documents pool them as repeats even if they were at different revisions, and a
// note says so. The note also names parts of the origin that an older run does not have.
func TestWhatIsPooled(t *testing.T) {
	for _, c := range []struct {
		what, said string
		one, other func(*schemas.Tables)
	}{
		{"repeats", "", unchanged, unchanged},
		{"equal code at two revisions",
			"the 2 repeats are of revisions 111111111111, 222222222222, with the same code", unchanged, revised},
		{"equal code beside other edits", "revisions 111111111111, 111111111111+", unchanged, dirty},
		{"two versions of dpsight with one agent", "dpsight 1.0, 2.0 recorded the 2 repeats, with the same agent", unchanged,
			newer},
		{"another phantom GPU beside a real one", "", unchanged, otherPhantom},
		{"an old run", "1 of 2 repeats do not name their code", unchanged, old},
		{"another card of the host", "", unchanged, manifest(func(m *schemas.Manifest) { m.GPUs[0].UUID = "GPU-9" })},
		{"a container of another name with the same card", "", unchanged,
			manifest(func(m *schemas.Manifest) { m.Host.Name = "two" })},
		{"predictions on two hosts", "", predicted, both(predicted, elsewhere)},
		{"a file in another folder", "", unchanged, manifest(func(m *schemas.Manifest) {
			m.Code = code("aaaa", "bbbb")
			m.Code.Files[0].File = "src/train.py"
		})},
	} {
		t.Run(c.what, func(t *testing.T) {
			runs := []analyze.Summary{made("1", before, c.one), made("22", after, c.other)}
			study := compare.NewStudy(runs, &runs[0])
			if len(study.Cells) != 1 || len(study.Cells[0].RunIDs) != 2 {
				t.Fatalf("%d cells, %q", len(study.Cells), study.Labels)
			}
			doc := pivot(t, compare.Options{Rows: []string{"method"}, Cols: []string{}}, runs...)
			warnings := strings.Join(doc.Warnings, "\n")
			if c := doc.Cells[0]; c.N != 2 || c.Value == nil || c.Experiments != 0 {
				t.Errorf("compare: %+v", c)
			}
			said := slices.ContainsFunc(study.Cells[0].Remarks, func(r compare.Remark) bool {
				return r.Kind == compare.RemarkPooled || r.Kind == compare.RemarkCodeUnknown
			})
			if said != (c.said != "") || !strings.Contains(warnings, c.said) {
				t.Errorf("said: %v; compare warns %q", said, doc.Warnings)
			}
			if newest, _ := gate.Newest(runs); len(newest) != 2 {
				t.Errorf("check: %d runs", len(newest))
			}
		})
	}
}

// If an older run could be a repeat of either of two experiments, it belongs to neither. If a run ended early, it is a
// repeat although it did not import all modules.
func TestWhatIsKnownInPart(t *testing.T) {
	ids := func(runs ...analyze.Summary) (out []string) {
		var all []*analyze.Summary
		for i := range runs {
			all = append(all, &runs[i])
		}
		for _, g := range repeats.Experiments(all) {
			var names []string
			for _, r := range g {
				names = append(names, r.RunID)
			}
			out = append(out, strings.Join(names, "+"))
		}
		return out
	}
	unknown := both(old, manifest(func(m *schemas.Manifest) { m.Git = nil }))
	if got := ids(made("1", before, unknown), made("22", before, unchanged), made("333", after, edited),
		made("4444", before, unknown)); !slices.Equal(got, []string{"1+4444", "22", "333"}) {
		t.Errorf("between two experiments: %q", got)
	}
	if got := ids(made("1", before, unknown), made("22", before, unchanged), made("333", before, revised)); !slices.Equal(
		got, []string{"1+22+333"}) {
		t.Errorf("beside one experiment: %q", got)
	}
	failed := manifest(func(m *schemas.Manifest) {
		m.Status, m.Code = schemas.StatusOOM, schemas.NewCode(m.Code.Files[:1])
	})
	if got := ids(made("1", before, unchanged), made("22", before, failed)); !slices.Equal(got, []string{"1+22"}) {
		t.Errorf("one that ended early: %q", got)
	}
}
