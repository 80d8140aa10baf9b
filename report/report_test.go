package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/folder"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

var update = flag.Bool("update", false, "rewrite testdata")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what is in testdata (run with -update and look at the difference); got\n%s", name,
			got)
	}
}

func TestReportGolden(t *testing.T) {
	for _, name := range []string{"headline", "mixed", "names", "failed"} {
		dir := t.TempDir()
		files, err := report.Write(dir, report.Model{Title: name, Study: gallery()[name],
			Notes: []string{"run folder x: damaged"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			// The bytes of PNG and SVG files may change with compression and fonts. Other tests check the layout of PNG
			// and SVG files.
			if ext := filepath.Ext(f); ext == ".png" || ext == ".svg" {
				continue
			}
			got, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			rel, _ := filepath.Rel(dir, f)
			golden(t, filepath.Join(name, rel), got)
		}
	}
}

// The listing of a report's folder has the page first, then the summary, each picture once, the tables, and the files
// for programs.
func TestReportListing(t *testing.T) {
	page := func(w io.Writer) error {
		_, err := io.WriteString(w, "<!doctype html>")
		return err
	}
	var b strings.Builder
	for _, name := range []string{"headline", "all-oom"} {
		dir := t.TempDir()
		files, err := report.Write(dir, report.Model{Study: gallery()[name], Page: page})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", name)
		for _, f := range files {
			rel, err := filepath.Rel(dir, f)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "  %s\n", filepath.ToSlash(rel))
		}
	}
	golden(t, "listing.txt", []byte(b.String()))
}

// A summary begins with the main table and has at most 60 lines, for any runs. If there are many runs, it names the
// baselines and the highest peaks.
func TestSummaryIsShort(t *testing.T) {
	var notes []string
	for i := range 40 {
		notes = append(notes, fmt.Sprintf("run folder %d: damaged", i))
	}
	stores := gallery()
	var many []madeUp
	for i := range 120 {
		m := headline()[i%3]
		m.id, m.name = fmt.Sprintf("many-%03d", i), fmt.Sprintf("experiment %d", i)
		m.params = map[string]any{"method": m.params["method"], "batch_size": float64(i / 3)}
		if i%3 == 1 {
			m.status, m.blocks, m.reason = schemas.StatusOOM, nil, "out of memory"
		}
		m.blocks = append([]block{{float64(i), one(schemas.Buffers), false}}, m.blocks...)
		many = append(many, m)
	}
	stores["matched"], stores["against one"] = compare.NewMatchedStudy(summaries(many...), nil, ""), study(0, many...)
	for name, s := range stores {
		for _, given := range [][]string{nil, notes} {
			var b bytes.Buffer
			if err := report.Print(&b, report.Model{Title: name, Study: s, Notes: given}, false); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
			if len(lines) > 60 {
				t.Errorf("%s: %d lines\n%s", name, len(lines), b.String())
			}
			if !strings.HasPrefix(lines[2], "Peak and step") || len(s.Cells) > 0 && !strings.HasPrefix(lines[3], "Run") {
				t.Errorf("%s does not begin with the main table:\n%s", name, b.String())
			}
			if name == "against one" && (!strings.HasPrefix(lines[5], "experiment 0 ") ||
				!strings.Contains(b.String(), "\nexperiment 119 ") || strings.Contains(b.String(), "\nexperiment 3 ")) {
				t.Errorf("of many runs these are shown:\n%s", b.String())
			}
		}
	}
}

// Writing a report again removes the files of the earlier report, and no other files.
func TestReportLeavesNothingStale(t *testing.T) {
	dir := t.TempDir()
	if _, err := report.Write(dir, report.Model{Study: gallery()["twelve"]}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"notes.txt", filepath.Join("tables", "mine.tex")} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := report.Write(dir, report.Model{Study: gallery()["one"]})
	if err != nil {
		t.Fatal(err)
	}
	want := append(files, filepath.Join(dir, "notes.txt"), filepath.Join(dir, "tables", "mine.tex"),
		filepath.Join(dir, ".dpsight-report"))
	var got []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, path)
		}
		return err
	})
	slices.Sort(got)
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the folder has\n%q, want\n%q, %v", got, want, err)
	}
}

