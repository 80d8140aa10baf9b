package findings

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// theFinding returns the finding with the given id, or nil if there is none. theFinding fails the test if several
// findings have this id.
func theFinding(t *testing.T, list []Finding, id string) *Finding {
	t.Helper()
	var out *Finding
	for i := range list {
		if list[i].ID != id {
			continue
		}
		if out != nil {
			t.Errorf("%s is found twice", id)
		}
		out = &list[i]
	}
	return out
}

// factsOf returns the facts of a finding. The check that made the finding determines their type.
func factsOf[Facts any](t *testing.T, f *Finding) Facts {
	t.Helper()
	if f == nil {
		t.Fatal("nothing is found")
	}
	facts, is := f.Facts.(Facts)
	if !is {
		t.Fatalf("%s has %T", f.ID, f.Facts)
	}
	return facts
}

// inspected returns the findings of a run that is inspected alone.
func inspected(in schemas.Tables) []Finding {
	return Find([]Checked{CheckRun(in)}, nil).Runs[0].Findings
}

func TestKeptGradientsAreFound(t *testing.T) {
	f := theFinding(t, inspected(fixture.KeptRun(false)), KeptGradients)
	if f == nil || *f.Bytes != 100 || f.SavesBytes == nil || *f.SavesBytes != 100 || f.At == nil {
		t.Errorf("%+v", f)
	}
	// Freeing the gradients would lower the peak by whole blocks. Blocks are larger than the gradients that the
	// breakdown counts.
	rounded := fixture.KeptRun(false)
	for i := range rounded.Owners {
		if rounded.Owners[i].Category == schemas.Gradients {
			rounded.Allocations[rounded.Owners[i].AllocID-1].BlockBytes += 12
		}
	}
	f = theFinding(t, inspected(rounded), KeptGradients)
	if x := factsOf[KeptGradientsFacts](t, f); *f.Bytes != 100 || x.AtPeakBytes != 112 || !f.Highest.IsPeak {
		t.Errorf("%+v", f)
	}
	if f := theFinding(t, inspected(fixture.KeptRun(true)), KeptGradients); f != nil {
		t.Errorf("where they are freed: %+v", f)
	}
	// The rule of thumb adds the maxima of four parts, 100 + 100 + 0 + 50 bytes. The peak is 350 bytes, so 100 bytes
	// are above the rule.
	if f := theFinding(t, inspected(fixture.KeptRun(false)), RuleOfThumb); f == nil || *f.Bytes != 100 ||
		factsOf[RuleOfThumbFacts](t, f).Adam {
		t.Errorf("%+v", f)
	}
}

func TestFragmentationIsFound(t *testing.T) {
	const piece = 64 << 20
	// when 128 MiB in one piece are requested, 128 MiB are free in two pieces
	list := inspected(fixture.Pieces(6, 2, 6*piece))
	f := theFinding(t, list, Fragmentation)
	if x := factsOf[FragmentationFacts](t, f); *f.Bytes != 2*piece || *f.SavesBytes != 2*piece ||
		f.Of != OfPeakReserved || *f.Share != 0.25 || x.Times != 1 || x.FreeBytes != 2*piece ||
		x.ReservedBytes != 8*piece {
		t.Errorf("%+v", f)
	}
	c := theFinding(t, list, Cached)
	if lay := factsOf[CachedFacts](t, c).Layout; *c.Bytes != 2*piece || *c.SavesBytes != 2*piece ||
		lay.Idle != 2*piece || lay.Gaps != 0 {
		t.Errorf("%+v", c)
	}
	// If only one piece is free, torch needs the new segment. The finding is then about cached memory and not about
	// fragmentation.
	list = inspected(fixture.Pieces(6, 1, 7*piece))
	if f := theFinding(t, list, Fragmentation); f != nil {
		t.Errorf("%+v", f)
	}
	for _, id := range []string{Fragmentation, Cached} {
		if f := theFinding(t, inspected(fixture.Pieces(6, 0, 8*piece)), id); f != nil {
			t.Errorf("nothing is freed: %+v", f)
		}
	}
}

