package trend

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// began is the time at which the first revision of the tests was committed.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// revision returns the name of the n-th revision.
func revision(n int) string { return fmt.Sprintf("%012x%028d", n+1, 0) }

// run returns a run of the n-th revision with the given bytes of activations.
func run(n, repeat int, bytes int64) schemas.Tables {
	in := fixture.Sized("train", map[schemas.Category]int64{schemas.Parameters: 1000, schemas.Activations: bytes})
	committed := began.AddDate(0, 0, n)
	in.Manifest.RunID = fmt.Sprintf("run-%d-%d", n, repeat)
	in.Manifest.Command = []string{"python", "train.py"}
	in.Manifest.Git = &schemas.Git{Revision: revision(n), Committed: &committed}
	in.Manifest.Start = began.AddDate(1, 0, 0).Add(time.Duration(repeat) * time.Minute)
	return in
}

// of returns the trend of a value over runs of a single experiment.
func of(t *testing.T, over Over, value string, runs ...analyze.Summary) *Experiment {
	t.Helper()
	m, err := compare.ParseMetric(value)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := Of(runs, over, m)
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Experiments) != 1 {
		t.Fatalf("%d experiments: %+v", len(doc.Experiments), doc.Experiments)
	}
	return &doc.Experiments[0]
}

// places returns the indexes of the points at which an experiment's value jumps.
func places(e *Experiment) (out []int) {
	for i := range e.Steps {
		out = append(out, e.Steps[i].To)
	}
	return out
}

// If repeats have equal bytes, the value jumps at any change of the bytes. If repeats differ, the value jumps only if
// the change is larger than their spread.
func TestBytesStepBeyondTheirSpread(t *testing.T) {
	for _, c := range []struct {
		name   string
		points [][]int64 // the bytes of each revision's repeats
		steps  []int
	}{
		{"no change", [][]int64{{5000}, {5000}, {5000}}, nil},
		{"a byte", [][]int64{{5000}, {5001}, {5001}}, []int{1}},
		{"there and back", [][]int64{{5000}, {6000}, {5000}}, []int{1, 2}},
		{"each one higher", [][]int64{{5000}, {6000}, {7000}}, []int{1, 2}},
		{"within what repeats differ by", [][]int64{{5000, 5600}, {5300}, {5700}, {5100}}, nil},
		{"beyond it", [][]int64{{5000, 5600}, {5300}, {6500}, {6200}}, []int{2}},
		{"ranges that meet", [][]int64{{5000, 5000, 5600}, {5600, 5700, 5700}}, nil},
		{"equal repeats", [][]int64{{5000, 5000}, {5001, 5001}}, []int{1}},
		{"one point", [][]int64{{5000, 6000}}, nil},
	} {
		var runs []analyze.Summary
		for n, repeats := range c.points {
			for k, bytes := range repeats {
				runs = append(runs, analyze.Summarize(run(n, k, bytes)))
			}
		}
		for range 3 { // the order of the runs does not matter
			rand.Shuffle(len(runs), func(i, k int) { runs[i], runs[k] = runs[k], runs[i] })
			if e := of(t, Revision, "peak", runs...); !slices.Equal(places(e), c.steps) || len(e.Points) != len(c.points) {
				t.Errorf("%s: steps at %v of %d points, not at %v", c.name, places(e), len(e.Points), c.steps)
			}
		}
	}
}

// If the peak jumps, the jump names the category that changed. A revision whose runs failed, or that nobody ran, is
// skipped.
func TestStepIsInACategory(t *testing.T) {
	failed := run(1, 0, 9000)
	failed.Manifest.Status = schemas.StatusFailed
	e := of(t, Revision, "peak", analyze.Summarize(run(0, 0, 4000)), analyze.Summarize(failed),
		analyze.Summarize(run(2, 0, 5000)))
	if !slices.Equal(places(e), []int{2}) || e.Steps[0].From != 0 || e.Steps[0].Delta != 1000 ||
		len(e.Steps[0].Categories) != 1 || e.Steps[0].Categories[0].Category != schemas.Activations ||
		*e.Steps[0].Categories[0].Percent != 25 || len(e.Points[1].Failed) != 1 {
		t.Errorf("%+v", e)
	}
	levels := e.Levels()
	if len(levels) != 2 || levels[0].Last != 0 || levels[1].First != 2 || levels[1].Step != &e.Steps[0] ||
		levels[1].Value != levels[0].Value+1000 {
		t.Errorf("%+v", levels)
	}
}

