package predict

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// probe returns a run of a search. fits says whether the run fits; nil stands for a run that ended in another way.
func probe(value int64, fits *bool, peak int64, level string) FitRun {
	return FitRun{Value: value, Run: PredictionRun{Identity: identity.Identity{RunID: "run", Status: "ok"}, Fits: fits,
		PeakBytes: &peak, PeakReservedBytes: new(peak + 1),
		Confidence: &schemas.Confidence{Level: level}}}
}

// cached returns a copy of the probe with the given reserved bytes.
func cached(r FitRun, reserved int64) FitRun {
	r.Run.PeakReservedBytes = &reserved
	return r
}

// A search for the largest value has two results: the largest value that fits, and the largest value that also leaves
// the margin free. The confidence of a search is the lowest confidence of the runs that decide these two values.
func TestFitMargin(t *testing.T) {
	const memory = 1000
	run := func(value, spare int64, level string) FitRun {
		r := probe(value, new(spare >= 0), memory-spare-1, level)
		if spare >= 0 {
			r.Run.SpareBytes = &spare
		}
		return r
	}
	runs := []FitRun{run(1, 900, schemas.Close), run(8, 60, schemas.Indicative), run(9, 49, schemas.Close),
		run(10, 1, schemas.Close), run(11, -1, schemas.Close)}
	for _, c := range []struct {
		margin, largest, spare int64
		level                  string
	}{{0, 0, 0, schemas.Close}, {50, 8, 60, schemas.Indicative}, {49, 9, 49, schemas.Close},
		{1, 10, 1, schemas.Close}, {950, 0, 0, schemas.Close}} {
		doc := Fit(Vary{Name: "n", Low: 1, High: 64, Step: 1}, []FitSearch{{MemoryBytes: memory, MarginBytes: c.margin,
			Runs: runs}})
		got := doc.Cells[0]
		if value(got.Largest) != 10 || value(got.SpareBytes) != 1 || got.Outcome != FitSome ||
			got.Confidence.Level != c.level || (got.Margin == nil) != (c.margin == 0) {
			t.Errorf("margin %d: %+v", c.margin, got)
		}
		if m := got.Margin; m != nil && (m.Bytes != c.margin || value(m.Largest) != c.largest ||
			value(m.SpareBytes) != c.spare || (m.PeakBytes == nil) != (c.largest == 0)) {
			t.Errorf("margin %d: %+v", c.margin, *m)
		}
	}
}

