package examples_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// For any two runs of the headline, and for some pairs of every other store, the parts that explain lists sum to the
// difference of the runs. Bytes by category, module and phase of birth sum to the byte. Times sum by phase, including
// the residue of the medians, and by module, including time outside modules. Scripts other than dpsight's own may name
// their layers freely and compute outside modules.
func TestExplainedPairs(t *testing.T) {
	for _, folder := range storeFolders(t) {
		if !anyFull(t, folder) {
			continue
		}
		var runs []explain.Input
		found, _, err := store.Open(ingesttest.Store(t, folder)).Runs()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			tab, err := store.Load(r, explain.Tables)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, explain.NewInput(*tab))
		}
		for i := range runs {
			for j := range runs {
				if folder == headline || j == 0 || j == i+1 {
					checkPair(t, folder, &runs[i], &runs[j], folder == pairs || folder != plain &&
						slices.Contains(suites, folder))
				}
			}
		}
	}
}

func checkPair(t *testing.T, folder string, from, to *explain.Input, builtIn bool) {
	t.Helper()
	pair := folder + ": " + from.Name + " to " + to.Name
	doc, err := explain.Explain(*from, *to)
	if err != nil {
		t.Fatalf("%s: %v", pair, err)
	}
	var delta int64
	births := func(list []explain.BirthPart) (a, b, delta int64) {
		for _, p := range list {
			if p.Phase == nil {
				t.Errorf("%s: %d and %d bytes were born in no known phase", pair, p.FromBytes, p.ToBytes)
			}
			a, b, delta = a+p.FromBytes, b+p.ToBytes, delta+p.DeltaBytes
		}
		return a, b, delta
	}
	for _, c := range doc.Categories {
		var modules, a, b int64
		if x, y, d := births(c.Phases); x != c.FromBytes || y != c.ToBytes || d != c.DeltaBytes {
			t.Errorf("%s: the phases of %s sum to %d, %d, %d of %+v", pair, c.Category, x, y, d, c)
		}
		for _, m := range c.Modules {
			modules, a, b = modules+m.DeltaBytes, a+m.FromBytes, b+m.ToBytes
			// The layers of an MLP differ in size, so explain does not fold them into one row.
			if builtIn && m.Module != nil && strings.ContainsAny(*m.Module, "0123456789") &&
				!strings.Contains(pair, "mlp") {
				t.Errorf("%s: %s is not folded", pair, *m.Module)
			}
		}
		if modules != c.DeltaBytes || a != c.FromBytes || b != c.ToBytes || b-a != c.DeltaBytes {
			t.Errorf("%s: the modules of %s sum to %d, %d, %d of %+v", pair, c.Category, a, b, modules, c)
		}
		delta += c.DeltaBytes
	}
	if full := !from.Bare() && !to.Bare(); full != (len(doc.Categories) > 0) || full && delta != *doc.PeakDeltaBytes {
		t.Errorf("%s: categories sum to %d, the peaks differ by %d", pair, delta, *doc.PeakDeltaBytes)
	}
	if a, b, d := births(doc.MemoryPhases); len(doc.Categories) > 0 && (a != *doc.Runs[0].PeakBytes ||
		b != *doc.Runs[1].PeakBytes || d != *doc.PeakDeltaBytes) {
		t.Errorf("%s: phases of birth sum to %d, %d, %d, the peaks differ by %d", pair, a, b, d, *doc.PeakDeltaBytes)
	}
	// Memory that an optimizer allocates for all parameters at once belongs to no module, and does not count for the
	// limit on bytes without a module.
	var ofAll [2]int64
	for _, c := range doc.Categories {
		if c.Category == schemas.OptimizerTemporaries {
			ofAll = [2]int64{c.FromBytes, c.ToBytes}
		}
	}
	for i, r := range doc.Runs {
		// ExpandedWeights computes per-sample gradients in autograd functions of its own, which run in no module's
		// backward.
		if m := r.Modules; m != nil && !strings.HasSuffix(r.Name, "-ew") &&
			(m.OwnerBytes+m.NameBytes+m.BirthBytes+m.NoneBytes+m.SharedBytes != *r.PeakBytes || builtIn &&
				100*(m.NoneBytes-ofAll[i]) > *r.PeakBytes) {
			t.Errorf("%s: of %d bytes of %s modules are known by %+v", pair, *r.PeakBytes, r.Name, *m)
		}
	}
	// The script graph captures its only step after warm-up into a CUDA graph, so the GPU computes nothing during that
	// step's phases. The run die runs out of memory before its warm-up ends. So both runs have no step times.
	untimed := func(d *explain.Input) bool {
		return folder == "accuracy-development" && d.Name == "graph" || folder == "oom" && d.Name == "die"
	}
	if untimed(from) || untimed(to) {
		return
	}
	if doc.StepDeltaMS == nil || doc.PhaseResidueMS == nil {
		t.Fatalf("%s: the steps are not compared", pair)
	}
	sum := *doc.PhaseResidueMS
	for _, p := range doc.Phases {
		if p.DeltaMS == nil {
			t.Fatalf("%s: %s has no difference", pair, p.Phase)
		}
		sum += *p.DeltaMS
	}
	// The times of one step's phases sum exactly to the step's time. So the sum of the phases' medians differs from
	// the median step by no more than the steps differ.
	spread := from.StepMS.High - from.StepMS.Low + to.StepMS.High - to.StepMS.Low
	if math.Abs(sum-*doc.StepDeltaMS) > 1e-6 || math.Abs(*doc.PhaseResidueMS) > spread+1e-6 {
		t.Errorf("%s: phases sum to %g, the steps differ by %g; residue %g, spread %g", pair, sum, *doc.StepDeltaMS,
			*doc.PhaseResidueMS, spread)
	}
	checkPairByModule(t, pair, &doc, builtIn)
}

