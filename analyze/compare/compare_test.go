package compare_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

func compare(t *testing.T, o Options, runs ...analyze.Summary) Document {
	t.Helper()
	if o.Value.Name == "" {
		o.Value = Metric{Name: MetricPeak}
	}
	doc, err := Compare(runs, o)
	if err != nil {
		t.Fatal(err)
	}
	return report.CompareTables(doc)[0].Document.(Document)
}

// text formats a pivot table in one line: "vanilla,8: 100 | ghost,8: 150 +50".
func text(d *Document) string {
	var cells []string
	for _, c := range d.Cells {
		var words []string
		for _, k := range d.Rows {
			words = append(words, orDash(c.Row[k]))
		}
		for _, k := range d.Cols {
			words = append(words, orDash(c.Col[k]))
		}
		s := strings.Join(words, ",") + ":"
		if c.Value != nil {
			s += fmt.Sprintf(" %.0f", *c.Value)
		}
		if c.Delta != nil && !c.IsBaseline {
			s += fmt.Sprintf(" %+.0f", *c.Delta)
		}
		if c.IsBaseline {
			s += " base"
		}
		cells = append(cells, s)
	}
	return strings.Join(cells, " | ")
}

func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func TestPivot(t *testing.T) {
	runs := []analyze.Summary{
		summaries.Ran("1", "ghost", 3000, "batch_size", 32, "clipping", "flat"),
		summaries.Ran("2", "vanilla", 2000, "batch_size", 32),
		summaries.Ran("3", "ghost", 1500, "batch_size", 8, "clipping", "flat"),
		summaries.Ran("4", "vanilla", 1000, "batch_size", 8),
	}
	doc := compare(t, Options{}, runs...)
	// As axes of a table, Compare chooses the parameters that differ and do not follow from the method. Compare sorts
	// numbers by value, and compares the runs of each column with the baseline in the same column.
	want := "ghost,8: 1500 +500 | ghost,32: 3000 +1000 | vanilla,8: 1000 base | vanilla,32: 2000 base"
	if got := text(&doc); got != want || fmt.Sprint(doc.Rows, doc.Cols) != "[method] [batch_size]" ||
		doc.Baseline.Label != "method=vanilla" {
		t.Errorf("%v %v %s", doc.Rows, doc.Cols, got)
	}
	if len(doc.Warnings) > 0 {
		t.Errorf("what the columns say differs is no caution: %q", doc.Warnings)
	}
	for _, c := range []struct {
		what string
		o    Options
		want string
	}{
		{"columns asked for", Options{Cols: []string{"method"}}, "8,ghost: 1500 +500 | 8,vanilla: 1000 base | " +
			"32,ghost: 3000 +1000 | 32,vanilla: 2000 base"},
		{"another baseline", Options{Match: map[string]string{"batch_size": "8"}},
			"ghost,8: 1500 base | ghost,32: 3000 +1500 | vanilla,8: 1000 base | vanilla,32: 2000 +1000"},
		{"one cell for all", Options{Match: map[string]string{"batch_size": "8", "method": "vanilla"}},
			"ghost,8: 1500 +500 | ghost,32: 3000 +2000 | vanilla,8: 1000 base | vanilla,32: 2000 +1000"},
		{"a suite's baseline", Options{Prefer: map[string]any{"method": "ghost", "seq_len": 512}},
			"ghost,8: 1500 base | ghost,32: 3000 base | vanilla,8: 1000 -500 | vanilla,32: 2000 -1000"},
		{"a suite's baseline that no run is of", Options{Prefer: map[string]any{"method": "bk"}}, want},
		{"one run for all", Options{Run: &runs[3]}, "ghost,8: 1500 +500 | ghost,32: 3000 +2000 | vanilla,8: " +
			"1000 base | vanilla,32: 2000 +1000"},
		{"another value", Options{Value: Metric{MetricCategory, schemas.Parameters}},
			"ghost,8: 750 +250 | ghost,32: 1500 +500 | vanilla,8: 500 base | vanilla,32: 1000 base"},
		{"rows within rows", Options{Rows: []string{"batch_size", "method"}}, "8,ghost: 1500 +500 | " +
			"8,vanilla: 1000 base | 32,ghost: 3000 +1000 | 32,vanilla: 2000 base"},
	} {
		doc := compare(t, c.o, runs...)
		if got := text(&doc); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	doc = compare(t, Options{Rows: []string{"method"}, Cols: []string{"clipping"}}, runs...)
	if got, w := text(&doc), strings.Join(doc.Warnings, "\n"); got != "ghost,flat: | ghost,-: | vanilla,flat: | "+
		"vanilla,-: base" || !strings.Contains(w, "runs of one cell differ in batch_size") ||
		!strings.Contains(w, "2 different experiments have no common median: batch_size=32 | batch_size=8;") {
		t.Errorf("mixed cells: %s, %q", got, doc.Warnings)
	}
}

// A run is compared with the baseline even if the run has a parameter that the baseline's method lacks. For example,
// plain training has no clipping. A run is not compared with a baseline of another preset.
func TestPivotWithWhatTheBaselineLacks(t *testing.T) {
	doc := compare(t, Options{},
		summaries.Ran("1", "vanilla", 1000, "model", "lm", "preset", "tiny"),
		summaries.Ran("2", "dpsgd", 1500, "model", "lm", "preset",
			"tiny", "clipping", "flat"),
		summaries.Ran("3", "ghost", 1200, "model", "lm", "preset", "tiny", "clipping", "flat"),
		summaries.Ran("4", "ghost", 9000, "model",
			"lm", "preset", "small", "clipping", "flat"),
		summaries.Ran("5", "dpsgd", 300, "model", "mlp", "clipping", "per_layer"))
	for _, want := range []struct {
		run   string
		delta float64
	}{{"2", 500}, {"3", 200}, {"4", 0}, {"5", 0}} {
		i := slices.IndexFunc(doc.Cells, func(c CompareCell) bool { return slices.Contains(c.RunIDs, want.run) })
		if c := &doc.Cells[i]; (c.Delta != nil) != (want.delta != 0) || c.Delta != nil && *c.Delta != want.delta {
			t.Errorf("run %s: %s", want.run, text(&doc))
		}
	}
	if doc.Baseline.Label != "method=vanilla" || !slices.Contains(slices.Concat(doc.Rows, doc.Cols), "clipping") {
		t.Errorf("%v × %v beside %s: nothing is tried", doc.Rows, doc.Cols, doc.Baseline.Label)
	}
}

func TestCellsOfSeveralRuns(t *testing.T) {
	failed := summaries.Ran("5", "ghost", 9999)
	failed.Status = schemas.StatusOOM
	doc := compare(t, Options{}, summaries.Ran("1", "vanilla", 1000), summaries.Ran("2", "ghost", 1501),
		summaries.Ran("3", "ghost", 1498),
		failed)
	c := doc.Cells[1]
	if *c.Value != 1498 || *c.Low != 1498 || *c.High != 1501 || c.N != 2 || len(c.RunIDs) != 3 ||
		c.Failed[0] != (FailedRun{"5", schemas.StatusOOM}) || *c.Delta != 498 {
		t.Errorf("bytes that a run had, of the runs that ended well: %+v", c)
	}
	if cell := Cells([]analyze.Summary{summaries.Ran("2", "ghost", 1501),
		summaries.Ran("3", "ghost", 1498)}); *cell[0].PeakBytes != int64(
		*c.Value) {
		t.Errorf("a report says %d, a comparison %v", *cell[0].PeakBytes, *c.Value)
	}
	odd := summaries.Ran("3", "ghost", 1498)
	odd.Remarks = []analyze.Remark{{Kind: analyze.RemarkNoPeak, Err: errors.New("something is odd")}}
	doc = compare(t, Options{}, summaries.Ran("1", "vanilla", 1000), summaries.Ran("2", "ghost", 1501), odd)
	if w := strings.Join(doc.Warnings, "; "); !strings.Contains(w, "ghost: something is odd") {
		t.Errorf("a warning of a cell's second run: %q", w)
	}
	failed.Status = schemas.StatusFailed
	doc = compare(t, Options{}, summaries.Ran("1", "vanilla", 1000), failed, summaries.Ran("7", "dpsgd", 1200))
	if c = doc.Cells[1]; c.Value != nil || c.N != 0 || c.Delta != nil || len(c.Failed) != 1 {
		t.Errorf("what a failed run held is not what it needs: %+v", c)
	}
}

// If an experiment has a full run and a bare run, the bare run gets no column. The full run's cell takes the energy
// that the bare run measured.
func TestPivotWithBareTwins(t *testing.T) {
	bare := func(s analyze.Summary, joules float64) analyze.Summary {
		s.RunID += "-bare"
		s.Params = map[string]any{"method": s.Params["method"], "bare": true}
		s.JoulesPerStep, s.JoulesPerSample = &joules, &joules
		return s
	}
	a, b := summaries.Ran("a", "vanilla", 1000), summaries.Ran("b", "ghost", 1500)
	all := []analyze.Summary{a, bare(a, 10), b, bare(b, 25)}
	doc := compare(t, Options{}, all...)
	if got := text(&doc); got != "vanilla: 1000 base | ghost: 1500 +500" || len(doc.Differences) == 0 ||
		!strings.Contains(strings.Join(doc.Warnings, "\n"), "left out bare runs whose full "+
			"runs are shown") {
		t.Errorf("%s, %q", got, doc.Warnings)
	}
	if doc = compare(t, Options{Value: Metric{Name: MetricEnergy}},
		all...); text(&doc) != "vanilla: 10 base | ghost: 25 +15" {
		t.Errorf("%s, %q", text(&doc), doc.Warnings)
	}
	if doc = compare(t, Options{}, a, bare(a, 10)); len(doc.Cells) != 2 || fmt.Sprint(doc.Rows) != "[bare]" {
		t.Errorf("a run beside its own twin: %v %s", doc.Rows, text(&doc))
	}
}

// All repeats of an experiment, recorded or bare, are one cell, which has the warnings of the recorded run. If only one
// method has a parameter, the parameter makes rows and not columns of dashes. A run without this parameter is still its
// method's baseline.
func TestPivotOfRepeats(t *testing.T) {
	run := func(id, method, mode string, bytes int64, bare bool) analyze.Summary {
		s := summaries.Ran(id, method, bytes)
		if s.Params = map[string]any{"method": method, "bare": bare}; mode != "" {
			s.Params["grad_sample_mode"] = mode
		}
		if s.Suite = "batch"; bare {
			s.Remarks = []analyze.Remark{{Kind: analyze.RemarkNoBlocks, Err: errors.New("it is a bare run")}}
		}
		s.Key = method + mode
		return s
	}
	all := []analyze.Summary{run("1", "vanilla", "", 1000, false), run("2", "dpsgd", "hooks", 1500, false),
		run("3", "dpsgd", "functorch", 1600, false), run("4", "ghost", "", 1200, false),
		run("5", "vanilla", "", 1000, true), run("6", "dpsgd", "hooks", 1500, true), run("7", "dpsgd", "functorch",
			1600, true), run("8", "ghost", "", 1200, true)}
	doc := compare(t, Options{}, all...)
	if fmt.Sprint(doc.Rows, doc.Cols) != "[method grad_sample_mode] []" || len(doc.Cells) != 4 {
		t.Fatalf("rows %v, columns %v, %d cells", doc.Rows, doc.Cols, len(doc.Cells))
	}
	for i, want := range []float64{0, 500, 600, 200} {
		if c := doc.Cells[i]; c.N != 2 || i > 0 && (c.Delta == nil || *c.Delta != want) {
			t.Errorf("%v: %d runs, difference %v, not %v", c.Row, c.N, c.Delta, want)
		}
	}
	if w := strings.Join(doc.Warnings, "; "); strings.Contains(w, "not broken down") {
		t.Errorf("%s", w)
	}
}

// If the runs of commands have no method, the table lists them by name. Two such runs are not one experiment.
func TestPivotOfCommands(t *testing.T) {
	command := func(name string, bytes int64) analyze.Summary {
		s := summaries.Ran(name, "", bytes)
		s.Params, s.Name, s.RunFacts = map[string]any{}, name, nil
		s.Remarks = []analyze.Remark{{Kind: analyze.RemarkNoPeak, Err: errors.New("odd")}}
		return s
	}
	doc := compare(t, Options{}, summaries.Ran("1", "vanilla", 1000), command("a", 300), command("b", 400))
	if got := text(&doc); got != "vanilla: 1000 base | a: 300 -700 | b: 400 -600" ||
		!strings.Contains(strings.Join(doc.Warnings, "\n"), "a, b: odd") {
		t.Errorf("%v %s, %q", doc.Rows, got, doc.Warnings)
	}
	// The runs of two different scripts are two experiments, even if both runs have the same method.
	script := func(id, script string, bytes int64) analyze.Summary {
		s := summaries.Ran(id, "dpsgd", bytes)
		s.Script = script
		return s
	}
	doc = compare(t, Options{}, summaries.Ran("1", "vanilla", 100), script("2", "bmm.py", 300),
		script("3", "pois.py", 400))
	if got := text(&doc); got != "vanilla,bmm.py: | vanilla,pois.py: | vanilla,-: 100 base | "+
		"dpsgd,bmm.py: 300 +200 | dpsgd,pois.py: 400 +300 | dpsgd,-:" {
		t.Errorf("%s, %q", got, doc.Warnings)
	}
	doc = compare(t, Options{Rows: []string{"method"}, Cols: []string{}}, summaries.Ran("1", "vanilla", 100),
		script("2", "bmm.py", 300), script("3", "pois.py", 400))
	if got, w := text(&doc), strings.Join(doc.Warnings, "\n"); got != "vanilla: 100 base | dpsgd:" ||
		!strings.Contains(w, "dpsgd: 2 different experiments have no common median: ") {
		t.Errorf("%s, %q", got, w)
	}
	// If the row's parameters do not describe the runs of a cell, warnings name these runs.
	doc = compare(t, Options{Rows: []string{"batch_size"}, Cols: []string{}}, summaries.Ran("1", "vanilla", 1000,
		"batch_size", 8), command("a", 300))
	if !strings.Contains(strings.Join(doc.Warnings, "\n"), "a: odd") {
		t.Errorf("%s, %q", text(&doc), doc.Warnings)
	}
}

// For any choice of rows and columns, each run is in exactly one cell.
func TestPivotLosesNoRun(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		var runs []analyze.Summary
		for i := range 2 + r.IntN(12) {
			params := []any{"batch_size", 1 << r.IntN(3), "seq_len", []any{512, "512", 1024, nil}[r.IntN(4)]}
			runs = append(runs, summaries.Ran(fmt.Sprint(i), []string{"vanilla", "ghost", "dpsgd"}[r.IntN(3)],
				int64(1+r.IntN(1000)), params...))
		}
		keys := []string{"method", "batch_size", "seq_len", "name", "source"}
		r.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
		for _, o := range []Options{{}, {Rows: keys[:1]}, {Cols: keys[:2]}, {Rows: keys[:2], Cols: keys[2:4]},
			{Run: &runs[0]}} {
			o.Value = Metric{Name: MetricPeak}
			doc, err := Compare(runs, o)
			if err != nil && strings.Contains(err.Error(), "no run has") { // no run has one of the keys
				continue
			}
			if err != nil {
				t.Fatalf("%+v: %v", o, err)
			}
			var ids []string
			for _, c := range doc.Cells {
				ids = append(ids, c.RunIDs...)
			}
			slices.Sort(ids)
			if len(ids) != len(runs) || len(slices.Compact(ids)) != len(runs) {
				t.Errorf("%d runs, %v in cells (%+v)", len(runs), ids, o)
			}
		}
	}
}

