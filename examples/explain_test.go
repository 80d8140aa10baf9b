package examples_test

import (
	"math"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// Between any two recordings of the headline, and some of the others, the parts of the differences sum to them: bytes by category and module to the byte, times by
// phase with what medians leave over.
func TestExplainedPairs(t *testing.T) {
	for _, folder := range suites {
		var runs []analyze.Dissection
		found, _, err := store.Open(ingesttest.Store(t, folder)).Runs()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			tab, err := store.Load(r, store.WantAll|store.WantDetail)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, analyze.Dissect(analyze.Input(*tab)))
		}
		for i := range runs {
			for j := range runs {
				if folder == headline || j == 0 || j == i+1 {
					checkPair(t, &runs[i], &runs[j])
				}
			}
		}
	}
}

func checkPair(t *testing.T, from, to *analyze.Dissection) {
	t.Helper()
	pair := from.Name + " to " + to.Name
	doc, err := analyze.Explain(*from, *to)
	if err != nil {
		t.Fatalf("%s: %v", pair, err)
	}
	var delta int64
	for _, c := range doc.Categories {
		var modules, a, b int64
		for _, m := range c.Modules {
			modules, a, b = modules+m.DeltaBytes, a+m.FromBytes, b+m.ToBytes
			if m.Module != nil && strings.ContainsAny(*m.Module, "0123456789") && !strings.Contains(pair, "mlp") { // whose layers are not alike
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
	// The phases of one step sum to it exactly; so medians may disagree only by as much as steps do.
	spread := from.StepMS.High - from.StepMS.Low + to.StepMS.High - to.StepMS.Low
	if math.Abs(sum-*doc.StepDeltaMS) > 1e-6 || math.Abs(*doc.PhaseResidueMS) > spread {
		t.Errorf("%s: phases sum to %g, the steps differ by %g; residue %g, spread %g", pair, sum, *doc.StepDeltaMS, *doc.PhaseResidueMS, spread)
	}
	// What an optimizer makes of all parameters at once is of no module: where the peak is there, it is the rest that counts.
	var ofAll [2]int64
	for _, c := range doc.Categories {
		if c.Category == schemas.OptimizerTemporaries {
			ofAll = [2]int64{c.FromBytes, c.ToBytes}
		}
	}
	for i, r := range doc.Runs {
		if m := r.Modules; m != nil && (m.OwnerBytes+m.NameBytes+m.BirthBytes+m.NoneBytes != *r.PeakBytes || 100*(m.NoneBytes-ofAll[i]) > *r.PeakBytes) {
			t.Errorf("%s: of %d bytes of %s modules are known by %+v", pair, *r.PeakBytes, r.Name, *m)
		}
	}
}