// checkPairByModule checks that the times by module sum to the difference of the step times. For each phase, the
// modules' times and the time outside modules must sum to the phase's time.
func checkPairByModule(t *testing.T, pair string, doc *explain.Explanation, builtIn bool) {
	t.Helper()
	if timed := doc.Runs[0].ModuleTiming != nil &&
		doc.Runs[1].ModuleTiming != nil; timed != (doc.ModuleResidueMS != nil) {
		t.Fatalf("%s: times by module: %t", pair, !timed)
	} else if !timed {
		told := report.NewExplainDocument(*doc).Sentences
		if !strings.Contains(strings.Join(told, " "), "not known by module: there are no times of modules of ") {
			t.Errorf("%s: nothing says that there are no times by module: %q", pair, told)
		}
		return
	}
	sum := *doc.ModuleResidueMS
	var phases [2]map[string]float64 // by run; recompute counts as backward, as in bare steps
	for i := range phases {
		phases[i] = map[string]float64{}
	}
	add := func(title string, e *explain.TimePart) {
		sum += e.DeltaMS
		left := e.DeltaMS
		for _, p := range e.Phases {
			left -= *p.DeltaMS
			family := memory.PhaseFamily(p.Phase)
			if family == schemas.PhaseRecompute {
				family = schemas.PhaseBackward
			}
			for i, ms := range []*float64{p.FromMS, p.ToMS} {
				if ms != nil {
					phases[i][family] += *ms
				}
			}
		}
		if math.Abs(left) > 1e-6 {
			t.Errorf("%s: the phases of %s leave %g of %g ms", pair, title, left, e.DeltaMS)
		}
	}
	add("no module", doc.OutsideModules)
	for i := range doc.ModuleTimes {
		m := &doc.ModuleTimes[i]
		add(m.Title(), &m.TimePart)
		if m.Module == nil || builtIn && strings.ContainsAny(*m.Module, "0123456789") &&
			!strings.Contains(pair, "mlp") {
			t.Errorf("%s: %s is not known, or not folded", pair, m.Title())
		}
	}
	var unshared [2]float64
	for i, r := range doc.Runs {
		for _, p := range doc.Phases {
			if ms := []*float64{p.FromMS, p.ToMS}[i]; ms != nil {
				phases[i][memory.PhaseFamily(p.Phase)] -= *ms
			}
		}
		for family, left := range phases[i] {
			// If a script evaluates only after bare steps, no modules of the evaluation are known.
			if !builtIn && family == schemas.PhaseEval && left < 0 {
				unshared[i] = -left
			} else if math.Abs(left) > 1e-6 {
				t.Errorf("%s: modules of %s have %g ms more of %s than the phase has", pair, r.Label, left, family)
			}
		}
	}
	if math.Abs(sum-*doc.StepDeltaMS) > 1e-6 ||
		math.Abs(*doc.ModuleResidueMS-(unshared[1]-unshared[0])-*doc.PhaseResidueMS) > 1e-6 {
		t.Errorf("%s: modules sum to %g, the steps differ by %g; they leave %g, the phases %g", pair, sum,
			*doc.StepDeltaMS, *doc.ModuleResidueMS, *doc.PhaseResidueMS)
	}
}