func TestTwoRunsSideBySide(t *testing.T) {
	a, b := summaries.Ran("a", "vanilla", 1000, "batch_size", 8), summaries.Ran("b", "ghost", 1500, "batch_size", 16)
	doc := compare(t, Options{}, a, b)
	find := func(metric string) *Difference {
		i := slices.IndexFunc(doc.Differences, func(d Difference) bool { return d.Metric == metric })
		if i < 0 {
			return &Difference{}
		}
		return &doc.Differences[i]
	}
	if d := find("peak"); d.Delta == nil || *d.Delta != 500 || *d.Ratio != 1.5 || *doc.Baseline.RunID != "a" {
		t.Errorf("%+v of %+v", d, doc)
	}
	if d := find("category:activations"); d.Delta == nil || *d.Delta != 250 || find("category:noise").Metric != "" ||
		find("time").Metric != "" {
		t.Errorf("%+v", d)
	}
	if said := strings.Join(doc.Warnings, "\n"); !strings.Contains(said, "ghost: batch_size differs: 16, baseline 8") {
		t.Errorf("another batch: %q", said)
	}
	if doc = compare(t, Options{Run: &b}, a, b); *find("peak").Delta != -500 || *doc.Baseline.RunID != "b" {
		t.Errorf("the other way round: %+v", find("peak"))
	}
	if doc = compare(t, Options{}, b, a); *find("peak").Delta != -500 ||
		!strings.Contains(strings.Join(doc.Warnings, "\n"), "vanilla: batch_size differs: 8, baseline 16") {
		t.Errorf("the first is the baseline, whatever its method: %+v, %q", find("peak"), doc.Warnings)
	}
	if doc = compare(t, Options{Run: &b}, a); *find("peak").Delta != -500 {
		t.Errorf("a baseline that is not among the runs: %+v", find("peak"))
	}
	if doc = compare(t, Options{}, a, summaries.Ran("c", "vanilla", 3000, "batch_size", 32)); !strings.Contains(
		strings.Join(doc.Warnings, "\n"), "vanilla: batch_size differs: 32, baseline 8") {
		t.Errorf("the same method with another batch: %q", doc.Warnings)
	}
	if doc = compare(t, Options{Rows: []string{"method"}}, a, b); len(doc.Differences) != 0 ||
		len(doc.Cells) != 2 {
		t.Errorf("a pivot was asked for: %+v", doc)
	}
}