// If several commits have the same date, or no date, the start of their first runs determines their order. Each day is
// a separate point.
func TestPointsAreInOrder(t *testing.T) {
	var runs []analyze.Summary
	for n, bytes := range []int64{3000, 1000, 2000} {
		in := run(n, 0, bytes)
		in.Manifest.Git.Committed = nil
		in.Manifest.Start = began.AddDate(0, 0, []int{2, 0, 1}[n])
		runs = append(runs, analyze.Summarize(in))
	}
	for _, over := range []Over{Revision, Date} {
		e := of(t, over, "category:activations", runs...)
		var values []float64
		for i := range e.Points {
			values = append(values, *e.Points[i].Value)
		}
		if !slices.Equal(values, []float64{1000, 2000, 3000}) {
			t.Errorf("over %s: %v", over, values)
		}
	}
}

// Runs with uncommitted changes are a separate point, beside the point of their revision. Runs without a revision
// belong to no point.
func TestChangedFilesAreAPoint(t *testing.T) {
	dirty, nowhere := run(0, 1, 6000), run(0, 2, 7000)
	dirty.Manifest.Git.Dirty, nowhere.Manifest.Git = true, nil
	doc, err := Of([]analyze.Summary{analyze.Summarize(run(0, 0, 5000)), analyze.Summarize(dirty),
		analyze.Summarize(nowhere)}, Revision, compare.Metric{Name: compare.MetricPeak})
	if err != nil || len(doc.Unplaced) != 1 || len(doc.Experiments) != 1 || len(doc.Experiments[0].Points) != 2 {
		t.Fatalf("%v, %+v", err, doc)
	}
	if p := doc.Experiments[0].Points[1]; *p.Revision != revision(0)[:12]+"+" {
		t.Errorf("%s", *p.Revision)
	}
	if _, err := Of([]analyze.Summary{analyze.Summarize(nowhere)}, Revision, compare.Metric{Name: "peak"}); err == nil {
		t.Error("a run of no revision has a trend over revisions")
	}
}

// If the runs before and after a jump differ in something else, such as torch's version, a remark says so. A different
// revision gives no remark, because the trend is about revisions.
func TestStepSaysWhatElseChanged(t *testing.T) {
	was, is := run(0, 0, 5000), run(1, 0, 6000)
	was.Manifest.Environment = &schemas.Environment{Torch: "2.10.0"}
	is.Manifest.Environment = &schemas.Environment{Torch: "2.11.0"}
	e := of(t, Revision, "peak", analyze.Summarize(was), analyze.Summarize(is))
	if len(e.Steps) != 1 || len(e.Steps[0].Remarks) != 1 || e.Steps[0].Remarks[0].What != "torch" {
		t.Errorf("%+v", e.Steps)
	}
}

// timed returns a summary of a run of the n-th revision. A training step of the run takes ms milliseconds.
func timed(n, repeat int, ms float64) analyze.Summary {
	in := run(n, repeat, 5000)
	in.Manifest.Source = schemas.Measured
	s := analyze.Summarize(in)
	s.StepMS = &timing.Interval{Median: ms, Low: ms, High: ms, N: 1, Clock: timing.ClockGPU}
	return s
}

// The times of a trend jump where a rank test finds a difference between the times before and after. Noise gives no
// jump, and too few values give none either. The test does not assume a distribution.
func TestTimesStepByTheirRanks(t *testing.T) {
	series := func(revisions, repeats int, level func(n int) float64, noise float64) (runs []analyze.Summary) {
		r := rand.New(rand.NewPCG(1, 2))
		for n := range revisions {
			for k := range repeats {
				x := 1 + noise*r.ExpFloat64()
				runs = append(runs, timed(n, k, level(n)*x))
			}
		}
		return runs
	}
	flat := func(int) float64 { return 100 }
	up := func(n int) float64 { return map[bool]float64{true: 100, false: 110}[n < 12] }
	twice := func(n int) float64 { return []float64{100, 90, 120}[n/10] }
	for _, c := range []struct {
		name      string
		runs      []analyze.Summary
		steps     []int
		undecided bool
	}{
		{"no step", series(30, 3, flat, 0.02), nil, false},
		{"one", series(30, 1, up, 0.02), []int{12}, false},
		{"two", series(30, 3, twice, 0.02), []int{10, 20}, false},
		{"equal", series(10, 2, flat, 0), nil, false},
		{"too few", series(4, 1, func(n int) float64 { return 100 * float64(n+1) }, 0), nil, true},
		{"one revision", series(1, 9, flat, 0.1), nil, false},
	} {
		e := of(t, Revision, "time", c.runs...)
		if !slices.Equal(places(e), c.steps) || e.Undecided != c.undecided {
			t.Errorf("%s: steps at %v, undecided %v", c.name, places(e), e.Undecided)
		}
		for _, s := range e.Steps {
			if s.P == nil || *s.P >= timing.Significant {
				t.Errorf("%s: p is %v", c.name, s.P)
			}
		}
	}
}

