package predict

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

func TestAccuracy(t *testing.T) {
	sizes := func(activations int64) map[schemas.Category]int64 {
		return map[schemas.Category]int64{schemas.Parameters: 1000, schemas.Activations: activations}
	}
	as := func(source string, in schemas.Tables) analyze.Summary {
		in.Manifest.Source = source
		return analyze.Summarize(in)
	}
	failed := fixture.Sized("failed", sizes(1))
	onH200 := fixture.Sized("low", sizes(3000))
	onH200.Manifest.GPUs = []schemas.GPU{{Name: "NVIDIA H200"}}
	failed.Manifest.Status = schemas.StatusFailed
	measured := []analyze.Summary{as(schemas.Measured, fixture.Sized("exact", sizes(3000))),
		as(schemas.Measured, onH200),
		as(schemas.Measured, fixture.Sized("moved", sizes(3000))),
		as(schemas.Measured, fixture.Sized("alone", sizes(1))), as(schemas.Predicted, fixture.Sized("exact", sizes(7))),
		as(schemas.Measured, failed)}
	moved := map[schemas.Category]int64{schemas.Parameters: 1000, schemas.Activations: 2500, schemas.Outputs: 500}
	predicted := gate.BaselineOf([]analyze.Summary{as(schemas.Predicted, fixture.Sized("exact", sizes(3000))),
		as(schemas.Predicted, fixture.Sized("low", sizes(2000))), as(schemas.Predicted, fixture.Sized("moved", moved)),
		as(schemas.Predicted, fixture.Sized("failed", sizes(1))),
		as(schemas.Measured, fixture.Sized("alone", sizes(1)))}, "test")
	for i := range predicted.Experiments {
		if e := &predicted.Experiments[i]; e.Name == "low" {
			e.Versions.GPU = new("Tesla T4")
		}
	}
	doc := Accuracy(predicted, measured, "predicted.json")
	if got := doc.Allocated; got.Of != 3 || got.Exact != 2 || *got.Median != 0 || *got.Worst != 0.25 ||
		got.Where != "low" {
		t.Errorf("allocated: %+v", got)
	}
	if got := doc.Reserved; got.Of != 3 || got.Exact != 2 || *got.Worst != 0.25 {
		t.Errorf("reserved: %+v", got)
	}
	if !slices.Equal(doc.Unpredicted, []string{"alone"}) || !slices.Equal(doc.Unmeasured, []string{"failed"}) ||
		!slices.Equal(doc.Unlike, []Unlike{{UnlikeGPU, "Tesla T4", "NVIDIA H200", "low"}}) {
		t.Errorf("unpredicted %q, unmeasured %q, unlike %+v", doc.Unpredicted, doc.Unmeasured, doc.Unlike)
	}
	// AccuracyOf compares runs that were already reduced to baselines. AccuracyOf gives the same document as Accuracy,
	// including the failed run.
	reduced, _ := json.Marshal(AccuracyOf(predicted, gate.BaselineOf(measured, "test"), "predicted.json"))
	if whole, _ := json.Marshal(doc); string(reduced) != string(whole) {
		t.Errorf("of reduced runs %s, of the runs %s", reduced, whole)
	}
	var names []string
	for _, x := range doc.Experiments {
		names = append(names, x.Name)
		want := map[string]struct {
			moved, most int64
			category    schemas.Category
			blocks      int64
		}{"exact": {blocks: 2}, "low": {1000, -1000, schemas.Activations, 2}, "moved": {500, -500, schemas.Activations,
			3}}[x.Name]
		if x.Moved == nil || *x.Moved != want.moved || x.MostBytes != want.most || x.Most != want.category ||
			*x.Allocations.Predicted != want.blocks || *x.Allocations.Measured != 2 {
			text, _ := json.Marshal(x)
			t.Errorf("%s, not %+v", text, want)
		}
	}
	if !slices.Equal(names, []string{"exact", "low", "moved"}) {
		t.Errorf("experiments %q", names)
	}
}