func TestDisturbedStepsAreFound(t *testing.T) {
	list := inspected(fixture.Sampled("slow", 3, 0))
	f := theFinding(t, list, Throttled)
	if x := factsOf[ThrottledFacts](t, f); f.SavesMS == nil || *f.SavesMS != 4 || *f.MS != 4 || x.Steps != 3 ||
		x.Sampled != 6 || x.Reasons != schemas.ThrottlePowerCap || *x.Medians != [2]float64{14, 10} {
		t.Errorf("%+v", f)
	}
	if f := theFinding(t, list, UnsteadySteps); f == nil || *f.MS != 4 {
		t.Errorf("%+v", f)
	}
	if f := theFinding(t, list, OtherProcess); f != nil {
		t.Errorf("%+v", f)
	}
	// A step without a sample does not count as a step at full speed.
	unsampled := fixture.Sampled("gaps", 3, 0)
	unsampled.Samples = unsampled.Samples[1:]
	if f := theFinding(t, inspected(unsampled), Throttled); f == nil || f.SavesMS != nil ||
		factsOf[ThrottledFacts](t, f).Steps != 3 || factsOf[ThrottledFacts](t, f).Sampled != 5 {
		t.Errorf("%+v", f)
	}
	// If every step was throttled, the finding does not state by how much.
	if f := theFinding(t, inspected(fixture.Sampled("all", 6, 0)), Throttled); f == nil || f.SavesMS != nil ||
		f.MS != nil {
		t.Errorf("%+v", f)
	}
	if f := theFinding(t, inspected(fixture.Sampled("shared", 0, 1)), OtherProcess); f == nil || f.SavesMS != nil {
		t.Errorf("%+v", f)
	}
	if list := inspected(fixture.Sampled("clean", 0, 0)); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	in := fixture.Sampled("busy", 0, 0)
	in.Manifest.Isolation = &schemas.Isolation{Reason: "another process was there", OtherProcesses: new(2)}
	if f := theFinding(t, inspected(in), NotIsolated); f == nil ||
		*factsOf[NotIsolatedFacts](t, f).OtherProcesses != 2 {
		t.Errorf("%+v", f)
	}
}

func TestRunsAreComparedWithTheirStore(t *testing.T) {
	ghost, flash := summaries.Private("g1", "ghost", 1000, 100), summaries.Private("f1", "flash", 900, 50)
	other := summaries.Private("o1", "flash", 10, 1) // a run with another batch size
	other.RunFacts = slices.Clone(other.RunFacts)
	other.RunFacts[1].Value = "4"
	vanilla := summaries.Private("v1", "vanilla", 10, 1)
	look := func(s analyze.Summary, around ...analyze.Summary) []Finding {
		n := Checked{Summary: s, findings: []Finding{{ID: ClipTemporaries, Bytes: new(int64(300)),
			instead: []string{"flash"}}}}
		return Find([]Checked{n}, around).Runs[0].Findings
	}
	list := look(ghost, flash, other, vanilla)
	f := theFinding(t, list, CheaperMethod)
	if f == nil || *f.SavesBytes != 100 || *f.SavesMS != 50 ||
		factsOf[CheaperMethodFacts](t, f).Best.Run.RunID != "f1" {
		t.Errorf("%+v", f)
	}
	if f := theFinding(t, list, ClipTemporaries); *f.SavesBytes != 100 || *f.SavesMS != 50 ||
		!f.Methods.Lower || f.Methods.Best.Run.RunID != "f1" {
		t.Errorf("%+v", f)
	}
	if f := theFinding(t, look(ghost, other, vanilla), CheaperMethod); f != nil {
		t.Errorf("of another experiment: %+v", f)
	}
	for _, c := range []struct {
		peak  int64
		step  float64
		found bool
	}{{1001, 94, true}, {1002, 50, false}, {1000, 96, false}, {980, 100, true}, {981, 100, false}, {980, 101, false}} {
		if got := theFinding(t, look(ghost, summaries.Private("x", "flash", c.peak, c.step)),
			CheaperMethod) != nil; got !=
			c.found {
			t.Errorf("peak %d, step %v: found %v", c.peak, c.step, got)
		}
	}
}

// If a saving comes from a predicted run, the finding names this run, whose source is predicted.
func TestSavingsOfPredictedRuns(t *testing.T) {
	for _, source := range []string{schemas.Measured, schemas.Predicted} {
		ghost, flash := summaries.Private("g", "ghost", 1000, 100), summaries.Private("f", "flash", 900, 50)
		ghost.Source, flash.Source = source, source
		if source == schemas.Predicted { // a prediction has no times
			ghost.StepMS, flash.StepMS = nil, nil
		}
		n := Checked{Summary: ghost, findings: []Finding{{ID: ClipTemporaries, Bytes: new(int64(300)),
			instead: []string{"flash"}}}}
		f := theFinding(t, Find([]Checked{n}, []analyze.Summary{flash}).Runs[0].Findings, ClipTemporaries)
		if *f.SavesBytes != 100 || f.Methods.Best.Run.Source != source {
			t.Errorf("%s: %+v", source, f)
		}
	}
}