// A report does not overwrite files that no report wrote. A report overwrites the files of an interrupted report.
func TestReportWritesOverNothingForeign(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "tables", "runs.md")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "tables"), 0o755), os.WriteFile(mine, []byte("mine"),
		0o644)); err != nil {
		t.Fatal(err)
	}
	var foreign *folder.ForeignError
	if _, err := report.Write(dir, report.Model{Study: gallery()["one"]}); !errors.As(err, &foreign) ||
		foreign.Path != mine {
		t.Fatalf("%v", err)
	}
	if got, err := os.ReadFile(mine); err != nil || string(got) != "mine" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
	// a folder of this name makes the report fail half-way
	if err := os.Mkdir(filepath.Join(dir, "results.csv"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Write(dir, report.Model{Study: gallery()["one"]}); !errors.As(err, &foreign) {
		t.Fatalf("%v", err)
	}
	if err := os.Remove(filepath.Join(dir, "results.csv")); err != nil {
		t.Fatal(err)
	}
	files, err := report.Write(dir, report.Model{Study: gallery()["one"]})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(files[0]), os.Mkdir(files[0], 0o755), os.WriteFile(filepath.Join(files[0], "x"),
		nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Write(dir, report.Model{Study: gallery()["one"]}); err == nil {
		t.Fatal("a folder in the summary's place was written over")
	}
	if err := os.RemoveAll(files[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Write(dir, report.Model{Study: gallery()["one"]}); err != nil {
		t.Errorf("after one that failed half-way: %v", err)
	}
}

// If a report has a predicted run, each of its outputs marks the run as predicted.
func TestPredictedRunsHaveABadgeEverywhere(t *testing.T) {
	for _, name := range []string{"names", "predicted"} {
		files, err := report.Write(t.TempDir(), report.Model{Study: gallery()[name]})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if filepath.Ext(f) == ".png" {
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			ext, of := filepath.Ext(f), filepath.Base(f)
			alone := strings.HasPrefix(of, "phases-") || strings.HasPrefix(of, "timeline-")
			if name == "names" && alone && !bytes.Contains(text, []byte("(Opacus)")) || strings.HasPrefix(of, "success.") {
				continue // the file is about another run, or about all runs of a method
			}
			badge := "predicted (phantom h200"
			if ext == ".json" || ext == ".csv" {
				badge = "predicted"
			}
			if !bytes.Contains(text, []byte(badge)) {
				t.Errorf("%s: %s does not say %q", name, of, badge)
			}
			if name == "names" && !bytes.Contains(text, []byte("imported")) && !alone {
				t.Errorf("%s does not mark the imported run", of)
			}
		}
	}
	for _, r := range gallery()["names"].Runs {
		doc := memory.NewBreakdownDocument(r.Breakdown)
		var b bytes.Buffer
		if err := table.Write(&b, "table", report.BreakdownTables(doc)...); err != nil {
			t.Fatal(err)
		}
		if r.Source != schemas.Measured && !strings.Contains(b.String(), r.Source) {
			t.Errorf("breakdown of a run that is %s does not say so:\n%s", r.Source, b.String())
		}
	}
}

func TestBreakdownTables(t *testing.T) {
	s := gallery()["mixed"]
	var runs []memory.BreakdownRun
	for _, r := range s.Runs {
		runs = append(runs, r.Breakdown)
	}
	for _, f := range []string{"table", "csv"} {
		var b bytes.Buffer
		if err := table.Write(&b, f, report.BreakdownTables(memory.NewBreakdownDocument(runs...))...); err != nil {
			t.Fatal(err)
		}
		golden(t, "breakdown."+f, b.Bytes())
	}
	var b bytes.Buffer
	if err := table.Write(&b, "json", report.BreakdownTables(memory.NewBreakdownDocument(runs...))...); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Schema string
		Runs   []struct {
			RunID   string `json:"run_id"`
			Params  map[string]any
			Devices []struct {
				AllocatedBytes int64 `json:"allocated_bytes"`
				Categories     []struct{ Bytes int64 }
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != "dpsight.breakdown/1" || len(doc.Runs) != 4 || len(doc.Runs[1].Devices) != 0 ||
		doc.Runs[1].Params["bare"] != true || doc.Runs[3].Devices == nil {
		t.Errorf("%+v", doc)
	}
	for _, r := range doc.Runs {
		for _, d := range r.Devices {
			for _, c := range d.Categories {
				d.AllocatedBytes -= c.Bytes
			}
			if d.AllocatedBytes != 0 {
				t.Errorf("%s: categories do not sum to allocated_bytes: %d left", r.RunID, d.AllocatedBytes)
			}
		}
	}
}

// syntheticStore writes a store of six runs. Each run has about 30,000 allocator events.
func syntheticStore(tb testing.TB) string {
	dir := tb.TempDir()
	for i := range 6 {
		m := headline()[i%3]
		m.id, m.steps = "run-"+string(rune('a'+i)), 20
		base := m.blocks
		for k := range 740 { // about 1,500 events in a step
			m.blocks = append(m.blocks, block{1 + float64(k%37)/8, one(schemas.Categories[k%len(schemas.Categories)],
				schemas.Activations), true})
		}
		m.blocks = append(m.blocks, base...)
		in := m.input()
		run := filepath.Join(dir, m.id)
		if err := os.MkdirAll(run, 0o755); err != nil {
			tb.Fatal(err)
		}
		var events []schemas.Event
		for seq := range in.Report.Devices[0].Events {
			events = append(events, schemas.Event{RunID: m.id, Seq: seq + 1, Action: int32(schemas.ActionAlloc),
				Addr: 0x7f0000000000 + uint64(seq%4096)<<21, Size: 1 << 20})
		}
		if n := len(events); n < 29_000 {
			tb.Fatalf("%d events are too few for this test", n)
		}
		for _, err := range []error{schemas.WriteManifest(run, in.Manifest),
			schemas.WriteFile(filepath.Join(run, schemas.IngestReportFile), in.Report.Encode),
			schemas.Allocations.Write(run, in.Allocations),
			schemas.Owners.Write(run, in.Owners), schemas.Steps.Write(run, in.Steps), schemas.Phases.Write(run,
				in.Phases), schemas.Events.Write(run, events)} {
			if err != nil {
				tb.Fatal(err)
			}
		}
	}
	return dir
}

// wholeReport does the same as the report command.
func wholeReport(tb testing.TB, dir, out string) {
	sel, err := store.Open(dir).Resolve([]string{dir})
	if err != nil {
		tb.Fatal(err)
	}
	var runs []analyze.Summary
	for _, r := range sel.Runs {
		tables, err := store.Load(r, analyze.SummaryTables)
		if err != nil {
			tb.Fatal(err)
		}
		tables.Confidence = report.ConfidenceOf(tables)
		runs = append(runs, analyze.Summarize(*tables))
	}
	study := compare.NewStudy(runs, &runs[compare.DefaultBaseline(runs, nil)])
	if _, err := report.Write(out, report.Model{Title: "synthetic", Study: study}); err != nil {
		tb.Fatal(err)
	}
}

func BenchmarkReport(b *testing.B) {
	dir, out := syntheticStore(b), b.TempDir()
	for b.Loop() {
		wholeReport(b, dir, out)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-from-OS")
}

// cheapStore is an environment variable. TestReportIsCheap sets it for a process that it starts, and the process makes
// a report on the store that the variable names.
const cheapStore = "DPSIGHT_TEST_CHEAP_STORE"

// A report on six runs of 30,000 events takes less than 300 MB. The report runs in its own process, without the memory
// of other tests. BenchmarkReport measures its time, since a limit on the time would depend on the machine's other
// work.
func TestReportIsCheap(t *testing.T) {
	if testing.Short() {
		t.Skip("-short")
	}
	if dir := os.Getenv(cheapStore); dir != "" {
		wholeReport(t, dir, t.TempDir())
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%d MB", m.Sys/1e6)
		if m.Sys > 300e6 {
			t.Errorf("the report took %d MB from the system", m.Sys/1e6)
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestReportIsCheap$", "-test.v")
	cmd.Env = append(os.Environ(), cheapStore+"="+syntheticStore(t))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestReportIsCheap") {
		t.Errorf("%v\n%s", err, out)
	}
}

// If runs have no tables, a single note of each table names them. The report does not mention unknown peaks.
func TestRunsWithoutTables(t *testing.T) {
	const same = "peak allocated is the same to the byte in all repeats of a run"
	repeat := func(n int, method string, ingested bool) analyze.Summary {
		in := methodRun(fmt.Sprintf("20261121T10150%dZ-%s-aaaaa%d", n, method, n), method).input()
		if !ingested {
			in = schemas.Tables{Manifest: in.Manifest}
		}
		return analyze.Summarize(in)
	}
	for _, c := range []struct {
		runs  []analyze.Summary
		notes string // notes of the tables of categories, methods and costs
		same  bool
	}{
		{[]analyze.Summary{repeat(0, "vanilla", true), repeat(1, "vanilla", true)}, "", true},
		{[]analyze.Summary{repeat(0, "vanilla", true), repeat(1, "vanilla", false)}, "", false},
		{[]analyze.Summary{repeat(0, "vanilla", true), repeat(1, "ghost", false), repeat(2, "ghost", false),
			repeat(3, "dpsgd", false)}, "ghost, dpsgd", false},
	} {
		dir := t.TempDir()
		if _, err := report.Write(dir, report.Model{Study: compare.NewStudy(c.runs, nil)}); err != nil {
			t.Fatal(err)
		}
		var text []byte
		for _, name := range []string{"categories", "methods", "cost"} {
			table, err := os.ReadFile(filepath.Join(dir, "tables", name+".md"))
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, table...)
		}
		if found := strings.Contains(string(text), same); found != c.same {
			t.Errorf("%q: %s: %v", c.notes, same, found)
		}
		if n := strings.Count(string(text), "\n- not ingested yet: "+c.notes+"\n"); c.notes != "" && n != 3 ||
			strings.Contains(string(text), ": not ingested yet\n") {
			t.Errorf("%q in %d tables:\n%s", c.notes, n, text)
		}
	}
}

// If the printed categories do not sum to the peak beneath them, a note says which moment the categories show.
func TestLatePeakInCategories(t *testing.T) {
	run := methodRun("20261121T101500Z-vanilla-aaaaa0", "vanilla")
	in := run.input()
	late := *in.Report.Devices[0].TorchPeakAllocatedBytes + 1<<30
	in.Report.Devices[0].TorchPeakAllocatedBytes = &late
	dir := t.TempDir()
	if _, err := report.Write(dir, report.Model{Study: compare.NewStudy([]analyze.Summary{analyze.Summarize(in)},
		nil)}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "tables", "categories.md"))
	if err != nil || !strings.Contains(string(text), "the categories show the highest recorded moment") {
		t.Errorf("%v\n%s", err, text)
	}
}

// If a run ran out of memory, the report shows the failed request. The report says how much was requested, which module
// requested it, and which categories held the memory.
func TestReportShowsWhatRunsDiedOf(t *testing.T) {
	in := methodRun("20261121T101500Z-vanilla-aaaaa0", "vanilla").input()
	in.Manifest.Status = schemas.StatusOOM
	in.Report.OOMs = []schemas.OOM{{Seq: in.Report.Devices[0].Events, RequestedBytes: 41 << 30, LimitBytes: 60 << 30,
		DeviceFreeBytes: 2 << 30, Step: 2, Phase: schemas.PhaseForward, Module: "head", Fatal: true}}
	write := func() (dir, texts string) {
		dir = t.TempDir()
		if _, err := report.Write(dir, report.Model{Study: compare.NewStudy([]analyze.Summary{analyze.Summarize(in)},
			nil)}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"summary.txt", "tables/failed_requests.md"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			texts += string(text)
		}
		return dir, texts
	}
	dir, text := write()
	for _, want := range []string{"\n| vanilla \\[oom\\] | cuda:0 | 41,984.00 | head | forward | 2 | 13,440.22 |",
		"\nnote: vanilla: A request for 41,984.00 MiB by module head failed in forward of step 2, and this ended " +
			"the run\n", " (8,938.81 MiB of optimizer state, 4,469.41 MiB of parameters"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	results, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc compare.StudyDocument
	if err := json.Unmarshal(results, &doc); err != nil || len(doc.Failed) != 1 ||
		doc.Failed[0].RequestedBytes != 41<<30 || doc.Failed[0].RunID != in.Manifest.RunID {
		t.Errorf("%+v, %v", doc.Failed, err)
	}
	in.Manifest.Status = schemas.StatusOK
	caught, tried := in.Report.OOMs[0], in.Report.OOMs[0]
	caught.Fatal, tried.Fatal, tried.Raised = false, false, new(false)
	in.Report.OOMs = []schemas.OOM{tried, caught, tried}
	_, text = write()
	for _, want := range []string{" 1 | the script |\n", " 2 | torch, without it |\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	in.Report.OOMs = nil
	if dir, text := write(); strings.Contains(text, "A request for") {
		t.Errorf("a table of no failures:\n%s", text)
	} else if _, err := os.Stat(filepath.Join(dir, "tables", "failed_requests.md")); err == nil {
		t.Error("a table of no failures is written")
	}
}

// The notes of a trade-off name the runs that have wall time. The note on failed runs counts their repeats.
func TestFigureNotes(t *testing.T) {
	a, b := methodRun("20261121T101500Z-vanilla-aaaaa0", "vanilla").input(), methodRun("20261121T101501Z-ghost-aaaaa1",
		"ghost").input()
	for i := range b.Steps {
		b.Steps[i].GPUNS = 0
	}
	notes := func(name string, runs ...analyze.Summary) string {
		m := report.Model{Study: compare.NewStudy(runs, nil)}
		for _, f := range m.Figures() {
			if f.Name != name {
				continue
			}
			switch p := f.Picture.(type) {
			case *figure.Tradeoff:
				return strings.Join(p.Notes, "; ")
			case *figure.MemoryBreakdown:
				return strings.Join(p.Notes, "; ")
			}
		}
		t.Fatal("no figure " + name)
		return ""
	}
	if got := notes("tradeoff", analyze.Summarize(a), analyze.Summarize(b)); !strings.Contains(got,
		"by GPU time, except for ghost: by wall time") {
		t.Error(got)
	}
	if got := notes("tradeoff", analyze.Summarize(a)); strings.Contains(got, "wall time") {
		t.Error(got)
	}
	first, second := methodRun("1", "vanilla"), methodRun("2", "vanilla")
	second.blocks = append(second.blocks, block{64, one(schemas.Buffers), false})
	first.status, second.status = schemas.StatusOOM, schemas.StatusOOM
	if got := notes("breakdown", summaries(first, second)...); !strings.Contains(got,
		"median of 2 repeats") {
		t.Error(got)
	}
}

// If a run failed before its versions were recorded, the note names this run, even if another run has the same label.
func TestFigureNotesOfRunThatFailedEarly(t *testing.T) {
	runs := summaries(methodRun("1", "vanilla"), methodRun("2", "ghost"), methodRun("3", "vanilla"))
	early := methodRun("4", "vanilla").input()
	early.Manifest.Status, early.Manifest.Environment, early.Report = schemas.StatusFailed, nil, nil
	s := compare.NewMatchedStudy(append(runs, analyze.Summarize(early)), nil, "")
	m := report.Model{Study: s}
	got, want := strings.Join(m.Figures()[0].Picture.(*figure.MemoryBreakdown).Notes, "\n"),
		"torch 2.11.0 (all but vanilla [failed])"
	if !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	row := report.ConfigurationTables(&s)[1].Rows
	if i := slices.IndexFunc(row, func(r []table.Cell) bool {
		return r[0].Text == "torch"
	}); i < 0 || row[i][2].Text != "all but vanilla [failed]" {
		t.Errorf("%+v", row)
	}
}

// If the runs of a figure have different settings, its notes say which settings all share, which only some have, and in
// which the runs differ.
func TestFigureNotesOfMixedRuns(t *testing.T) {
	run := func(id, method string, params map[string]any) madeUp {
		m := methodRun(id, method)
		for k, v := range params {
			m.params[k] = v
		}
		return m
	}
	mlp := run("3", "vanilla", map[string]any{"model": "mlp", "batch_size": 32.0})
	mlp.name = "wide"
	delete(mlp.params, "seq_len")
	note := func(runs ...madeUp) (string, []table.Table) {
		s := compare.NewMatchedStudy(summaries(runs...), nil, "")
		m := report.Model{Study: s}
		return strings.Join(m.Figures()[0].Picture.(*figure.MemoryBreakdown).Notes, "\n"),
			report.ConfigurationTables(&s)
	}
	got, tables := note(run("1", "vanilla", map[string]any{"model": "transformer", "batch_size": 8.0}),
		run("2", "ghost", map[string]any{"model": "transformer", "batch_size": 16.0}), mlp)
	for _, want := range []string{"ghost is compared with vanilla, though batch_size differs: 16, baseline 8",
		"fp32, NVIDIA H200, torch 2.11.0", "not of all runs: sequence 16384 (all but wide)",
		"runs differ in model: transformer (vanilla, ghost), mlp (wide); batch: 8 (vanilla), 16 (ghost), 32 (wide)"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if len(tables) != 3 || tables[1].Rows[0][0].Text != "seq_len" || tables[1].Rows[0][2].Text != "all but wide" {
		t.Errorf("%+v", tables)
	}
	for _, row := range tables[0].Rows {
		if row[0].Text == "seq_len" || row[0].Text == "batch_size" {
			t.Errorf("%s is said of all runs", row[0].Text)
		}
	}
	if got, _ := note(headline()...); strings.Contains(got, "differ") || strings.Contains(got, "not of all") ||
		!strings.Contains(got, "batch 1, sequence 16384, fp32, NVIDIA H200, torch 2.11.0") {
		t.Errorf("runs that differ in the method only:\n%s", got)
	}
}

// The table of evidence has one row for each device. The columns of evidence sum to the whole, and a small share never
// prints as 0.
func TestKnownTable(t *testing.T) {
	d := memory.DeviceBreakdown{Device: "cuda:0", AllocatedBytes: 1 << 20,
		Conservation: memory.Conservation{Verdict: schemas.Exact, AmbiguousTags: 2},
		Remarks:      []memory.Remark{{Kind: memory.RemarkOfIngest, Text: "beware"}},
		Categories: []memory.CategoryBytes{{Category: schemas.Parameters, Bytes: 1<<20 - 1028,
			Evidence: memory.Evidence{TaggedBytes: 1<<20 - 1028}},
			{Category: schemas.Slack, Bytes: 512, Evidence: memory.Evidence{LifetimeBytes: 512}},
			{Category: schemas.Other, Bytes: 4, Evidence: memory.Evidence{PhaseOnlyBytes: 4}},
			{Category: schemas.Untraced, Bytes: 512, Evidence: memory.Evidence{LifetimeBytes: 512}}}}
	if k := d.Known(); k.TaggedBytes+k.LifetimeBytes+k.PhaseOnlyBytes != d.AllocatedBytes || k.LifetimeBytes != 1024 ||
		k.UnownedBytes != 516 {
		t.Errorf("%+v", k)
	}
	run := func(name, status string, params map[string]any, devices ...memory.DeviceBreakdown) memory.BreakdownRun {
		return memory.BreakdownRun{Identity: identity.Identity{RunID: name, Name: name, Status: status,
			Source: schemas.Measured, Params: params}, Devices: devices}
	}
	second := d
	second.Rank, second.AllocatedBytes = 1, 0
	doc := memory.NewBreakdownDocument(run("two", schemas.StatusOK, nil, d, second), run("b", schemas.StatusOK,
		map[string]any{"bare": true}), run("died", schemas.StatusKilled, nil))
	golden(t, "known.table", []byte(printed(t, "table", []table.Table{report.KnownTable(doc)})))
}

// If a figure has a method that is not private, its notes say so.
func TestFiguresSayWhatIsNotPrivate(t *testing.T) {
	for _, c := range []struct {
		method string
		said   bool
	}{{"norm_only", true}, {"ghost", false}} {
		s := study(0, methodRun("v", "vanilla"), methodRun("x", c.method))
		m := report.Model{Study: s}
		notes := strings.Join(m.Figures()[0].Picture.(*figure.MemoryBreakdown).Notes, "\n")
		if strings.Contains(notes, c.method+": computes norms, and clips and adds nothing: not private") != c.said {
			t.Errorf("%s:\n%s", c.method, notes)
		}
	}
}

// If the trade-off is missing, the note gives the right reason. Runs that ended early may have peaks and times, and are
// still not drawn.
func TestTheTradeoffThatIsNotDrawn(t *testing.T) {
	for status, want := range map[string]string{schemas.StatusOK: "", schemas.StatusOOM: "note: tradeoff " +
		"is left out: no run that has both a peak and a step time ended well\n"} {
		run := methodRun("v", "vanilla")
		run.status = status
		dir := t.TempDir()
		if _, err := report.Write(dir, report.Model{Title: "t", Study: study(-1, run)}); err != nil {
			t.Fatal(err)
		}
		summary, err := os.ReadFile(filepath.Join(dir, "summary.txt"))
		if err != nil || !strings.Contains(string(summary), want) || want == "" &&
			strings.Contains(string(summary), "left out") {
			t.Errorf("%s: %s, %v", status, summary, err)
		}
	}
}

// If all runs of a table have the same badge, the badge appears once under the table, and not in rows and columns. In
// the rows for programs, each row has it.
func TestBadgesOfAllRunsAreSaidOnce(t *testing.T) {
	s := gallery()["predicted"]
	const badge = "predicted (phantom h200, indicative)"
	if s.CommonBadge() != badge || len(s.Cells) < 2 {
		t.Fatalf("%d runs: %q", len(s.Cells), s.CommonBadge())
	}
	before, after := headline()[0], headline()[2]
	before.source, after.source = schemas.Predicted, schemas.Predicted
	explained, err := explain.Explain(explain.NewInput(before.input()), explain.NewInput(after.input()))
	if err != nil {
		t.Fatal(err)
	}
	var cost []analyze.CostRun
	var broken []memory.BreakdownRun
	for i := range s.Runs {
		cost, broken = append(cost, s.Runs[i].Cost), append(broken, s.Runs[i].Breakdown)
	}
	tables := slices.Concat(report.OverheadTables(s), report.ExplainTables(explained, 0),
		report.ConfigurationTables(&s),
		[]table.Table{report.CostTable(analyze.NewCostDocument(cost...)),
			report.KnownTable(memory.NewBreakdownDocument(broken...)), report.RunsTable(analyze.Runs(s.Runs))})
	for _, one := range tables {
		for _, format := range []string{"table", "markdown", "latex"} {
			text := strings.NewReplacer(`\[`, "[", `\]`, "]").Replace(printed(t, format, []table.Table{one}))
			if n := strings.Count(text, badge); strings.Contains(text, "["+badge) ||
				!strings.Contains(text, "all runs: "+badge) || n > 3 {
				t.Errorf("said %d times:\n%s", n, text)
			}
		}
	}
	if text := printed(t, "csv", report.OverheadTables(s)[:1]); strings.Count(text, "["+badge+"]") != len(s.Cells) {
		t.Errorf("rows for programs:\n%s", text)
	}

	// If the runs have different badges, or one failed, each row shows its badge.
	runs := headline()
	for i := range runs[:2] {
		runs[i].source = schemas.Predicted
	}
	for _, status := range []string{schemas.StatusOK, schemas.StatusOOM} {
		if status != schemas.StatusOK {
			runs[2].source, runs[2].status = schemas.Predicted, status
		}
		mixed := study(0, runs...)
		if text := printed(t, "table", report.OverheadTables(mixed)[:1]); mixed.CommonBadge() != "" ||
			strings.Contains(text, "all runs:") || strings.Count(text, "\ndpsgd ["+badge+"]") != 1 {
			t.Errorf("runs that differ (%s):\n%s", status, text)
		}
	}
}