// The document of accuracy names each experiment that was predicted to fit and did not, and each that was predicted not
// to fit and did.
func TestAccuracyFitting(t *testing.T) {
	run := func(source, name, status string) analyze.Summary {
		in := fixture.Sized(name, map[schemas.Category]int64{schemas.Parameters: 1000})
		in.Manifest.Source, in.Manifest.Status = source, status
		return analyze.Summarize(in)
	}
	ok, oom, failed := schemas.StatusOK, schemas.StatusOOM, schemas.StatusFailed
	predicted := gate.BaselineOf([]analyze.Summary{run(schemas.Predicted, "fits", ok),
		run(schemas.Predicted, "short", ok),
		run(schemas.Predicted, "refused", oom),
		run(schemas.Predicted, "large", oom), run(schemas.Predicted, "broken", failed), run(schemas.Predicted, "mixed",
			ok), run(schemas.Predicted, "apart", ok)}, "test")
	measured := []analyze.Summary{run(schemas.Measured, "fits", ok), run(schemas.Measured, "short", oom),
		run(schemas.Measured, "refused", ok), run(schemas.Measured, "large", oom),
		run(schemas.Measured, "broken", oom), run(schemas.Measured, "mixed", ok), run(schemas.Measured, "mixed", oom),
		run(schemas.Measured, "alone", oom), run(schemas.Measured, "apart", ok)}
	doc := Accuracy(predicted, measured, "predicted.json")
	f := doc.Fitting
	if f.Of != 5 || f.Agree != 3 || f.OutOfMemory != 3 || !slices.Equal(f.Overrun, []string{"short"}) ||
		!slices.Equal(f.Refused, []string{"refused"}) {
		t.Errorf("fitting: %+v", f)
	}
	var compared []string
	for _, x := range doc.Experiments {
		compared = append(compared, x.Name)
	}
	if !slices.Equal(compared, []string{"apart", "fits", "mixed"}) ||
		!slices.Equal(doc.Unpredicted, []string{"alone"}) || len(doc.Unmeasured) > 0 ||
		!slices.Equal(doc.Unended, []confidence.AccuracyUnended{{Name: "broken", Status: "failed"}}) ||
		len(doc.Unlike) > 0 {
		t.Errorf("compared %q, unended %v, unpredicted %q, unmeasured %q, unlike %+v", compared, doc.Unended,
			doc.Unpredicted, doc.Unmeasured, doc.Unlike)
	}
	if known := KnownErrorsOf(doc); !slices.Equal(known.Unended, doc.Unended) {
		t.Errorf("by doubt %v is left out, of all %v", known.Unended, doc.Unended)
	}
	// If an experiment ended well in one document and ran out of memory in another, it is still compared.
	both := gate.BaselineOf(measured, "")
	both.Experiments = append(both.Experiments, gate.BaselineOf([]analyze.Summary{run(schemas.Measured, "apart", oom)},
		"").Experiments...)
	if got := AccuracyOf(predicted, both, "predicted.json"); len(got.Experiments) != 3 || got.Fitting.Of != 5 {
		t.Errorf("%d compared, fitting %+v", len(got.Experiments), got.Fitting)
	}
}

// If an experiment was measured on two cards, or with two states of the code, its figures have no common median. In
// this case, the runs on the prediction's card count. Without such runs, the runs of the prediction's code count, and
// otherwise the newest runs.
func TestAccuracyOfTwoOrigins(t *testing.T) {
	const file = "train.py"
	code := func(digest string) *schemas.Code {
		return &schemas.Code{Digest: &digest, Files: []schemas.CodeFile{{Module: schemas.MainModule, File: file,
			SHA256: &digest}}}
	}
	run := func(source, gpu, digest string, day int, activations int64) analyze.Summary {
		in := fixture.Sized("net", map[schemas.Category]int64{schemas.Parameters: 1000, schemas.Activations: activations})
		in.Manifest.Source, in.Manifest.GPUs = source, []schemas.GPU{{Name: gpu}}
		in.Manifest.Start, in.Manifest.Code = time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC), code(digest)
		return analyze.Summarize(in)
	}
	const h100, h200 = "NVIDIA H100", "NVIDIA H200"
	predicted := gate.BaselineOf([]analyze.Summary{run(schemas.Predicted, h100, "aa", 1, 3000)}, "test")
	for _, c := range []struct {
		name     string
		runs     []analyze.Summary
		measured int64
		count    int
		passed   int
		apart    []identity.Apart
	}{
		{"one origin", []analyze.Summary{run(schemas.Measured, h100, "aa", 1, 3000),
			run(schemas.Measured, h100, "aa", 2, 3000)}, 4000, 2, 0, nil},
		{"two cards", []analyze.Summary{run(schemas.Measured, h100, "aa", 1, 3000),
			run(schemas.Measured, h200, "aa", 2, 5000)}, 4000, 1, 1, []identity.Apart{{Part: "GPU", This: h100, That: h200}}},
		{"two states of the code", []analyze.Summary{run(schemas.Measured, h100, "aa", 1, 3000),
			run(schemas.Measured, h100, "bb", 2, 5000)}, 4000, 1, 1,
			[]identity.Apart{{Part: identity.PartFile, File: file, This: "aa", That: "bb"}}},
		{"none of the prediction's", []analyze.Summary{run(schemas.Measured, h200, "cc", 1, 3000),
			run(schemas.Measured, h200, "bb", 3, 5000), run(schemas.Measured, h200, "bb", 2, 5000)}, 6000, 2, 1,
			[]identity.Apart{{Part: identity.PartFile, File: file, This: "bb", That: "cc"}}},
	} {
		doc := Accuracy(predicted, c.runs, "")
		if len(doc.Experiments) != 1 {
			t.Errorf("%s: %+v", c.name, doc)
			continue
		}
		if x := doc.Experiments[0]; *x.Allocated.Measured != c.measured || x.Runs != c.count {
			t.Errorf("%s: %d bytes measured, of %d runs", c.name, *x.Allocated.Measured, x.Runs)
		}
		var passed int
		var apart []identity.Apart
		for _, p := range doc.Passed {
			passed, apart = passed+p.Runs, append(apart, p.Apart...)
		}
		if passed != c.passed || !slices.Equal(apart, c.apart) {
			t.Errorf("%s: passed over %+v", c.name, doc.Passed)
		}
	}
}