// Two runs belong to the same experiment if all their parameters agree. If only one of the runs has a parameter, the
// runs differ.
func TestAlikeRuns(t *testing.T) {
	with := func(s analyze.Summary, facts ...identity.Fact) analyze.Summary {
		s.RunFacts = append(slices.Clone(s.RunFacts), facts...)
		return s
	}
	param := func(what, value string) identity.Fact { return identity.Fact{What: what, Value: value, Param: true} }
	ghost, flash := summaries.Private("g", "ghost", 1000, 100), summaries.Private("f", "flash", 900, 50)
	for _, c := range []struct {
		what       string
		ours, them []identity.Fact
		alike      bool
	}{
		{"nothing", nil, nil, true},
		{"length and seed", []identity.Fact{param("num_iter", "3"), param("warmup_iter", "1"), param("seed", "0")},
			[]identity.Fact{param("num_iter", "9"), param("seed", "1")}, true},
		{"what one method has alone", []identity.Fact{param("bk_skips_param_grads", "true")},
			[]identity.Fact{param("grad_sample_mode", "ew")}, true},
		{"mode of both", []identity.Fact{param("grad_sample_mode", "ew")},
			[]identity.Fact{param("grad_sample_mode", "hooks")}, false},
		{"dimensions", []identity.Fact{param("mlp_dims", "5120,2560,1280")},
			[]identity.Fact{param("mlp_dims", "64,32,10")}, false},
		{"clipping", []identity.Fact{param("clipping", "flat")}, []identity.Fact{param("clipping", "per_layer")},
			false},
		{"a bound", []identity.Fact{param("max_grad_norm", "1")}, []identity.Fact{param("max_grad_norm", "0.1")},
			false},
		{"a script's own", []identity.Fact{param("rank", "8")}, []identity.Fact{param("rank", "1")}, false},
		{"one that we lack", nil, []identity.Fact{param("rank", "1")}, false},
		{"one that they lack", []identity.Fact{param("rank", "8")}, nil, false},
		{"the GPU", []identity.Fact{{What: "GPU", Value: "H200", Condition: true}},
			[]identity.Fact{{What: "GPU", Value: "A100", Condition: true}}, false},
		{"the GPU of one", []identity.Fact{{What: "GPU", Value: "H200", Condition: true}}, nil, true},
	} {
		a, b := with(ghost, c.ours...), with(flash, c.them...)
		if compare.Alike(&a, &b) != c.alike || compare.Alike(&b, &a) != c.alike {
			t.Errorf("%s: alike %v", c.what, !c.alike)
		}
		n := Checked{Summary: a, findings: []Finding{{ID: ClipTemporaries, Bytes: new(int64(300)),
			instead: []string{"flash"}}}}
		list := Find([]Checked{n}, []analyze.Summary{b}).Runs[0].Findings
		if found := theFinding(t, list, CheaperMethod) != nil; found != c.alike {
			t.Errorf("%s: a cheaper method %v", c.what, found)
		}
		if measured := theFinding(t, list, ClipTemporaries).SavesBytes != nil; measured != c.alike {
			t.Errorf("%s: measured %v", c.what, measured)
		}
	}
}

// Two runs of a script belong to the same experiment if their commands agree. Arguments that state the method may
// differ.
func TestAlikeCommands(t *testing.T) {
	const long = "/a/folder/that/is/longer/than/forty/letters/"
	for _, c := range []struct {
		ours, theirs string
		alike        bool
	}{
		{"python train.py --batch-size 32", "python train.py --batch-size 4", false},
		{"python train.py --method ghost --batch-size 4", "python train.py --method flash --batch-size 4", true},
		{"python train.py --method=ghost", "python train.py --method=flash", true},
		{"python train.py --clip ghost", "/venv/bin/python3 src/train.py --clip flash", true},
		{"python train.py --ghost", "python train.py --flash", true},
		{"python train.py --ghost", "python train.py", true},
		{"python train.py ghost", "python train.py flash", true},
		{"python train.py --ghost --fast", "python train.py --flash", false},
		{"python train.py --seed 1 --ghost", "python train.py --seed 2 --flash", true},
		{"python train.py --data x" + long, "python train.py --data y" + long, false},
		{"python train.py", "python other.py", false},
		{"./train.py --config a.py", "bin/train.py --config b.py", false},
		{"./train-a", "./train-b", false},
		{"./train --ghost", "/opt/bin/train --flash", true},
		{"", "python train.py --batch-size 4", true}, // the command of one of the runs is unknown
	} {
		ghost, flash := summaries.Private("g", "ghost", 1000, 100), summaries.Private("f", "flash", 900, 50)
		for i, s := range []*analyze.Summary{&ghost, &flash} {
			words := strings.Fields([]string{c.ours, c.theirs}[i])
			s.Command, s.Script = identity.CommandOf(&schemas.Manifest{Command: words}), identity.ScriptOf(words)
		}
		n := Checked{Summary: ghost, findings: []Finding{{ID: ClipTemporaries, Bytes: new(int64(300)),
			instead: []string{"flash"}}}}
		f := theFinding(t, Find([]Checked{n}, []analyze.Summary{flash}).Runs[0].Findings, ClipTemporaries)
		if (f.SavesBytes != nil) != c.alike || compare.Alike(&flash, &ghost) != c.alike {
			t.Errorf("%q beside %q: alike %v", c.ours, c.theirs, !c.alike)
		}
	}
}