// At most ten of a hundred series of pure noise have a jump.
func TestNoiseHasFewSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	wrong := 0
	for range 100 {
		var runs []analyze.Summary
		for n := range 20 {
			runs = append(runs, timed(n, 0, 100+r.NormFloat64()))
		}
		if len(of(t, Revision, "time", runs...).Steps) > 0 {
			wrong++
		}
	}
	if wrong > 10 {
		t.Errorf("%d of 100 series of noise have steps", wrong)
	}
}

// A comparison may have revisions or days as its rows. If the rows already show a difference between runs, there is no
// warning about it.
func TestRowsOfRevisionsAndDays(t *testing.T) {
	var runs []analyze.Summary
	for n, bytes := range []int64{4000, 6000} {
		in := run(n, 0, bytes)
		in.Manifest.Start = began.AddDate(0, 0, n)
		in.Manifest.Collector.Version, in.Manifest.Host.Name = fmt.Sprint("0.", n), fmt.Sprint("host-", n)
		runs = append(runs, analyze.Summarize(in))
	}
	for key, want := range map[string][2]string{"revision": {revision(0)[:12], revision(1)[:12]},
		"date": {"2026-03-01", "2026-03-02"}, "dpsight": {"0.0", "0.1"}, "host": {"host-0", "host-1"}} {
		doc, err := compare.Compare(runs, compare.Options{Value: compare.Metric{Name: compare.MetricPeak},
			Rows: []string{key}})
		if err != nil || len(doc.Cells) != 2 {
			t.Fatalf("%s: %v, %+v", key, err, doc.Cells)
		}
		for i, c := range doc.Cells {
			if c.Row[key] == nil || *c.Row[key] != want[i] {
				t.Errorf("%s: %+v", key, c.Row)
			}
		}
		for _, s := range doc.Said {
			if s.What == key {
				t.Errorf("%s: it is a row, and a warning: %+v", key, s)
			}
		}
	}
}

// A comparison applies a rank test to the times of experiments with several runs. A comparison does not apply the test
// to bytes, nor to the times of single runs.
func TestCellsAreTestedByTheirRanks(t *testing.T) {
	for _, c := range []struct {
		was, is []float64
		sure    bool
		tested  bool
	}{
		{[]float64{100, 101, 102, 103, 104}, []float64{110, 111, 112, 113, 114}, true, true},
		{[]float64{100, 101, 102, 103, 104}, []float64{100.5, 101.5, 102.5, 103.5, 99}, false, true},
		{[]float64{100, 101}, []float64{200, 201}, false, true}, // too few times, whatever their values are
		{[]float64{100}, []float64{200}, false, false},
	} {
		var runs []analyze.Summary
		for n, side := range [][]float64{c.was, c.is} {
			for k, ms := range side {
				s := timed(n, k, ms)
				s.Params = map[string]any{"method": []string{"vanilla", "other"}[n]}
				runs = append(runs, s)
			}
		}
		for _, value := range []string{compare.MetricTime, compare.MetricPeak} {
			doc, err := compare.Compare(runs, compare.Options{Value: compare.Metric{Name: value}, Rows: []string{"method"}})
			if err != nil || len(doc.Cells) != 2 {
				t.Fatal(err, len(doc.Cells))
			}
			p := doc.Cells[1].P
			if tested := c.tested && value == compare.MetricTime; (p != nil) != tested || tested && (*p < timing.Significant) !=
				c.sure || doc.Cells[0].P != nil {
				t.Errorf("%s of %v beside %v: %+v", value, c.is, c.was, doc.Cells[1])
			}
		}
	}
}

// If a change moves memory between modules that have a common parent, the trend names the parent.
func TestModulesOfOneParent(t *testing.T) {
	if parentOf("Net.layers.3") != "Net.layers" || parentOf("Net") != "" || parentOf("") != "" {
		t.Error(parentOf("Net.layers.3"), parentOf("Net"))
	}
}