// The default margin is 5 % on a device for which no prediction was compared with a recording, and 0 on other devices.
// If the user gives a percentage, it applies to both kinds of devices.
func TestMarginBytes(t *testing.T) {
	for _, c := range []struct {
		checked bool
		percent *float64
		want    int64
	}{{true, nil, 0}, {false, nil, 50 << 20}, {true, new(8.0), 80 << 20}, {false, new(0.0), 0},
		{false, new(0.1), 1 << 20}} {
		if got := MarginBytes(1000<<20, c.checked, c.percent); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	p := PredictionRun{Fits: new(true), MemoryBytes: new(int64(1000)), MarginBytes: new(int64(50)),
		SpareBytes: new(int64(49))}
	if q := p.WithMargin(4.9); !p.Tight() || q.Tight() || *q.MarginBytes != 49 || *p.MarginBytes != 50 {
		t.Errorf("%+v, and with another margin %+v", p, q)
	}
	if p.Fits = new(false); p.Tight() {
		t.Error("what does not fit is said to leave too little")
	}
}

func TestFit(t *testing.T) {
	v := Vary{Name: "batch_size", Low: 1, High: 64, Step: 1}
	yes, no := new(true), new(false)
	for _, c := range []struct {
		what    string
		search  FitSearch
		outcome string
		largest int64 // 0 if no value fits
		refused int64
		odd     []Oddity
		level   string
	}{
		{"a limit", FitSearch{Runs: []FitRun{probe(64, no, 900, schemas.Close),
			probe(1, yes, 10, schemas.ExactExpected), probe(32, yes, 320, schemas.ExactExpected),
			probe(33, no, 800, schemas.Close)}},
			FitSome, 32, 33, nil, schemas.Close},
		{"nothing", FitSearch{Runs: []FitRun{probe(1, no, 10, schemas.Close)}}, FitNone, 0, 1, nil, schemas.Close},
		{"everything", FitSearch{Runs: []FitRun{probe(1, yes, 10, schemas.Close),
			probe(64, yes, 640, schemas.ExactExpected)}}, FitAll, 64, 0, nil, schemas.ExactExpected},
		{"a hole below the highest", FitSearch{Runs: []FitRun{probe(1, yes, 10, schemas.Close),
			probe(64, yes, 640, schemas.Close), probe(63, no, 700, schemas.Close), probe(32, yes, 320, schemas.Close)}},
			FitAll, 64, 0, []Oddity{{Value: 64, Below: 63}}, schemas.Close},
		{"all that the options allow", FitSearch{Only: []int64{2, 3, 6},
			Runs: []FitRun{probe(2, yes, 10, schemas.Close), probe(6, yes, 60, schemas.Close)}},
			FitAll, 6, 0, nil, schemas.Close},
		{"nothing that the options allow", FitSearch{Only: []int64{2, 3, 6},
			Runs: []FitRun{probe(2, no, 10, schemas.Close)}}, FitNone, 0, 2, nil, schemas.Close},
		{"stopped", FitSearch{Runs: []FitRun{probe(1, yes, 10, schemas.Close), probe(64, nil, 640, schemas.Indicative)},
			Stopped: "interrupted"}, FitUnset, 1, 0, nil, schemas.Close},
		{"stopped at once", FitSearch{Stopped: "it failed"}, FitUnset, 0, 0, nil, ""},
		{"a value that cannot be, beside the answer", FitSearch{Runs: []FitRun{probe(1, yes, 10, schemas.Close),
			probe(64, no, 640, schemas.Close), probe(32, yes, 320, schemas.Close), probe(33, no, 330, schemas.Close),
			probe(48, nil, 480, schemas.Close)}},
			FitSome, 32, 33, nil, schemas.Close},
		{"a value that cannot be, below the highest", FitSearch{Runs: []FitRun{probe(1, yes, 10, schemas.Close),
			probe(64, yes, 640, schemas.Close), probe(63, nil, 630, schemas.Close)}},
			FitAll, 64, 0, nil, schemas.Close},
		{"a hole", FitSearch{Runs: []FitRun{probe(1, yes, 10, schemas.Close), probe(8, no, 80, schemas.Close),
			probe(9, yes, 70, schemas.Close), probe(10, no, 90, schemas.Close)}},
			FitSome, 9, 10, []Oddity{{Value: 9, Below: 8}}, schemas.Close},
		{"less for more", FitSearch{Runs: []FitRun{probe(1, yes, 3<<20, schemas.Close),
			probe(2, yes, 2<<20, schemas.Close), probe(3, no, 0, schemas.Close)}},
			FitSome, 2, 3, []Oddity{{2, 1, "allocated", 2 << 20, 3 << 20}},
			schemas.Close},
		{"less reserved for more", FitSearch{Runs: []FitRun{probe(1, yes, 1<<20, schemas.Close),
			cached(probe(2, yes, 2<<20, schemas.Close), 9<<20), probe(64, yes, 3<<20, schemas.Close)}},
			FitAll, 64, 0, []Oddity{{64, 2, "reserved", 3<<20 + 1, 9 << 20}},
			schemas.Close},
	} {
		doc := Fit(v, []FitSearch{c.search})
		got := &doc.Cells[0]
		if got.Outcome != c.outcome || value(got.Largest) != c.largest || value(got.Refused) != c.refused ||
			!slices.Equal(got.Oddities, c.odd) {
			t.Errorf("%s: %s, largest %d, refused %d, odd %+v", c.what, got.Outcome, value(got.Largest),
				value(got.Refused), got.Oddities)
		}
		if c.level == "" != (got.Confidence == nil) || got.Confidence != nil && got.Confidence.Level != c.level {
			t.Errorf("%s: confidence %+v", c.what, got.Confidence)
		}
		for i := range got.Probes[:max(0, len(got.Probes)-1)] {
			if got.Probes[i].Value > got.Probes[i+1].Value {
				t.Errorf("%s: the probes are out of order", c.what)
			}
		}
	}
}

// More reports whether a value above the largest tested one may fit. More is false if the search tested the highest
// allowed value, or if no value fits. If the search stopped before it knew a value that fits, a larger value may fit.
func TestFitMore(t *testing.T) {
	v, yes := Vary{Name: "physical_batch_size", Low: 1, High: 8, Step: 1}, new(true)
	for _, c := range []struct {
		what   string
		search FitSearch
		want   bool
	}{
		{"all fit", FitSearch{Runs: []FitRun{probe(8, yes, 10, schemas.Close)}}, true},
		{"all that there are fit", FitSearch{Top: true, Runs: []FitRun{probe(8, yes, 10, schemas.Close)}}, false},
		{"stopped at the top", FitSearch{Top: true, Stopped: "it failed",
			Runs: []FitRun{probe(8, yes, 10, schemas.Close)}}, false},
		{"stopped below it", FitSearch{Top: true, Stopped: "it failed",
			Runs: []FitRun{probe(2, yes, 10, schemas.Close)}}, true},
		{"stopped at once", FitSearch{Top: true, Stopped: "it failed"}, true},
		{"none fits", FitSearch{Top: true, Runs: []FitRun{probe(1, new(false), 10, schemas.Close)}}, false},
	} {
		if cell := Fit(v, []FitSearch{c.search}).Cells[0]; cell.More(&v) != c.want {
			t.Errorf("%s: more %t", c.what, !c.want)
		}
	}
}

// Nothing reports that no value fits on any device, in all of the searches.
func TestFitNothing(t *testing.T) {
	v := Vary{Name: "batch_size", Low: 1, High: 64, Step: 1}
	none, some := FitSearch{Method: "ghost", Runs: []FitRun{probe(1, new(false), 10, schemas.Close)}},
		FitSearch{Method: "flash", Runs: []FitRun{probe(1, new(true), 10, schemas.Close)}}
	for _, c := range []struct {
		searches []FitSearch
		nothing  bool
	}{{nil, false}, {[]FitSearch{none}, true}, {[]FitSearch{none, none}, true}, {[]FitSearch{none, some}, false},
		{[]FitSearch{none, {Stopped: "interrupted"}}, false}} {
		doc := Fit(v, c.searches)
		if doc.Nothing() != c.nothing {
			t.Errorf("%d searches: nothing fits %t", len(c.searches), !c.nothing)
		}
	}
}

// In a search, a value does not fit if the script catches a failed request and continues with less memory.
func TestFitThatWasCaught(t *testing.T) {
	in := fixture.Sized("train", map[schemas.Category]int64{schemas.Parameters: 20})
	in.Report.OOMs = []schemas.OOM{{}, {}, {}}
	v, caught := Vary{Name: "batch_size", Low: 1, High: 64, Step: 1}, NewFitRun(in)
	caught.Value = 2
	c := Fit(v, []FitSearch{{Runs: []FitRun{probe(1, new(true), 10, schemas.Close), caught}}}).Cells[0]
	if c.Outcome != FitSome || value(c.Largest) != 1 || value(c.Refused) != 2 || c.Probes[1].CaughtOOMs != 3 ||
		c.Probes[1].Because.Cause != CauseCaught {
		t.Errorf("%+v", c)
	}
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