// The finding on methods names the fastest method, with its full run if it has one.
func TestFastestMethodIsNamed(t *testing.T) {
	bare := func(s analyze.Summary) analyze.Summary {
		s.Params = map[string]any{"method": s.Method(), "bare": true}
		return s
	}
	ghost, flash, quick := summaries.Private("g", "ghost", 1000, 100), summaries.Private("flash", "flash", 900, 90),
		bare(summaries.Private("bk-bare", "bk", 900, 10))
	twin, slow := summaries.Private("bk", "bk", 900, 12), summaries.Private("bk-slow", "bk", 900, 60)
	for want, around := range map[string][]analyze.Summary{
		"bk-bare": {flash, quick},
		"bk":      {slow, flash, quick, twin},
		"flash":   {flash, summaries.Private("fgc", "fgc", 900, 95)},
	} {
		for range 2 {
			slices.Reverse(around)
			f := theFinding(t, Find([]Checked{{Summary: ghost}}, around).Runs[0].Findings, CheaperMethod)
			if best := factsOf[CheaperMethodFacts](t, f).Best; best.Run.RunID != want || best.Runs != len(around)-1 {
				t.Errorf("%+v, want %s", best, want)
			}
		}
	}
}

// The finding compares two methods once, over all repeats of both. The finding does not compare a single repeat of each
// method.
func TestMethodsAreComparedOverRepeats(t *testing.T) {
	repeats := func(method string, peak int64, steps ...float64) []analyze.Summary {
		var out []analyze.Summary
		for i, ms := range steps {
			s := summaries.Private(method+string(rune('0'+i)), method, peak, ms)
			if i > 0 {
				s.Params = map[string]any{"method": method, "bare": true}
			}
			out = append(out, s)
		}
		return out
	}
	at := func(groups ...[]analyze.Summary) map[string]*Finding {
		var list []Checked
		for i := range slices.Concat(groups...) {
			list = append(list, Checked{Summary: slices.Concat(groups...)[i]})
		}
		found := map[string]*Finding{}
		for _, r := range Find(list, nil).Runs {
			if f := theFinding(t, r.Findings, CheaperMethod); f != nil {
				found[r.RunID] = f
			}
		}
		return found
	}
	// The recorded runs take 31.3 and 29.3 ms, but the medians of their methods are 26.2 and 30.1 ms. The recorded runs
	// alone would show the opposite of the medians.
	dpsgd, bk := repeats("dpsgd", 1000, 31.3, 29.3, 25.4, 25.7, 26.2), repeats("bk", 1000, 29.3, 33.9, 30.2, 30.1, 25.6)
	if found := at(dpsgd, bk); len(found) != 0 {
		t.Errorf("ranges overlap: %+v", found)
	}
	// The peak of a method is the median of its repeats' peaks, too. Runs that differ only in their number of steps are
	// still repeats.
	apart := repeats("bk", 900, 10, 11, 12)
	for i, peak := range []int64{700, 900, 950} {
		apart[i].PeakBytes = &peak
		apart[i].RunFacts = append(slices.Clone(apart[i].RunFacts),
			identity.Fact{What: "num_iter", Value: strconv.Itoa(i),
				Param: true})
	}
	if f := at(dpsgd, apart)["dpsgd0"]; f == nil || *f.SavesBytes != 100 ||
		factsOf[CheaperMethodFacts](t, f).Best.Runs != 3 {
		t.Errorf("%+v", f)
	}
	// The method needs fewer bytes and its median time is no higher. Since the ranges of times overlap, the finding
	// states no saving of time.
	found := at(repeats("dpsgd", 900, 31.3, 29.3, 25.4, 25.7, 26.2), bk)
	f := found["bk0"]
	if len(found) != 1 || f == nil || *f.SavesBytes != 100 || f.SavesMS != nil || f.MS != nil || *f.Bytes != 100 ||
		f.Of != OfPeakAllocated {
		t.Errorf("%+v: %+v", found, f)
	}
	if x := factsOf[CheaperMethodFacts](t, f); x.Best.Run.Method() != "dpsgd" || x.Best.Step.Median != 26.2 ||
		x.Best.Step.Low != 25.4 || x.Best.Step.High != 31.3 || x.Best.Runs != 5 || !x.Overlap {
		t.Errorf("%+v", x)
	}
	// The ranges of times do not overlap, so one finding states how far the medians differ. The finding belongs to the
	// recorded run, whichever place this run has among the repeats.
	slow := repeats("ghost", 1000, 52, 36, 38, 37, 40)
	slices.Reverse(slow)
	found = at(slow, dpsgd)
	if f = found["ghost0"]; len(found) != 1 || f == nil || *f.SavesMS != 38-26.2 ||
		factsOf[CheaperMethodFacts](t, f).Best.Run.RunID != "dpsgd0" {
		t.Errorf("%+v: %+v", found, f)
	}
	if found = at(slow[:2]); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	// If only a bare repeat is inspected, the finding belongs to this repeat, with the medians of all repeats.
	rest := Find([]Checked{{Summary: slow[0]}}, slices.Concat(slow[1:], dpsgd))
	if f = theFinding(t, rest.Runs[0].Findings, CheaperMethod); f == nil || *f.SavesMS != 38-26.2 {
		t.Errorf("%+v", f)
	}
	// If the ranges of step times overlap, the finding on per-sample gradients states neither a saving of time nor a
	// cost.
	for _, c := range []struct {
		other        []analyze.Summary
		saves, costs bool
	}{{repeats("bk", 900, 29.3, 33.9, 30.2), false, false}, {repeats("bk", 900, 60, 70), false, true},
		{repeats("bk", 900, 10, 20), true, false}} {
		n := Checked{Summary: dpsgd[0], findings: []Finding{{ID: PerSample, Bytes: new(int64(300)),
			instead: []string{"bk"}}}}
		f := theFinding(t, Find([]Checked{n}, slices.Concat(dpsgd[1:], c.other)).Runs[0].Findings,
			PerSample)
		if *f.SavesBytes != 100 || (f.SavesMS != nil) != c.saves || (f.CostsMS != nil) != c.costs {
			t.Errorf("%+v", f)
		}
	}
}