func TestComparisonsThatAreNone(t *testing.T) {
	a, b := summaries.Ran("a", "vanilla", 1000), summaries.Ran("b", "ghost", 1500)
	for _, c := range []struct {
		runs []analyze.Summary
		o    Options
		said string
	}{
		{nil, Options{}, "nothing to be compared with"},
		{[]analyze.Summary{a}, Options{}, "nothing to be compared with"},
		{[]analyze.Summary{a}, Options{Run: &a}, "nothing to be compared with"},
		{[]analyze.Summary{a, b}, Options{Rows: []string{"batchsize"}},
			`no run has "batchsize"; there are method, source`},
		{[]analyze.Summary{a, b}, Options{Rows: []string{"method"}, Cols: []string{"method"}},
			`"method" is given twice`},
		{[]analyze.Summary{a, b}, Options{Match: map[string]string{"seq_len": "8"}}, "seq_len is neither a row nor a " +
			"column; these are method"},
		{[]analyze.Summary{a, b}, Options{Match: map[string]string{"method": "flash"}},
			"baseline method=flash: no run has that"},
		{[]analyze.Summary{a, b}, Options{Value: Metric{Name: MetricTime}}, "no run has a value for time"},
		{[]analyze.Summary{a, b}, Options{Value: Metric{MetricPhase, "forward"}}, "no run has a value for phase:forward"},
	} {
		if c.o.Value.Name == "" {
			c.o.Value = Metric{Name: MetricPeak}
		}
		if _, err := Compare(c.runs, c.o); err == nil || !strings.Contains(err.Error(), c.said) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.said)
		}
	}
}

func TestMetrics(t *testing.T) {
	for _, text := range MetricNames() {
		text = strings.Replace(text, "NAME", schemas.Gradients, 1)
		m, err := ParseMetric(text)
		if err != nil || m.String() != text || m.Unit() == "" {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
	s := analyze.Summarize(fixture.Slow(fixture.Sized("x", map[schemas.Category]int64{schemas.Parameters: 100,
		schemas.Noise: 20}), 4, 4))
	for text, want := range map[string]float64{"peak": 120, "reserved": 240, "time": 4, "step": 4, "samples": 2000,
		"tokens": 20000, "category:noise": 20, "category:outputs": 0} {
		m, err := ParseMetric(text)
		if got := m.ValueIn(&s); err != nil || got == nil || *got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"device", "energy", "phase:forward", "phase-peak:forward"} {
		if m, err := ParseMetric(text); err != nil || m.ValueIn(&s) != nil {
			t.Errorf("%s is made up", text)
		}
	}
}