// If a method was run once, its range of times is the range over the run's steps. If this range overlaps the other
// method's range, no saving of time is certain.
func TestSingleRunsHaveRanges(t *testing.T) {
	run := func(id, method string, peak int64, median, low, high float64, of string) analyze.Summary {
		s := summaries.Private(id, method, peak, median)
		s.StepMS = &timing.Interval{Median: median, Low: low, High: high, N: 10, Of: of, Over: timing.OverSteps,
			Clock: timing.ClockGPU}
		return s
	}
	ours := run("d", "dpsgd", 1000, 5.2, 5.1, 7.1, timing.OfMedian)
	for _, c := range []struct {
		theirs analyze.Summary
		saves  bool
	}{
		{run("g", "ghost", 400, 4, 3.4, 7.2, timing.OfMedian), false},
		{run("g", "ghost", 400, 4, 3.4, 5, timing.OfRange), true},
	} {
		n := Checked{Summary: ours, findings: []Finding{{ID: PerSample, Bytes: new(int64(300)),
			instead: []string{"ghost"}}}}
		list := Find([]Checked{n}, []analyze.Summary{c.theirs}).Runs[0].Findings
		cheaper, measured := theFinding(t, list, CheaperMethod), theFinding(t, list, PerSample)
		if cheaper == nil || *cheaper.SavesBytes != 600 || (cheaper.SavesMS != nil) != c.saves ||
			*factsOf[CheaperMethodFacts](t, cheaper).Best.Step != *c.theirs.StepMS ||
			factsOf[CheaperMethodFacts](t, cheaper).Overlap == c.saves {
			t.Errorf("%+v", cheaper)
		}
		if *measured.SavesBytes != 600 || (measured.SavesMS != nil) != c.saves || measured.CostsMS != nil {
			t.Errorf("%+v", measured)
		}
	}
}

// If another method needs fewer bytes and more time, the finding states the saving of bytes and the cost of time.
func TestSavingThatCostsTime(t *testing.T) {
	n := Checked{Summary: summaries.Private("g", "ghost", 1000, 100), findings: []Finding{{ID: ClipTemporaries,
		Bytes: new(int64(300)), instead: []string{"flash"}}}}
	f := theFinding(t, Find([]Checked{n}, []analyze.Summary{summaries.Private("f", "flash", 900,
		130)}).Runs[0].Findings,
		ClipTemporaries)
	if *f.SavesBytes != 100 || f.SavesMS != nil || f.CostsMS == nil || *f.CostsMS != 30 {
		t.Errorf("%+v", f)
	}
}

func TestRepeatsThatDisagreeAreFound(t *testing.T) {
	repeat := func(id string, peak int64, step float64) analyze.Summary {
		return summaries.Private(id, "ghost", peak, step)
	}
	look := func(runs ...analyze.Summary) []Finding {
		var list []Checked
		for _, r := range runs {
			list = append(list, Checked{Summary: r})
		}
		var out []Finding
		for _, r := range Find(list, runs).Runs {
			out = append(out, r.Findings...)
		}
		return out
	}
	list := look(repeat("a", 10000, 100), repeat("b", 10010, 100), repeat("c", 10000, 105))
	if p, s := theFinding(t, list, RepeatsPeak), theFinding(t, list, RepeatsTime); p == nil ||
		*p.Bytes != 10 || s == nil || *s.MS != 5 {
		t.Errorf("%+v", list)
	}
	if list := look(repeat("a", 10000, 100), repeat("b", 10009, 104.9)); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	if list := look(repeat("a", 10000, 100)); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// If the events of a failed request are lost, the finding still reports the failure, but without a breakdown.
func TestFailureWithoutEvents(t *testing.T) {
	in := fixture.KeptRun(false)
	in.Report.OOMs = []schemas.OOM{{RequestedBytes: 1 << 30, LimitBytes: 2 << 30, Step: 2, Phase: schemas.PhaseForward,
		Module: "head", Fatal: true}}
	list := inspected(in)
	if list[0].ID != OOM || list[0].At != nil || factsOf[OOMFacts](t, &list[0]).Request.OOM.Module != "head" {
		t.Errorf("%+v", list[0])
	}
	at, err := memory.ParseAt("oom")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := memory.Breakdown(in, at); err == nil || !strings.Contains(err.Error(), "not in the journal") {
		t.Errorf("%v", err)
	}
	in.Report.OOMs[0].Seq = 5
	if run, err := memory.Breakdown(in, at); err != nil || run.Devices[0].At.Event != 5 ||
		len(run.Devices[0].Remarks) != 1 {
		t.Errorf("%+v, %v", run, err)
	}
	for _, s := range []string{"oom=0", "oom=x", "oom=1,step=2", "oom=1,event=3"} {
		if _, err := memory.ParseAt(s); err == nil {
			t.Errorf("%s is no moment", s)
		}
	}
}

// If a request failed, torch's limit is the whole device, including the CUDA context. The memory that predict states
// excludes the context. The texts on both say what they include, and by how much they differ.
func TestLimitsOfAFailureAreTold(t *testing.T) {
	in := fixture.Pieces(4, 2, 320<<20)
	seq := in.Report.Devices[0].Events
	in.Manifest.Status = schemas.StatusOOM
	in.Manifest.Phantom, in.Manifest.GPUs = &schemas.Phantom{MemoryBytes: 512 << 20},
		[]schemas.GPU{{TotalBytes: 600 << 20}}
	reserved := *memory.ReservedAt(&in, identity.Place{}, seq)
	o := schemas.OOM{Seq: seq, RequestedBytes: 1 << 30, LimitBytes: 600 << 20, DeviceFreeBytes: 512<<20 - reserved,
		Step: -1, Fatal: true}
	in.Report.OOMs = []schemas.OOM{o}
	f := theFinding(t, inspected(in), OOM)
	r := factsOf[OOMFacts](t, f).Request
	if !r.Whole || r.BesideTensors() != 88<<20 {
		t.Errorf("%+v", r)
	}
	at, err := memory.Breakdown(in, memory.At{OOM: new(int64(1))})
	if err != nil || !reflect.DeepEqual(at.Devices[0].Remarks, []memory.Remark{{Kind: memory.RemarkFailedHere,
		Device: "cuda:0", Failed: at.Devices[0].Remarks[0].Failed}}) ||
		at.Devices[0].Remarks[0].Failed.BesideTensors() != 88<<20 || !at.Devices[0].Remarks[0].Failed.Whole {
		t.Errorf("%+v, %v", at, err)
	}
	if p := predict.Predict(in); p.OfDeviceBytes != 600<<20 {
		t.Errorf("%+v", p)
	}
	// If the limit is below the free memory, the script has set the limit, and other memory takes no part of the limit.
	in.Report.OOMs[0].LimitBytes = 400 << 20
	r = factsOf[OOMFacts](t, theFinding(t, inspected(in), OOM)).Request
	if r.Whole || r.BesideTensors() != 0 {
		t.Errorf("%+v", r)
	}
	if p := predict.Predict(in); p.OfDeviceBytes != 0 && p.OfDeviceBytes >= 512<<20 {
		t.Errorf("%+v", p)
	}
	// If the limit is above the free memory but below the device's memory, the finding does not claim that the limit is
	// the whole device.
	in.Report.OOMs[0].LimitBytes = 550 << 20
	r = factsOf[OOMFacts](t, theFinding(t, inspected(in), OOM)).Request
	if r.Whole || r.BesideTensors() != 38<<20 {
		t.Errorf("%+v", r)
	}
	if p := predict.Predict(in); p.OfDeviceBytes != 0 {
		t.Errorf("%+v", p)
	}
	for _, c := range []struct {
		source       string
		limit, total int64
		whole        bool
	}{{schemas.Measured, 143_156, 143_771, true}, {schemas.Measured, 136_582, 143_771, false},
		{schemas.Measured, 14_913, 15_360, true}, {schemas.Measured, 14_913, 0, false},
		{schemas.Measured, 40_000, 20_000, false}, {schemas.Predicted, 3072, 3072, true}, {schemas.Predicted, 3071,
			3072, false}} {
		in := schemas.Tables{Manifest: &schemas.Manifest{Source: c.source,
			GPUs: []schemas.GPU{{TotalBytes: c.total << 20}}}}
		if got := memory.WholeDevice(&in, c.limit<<20); got != c.whole {
			t.Errorf("%+v: %v", c, got)
		}
	}
	in.Events, in.Reserved = nil, nil // without these tables, the reserved bytes are unknown
	in.Report.OOMs = []schemas.OOM{o}
	r = factsOf[OOMFacts](t, theFinding(t, inspected(in), OOM)).Request
	if !r.Whole || r.Breakdown.ReservedBytes != nil {
		t.Errorf("%+v", r)
	}
}

// If a run ran out of memory, the breakdown of its peak names the failed request and the moment to break down instead.
// A summary of the run has the failed requests too. The failure that ended the run is first, and a summary does not
// have thousands of failures.
func TestSummariesSayWhatRunsDiedOf(t *testing.T) {
	in := fixture.KeptRun(false)
	caught := schemas.OOM{Seq: 4, RequestedBytes: 1 << 30, LimitBytes: 2 << 30, Step: 1, Phase: schemas.PhaseForward}
	in.Report.OOMs = []schemas.OOM{caught}
	if s := analyze.Summarize(in); len(s.Breakdown.Remarks) != 0 || len(s.Failed) != 1 || s.Failed[0].Fatal ||
		s.Failed[0].Module != nil {
		t.Errorf("the script went on: %+v, %+v", s.Breakdown.Remarks, s.Failed)
	}
	for range 11 {
		in.Report.OOMs = append(in.Report.OOMs, caught)
	}
	in.Report.OOMs = append(in.Report.OOMs, schemas.OOM{Seq: 5, RequestedBytes: 3 << 30, LimitBytes: 2 << 30, Step: 2,
		Phase: schemas.PhaseForward, Module: "head", Fatal: true})
	in.Manifest.Status = schemas.StatusOOM
	s := analyze.Summarize(in)
	if f := s.Failed[0]; len(s.Failed) != 10 || s.FailedMore != 3 || !f.Fatal || *f.Module != "head" ||
		f.RequestedBytes != 3<<30 || f.AllocatedBytes == nil {
		t.Errorf("%d and %d more, first %+v", len(s.Failed), s.FailedMore, f)
	}
	if r := s.Breakdown.Remarks; len(r) != 1 || r[0].Kind != memory.RemarkDied || r[0].Failed.Nth != 13 ||
		*r[0].Failed.Module != "head" || *r[0].Failed.At.Step != 2 {
		t.Errorf("%+v", r)
	}
	at, err := memory.Breakdown(in, memory.At{OOM: new(int64(13))})
	if err != nil || at.Devices[0].At.Event != 5 || len(at.Remarks) != 0 {
		t.Errorf("%+v, %v", at, err)
	}
}

// If torch itself continues without a workspace, each place in the code gets one finding, even if torch tried many
// times. Findings on such places come after findings on failed requests that the script noticed.
func TestWorkspacesThatFailedAreOneFinding(t *testing.T) {
	in := fixture.KeptRun(false)
	tried := func(bytes int64, module string) schemas.OOM {
		return schemas.OOM{Seq: 4, RequestedBytes: bytes, LimitBytes: 2 << 30, Step: 1, Phase: schemas.PhaseForward,
			Module: module, Raised: new(false)}
	}
	in.Report.OOMs = []schemas.OOM{tried(1<<20, "a"), tried(3<<20, "a"), tried(1<<20, "b"), tried(2<<20, "a"),
		{Seq: 4, RequestedBytes: 1, Raised: new(true)}}
	s := analyze.Summarize(in)
	if len(s.Failed) != 3 || s.FailedMore != 0 || s.Failed[0].Absorbed || !s.Failed[1].Absorbed ||
		s.Failed[1].Requests != 3 || s.Failed[1].RequestedBytes != 3<<20 || s.Failed[2].Requests != 1 {
		t.Fatalf("%+v", s.Failed)
	}
	if found := (&evidence{in: &in, ledgers: memory.NewLedgers(&in)}).failures(); len(found) != 3 {
		t.Errorf("%d findings", len(found))
	}
}

func TestUnknownBytesAreFound(t *testing.T) {
	in := fixture.KeptRun(true)
	for i := range in.Owners { // for these activations, only the phase in which they were allocated is known
		if in.Owners[i].Category == schemas.Activations {
			in.Owners[i].Category, in.Owners[i].Evidence = schemas.Other, schemas.ByPhase
		}
	}
	v := &in.Report.Devices[0]
	v.AmbiguousTags, v.Verdict, v.ResidueBytes = 3, schemas.Lossy, 512
	list := inspected(in)
	if f := theFinding(t, list, NotConserved); *f.Bytes != 512 ||
		factsOf[NotConservedFacts](t, f).Conservation.Verdict != schemas.Lossy {
		t.Errorf("%+v", f)
	}
	if n := factsOf[AmbiguousTagsFacts](t, theFinding(t, list, AmbiguousTags)).Tags; n != 3 {
		t.Errorf("%d tags", n)
	}
	for _, id := range []string{PhaseOnly, Unattributed, AmbiguousTags} {
		if theFinding(t, list, id) == nil {
			t.Errorf("no %s: %+v", id, list)
		}
	}
}

// If several processes share a device, a saving of reserved memory is a share of what the one process reserved. The
// saving is not a share of what all processes reserved.
func TestSavingOfSharedDeviceIsOfOneProcess(t *testing.T) {
	in := fixture.Sized("train", map[schemas.Category]int64{schemas.Parameters: 1 << 20})
	other := in.Report.Devices[0]
	other.Rank = 1
	in.Report.Devices = append(in.Report.Devices, other)
	for i, bytes := range []int64{300 << 20, 200 << 20} {
		in.Report.Devices[i].PeakReservedBytes, in.Report.Devices[i].TorchPeakReservedBytes = bytes, new(bytes)
	}
	in.Processes = []schemas.Process{{Rank: 0, UUID: "GPU-a", StartNS: 10, EndNS: 20},
		{Rank: 1, UUID: "GPU-a", StartNS: 15, EndNS: 30}}
	s := analyze.Summarize(in)
	if *s.PeakReservedBytes != 500<<20 {
		t.Errorf("%d reserved together", *s.PeakReservedBytes)
	}
	if saves := savedBytes(&s, &Finding{Of: OfPeakReserved, SavesBytes: new(int64(150 << 20))}); saves != 0.5 {
		t.Errorf("half of a process's reserved counts as %g", saves)
	}
}

// A finding about blocks has a line of code. The line of a finding is the line that requested most of the bytes at the
// finding's moment. If this line is unknown, the finding has no line.
func TestLineOfFinding(t *testing.T) {
	in := fixture.KeptRun(false)
	if f := theFinding(t, inspected(in), KeptGradients); f.Line != nil || !f.OfBlocks {
		t.Errorf("without lines: %+v", f.Line)
	}
	if Find([]Checked{CheckRun(in)}, nil).Runs[0].Lines {
		t.Error("the run has lines")
	}
	in.Lines = []schemas.Line{{Line: 1, File: "train.py", Number: 7}, {Line: 2, File: "train.py", Number: 9}}
	gradients := map[int64]bool{}
	for _, o := range in.Owners {
		if o.Category == schemas.Gradients {
			gradients[o.AllocID] = true
		}
	}
	for i := range in.Allocations {
		a := &in.Allocations[i]
		a.Line = 1
		if gradients[a.AllocID] {
			a.Line = 2
		}
	}
	f := theFinding(t, inspected(in), KeptGradients)
	if f.Line == nil || f.Line.Line.Number != 9 || f.Line.Bytes != 100 {
		t.Errorf("%+v", f.Line)
	}
	if !Find([]Checked{CheckRun(in)}, nil).Runs[0].Lines {
		t.Error("the run has no lines")
	}
	in.Lines[1].Rank = 1 // a line of another process
	if f := theFinding(t, inspected(in), KeptGradients); f.Line != nil {
		t.Errorf("%+v", f.Line)
	}
}
