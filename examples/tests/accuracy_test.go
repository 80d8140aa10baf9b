package examples_test

import (
	"encoding/json"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/schemas"
)

// Names of the sets of scripts that show how exact predictions are. examples/README.md says what each set proves.
const (
	development = "development"
	heldOut     = "held-out"
	fixedKinds  = "held-out-fixed-kinds"
	missedKinds = "held-out-missed-kinds"
	worstKind   = "held-out-worst-kind"
)

// accuracySets are all sets. Recordings of a set that are small enough to be kept lie in the store "accuracy-SET".
var accuracySets = []string{development, heldOut, fixedKinds, missedKinds, worstKind}

// accuracySuites lists the suites of each set of scripts. examples/accuracy has one file of recorded figures and one
// of predicted figures for each set.
var accuracySuites = map[string][]string{
	development: {"accuracy-development", "accuracy-development-ranks"},
	heldOut:     {"accuracy-held-out", "accuracy-held-out-ranks"},
	fixedKinds:  {"accuracy-held-out-fixed-kinds"},
	missedKinds: {"accuracy-held-out-missed-kinds", "accuracy-held-out-missed-kinds-nodes"},
	worstKind:   {"accuracy-held-out-worst-kind"},
}

// docs/accuracy.md shows figures from files in examples/accuracy. For every recording that is kept as a whole, the
// file's figures must equal the recording's own. Each experiment of a set's suites must be in two files: measured on a
// real GPU in one, predicted in the other.
func TestRecordedFigures(t *testing.T) {
	for set, plans := range accuracySuites {
		figures := map[string]map[string]schemas.BaselineExperiment{}
		for kind, source := range map[string]string{"recorded": schemas.Measured, "predicted": schemas.Predicted} {
			b, err := schemas.ReadBaseline(filepath.Join("accuracy", kind+"-"+set+".json"))
			if err != nil {
				t.Fatal(err)
			}
			figures[kind] = map[string]schemas.BaselineExperiment{}
			for _, x := range b.Experiments {
				figures[kind][*x.Key] = x
				if x.Source != source {
					t.Errorf("%s of %s: %s is %s", kind, set, x.Name, x.Source)
				}
			}
			for _, name := range plans {
				for _, x := range planOf(t, filepath.Join("suites", name+".yaml")).Experiments {
					if _, ok := figures[kind][x.Key]; !ok {
						t.Errorf("%s of %s: nothing of %s", kind, set, x.Name)
					}
				}
			}
		}
		whole := 0
		recordedAs := byName(t, figures["recorded"])
		for e := range runsOf(t, "accuracy-"+set) {
			fresh := gate.BaselineOf([]analyze.Summary{analyze.Summarize(e.in)}, "").Experiments[0]
			want := recordedAs[fresh.Name]
			// The recording's command, and so its key, has the script's path at that time. The files of figures are
			// older than the manifest's facts about code, and than the present rules for categories.
			fresh.Key = want.Key
			fresh.Rules, fresh.Categories = want.Rules, beforeScript(fresh.Categories)
			want.Categories = beforeScript(want.Categories)
			v, w := &fresh.Versions, &want.Versions
			v.Revision, v.Code, v.Agent = w.Revision, w.Code, w.Agent
			got, _ := json.Marshal(fresh)
			kept, _ := json.Marshal(want)
			if string(got) != string(kept) {
				t.Errorf("%s: the recording has\n%s, the file\n%s", e.ID, got, kept)
			}
			whole++
		}
		if whole == 0 {
			t.Errorf("no recording of %s is kept", set)
		}
		// A prediction that is called exact must be exact.
		for key, p := range figures["predicted"] {
			m := figures["recorded"][key]
			if p.Confidence == schemas.ExactExpected && m.PeakBytes != nil && *p.PeakBytes != *m.PeakBytes {
				t.Errorf("%s is called %s and is %d bytes off", p.Name, p.Confidence, *p.PeakBytes-*m.PeakBytes)
			}
		}
	}
}

// builtInStores are the stores of dpsight's own experiments. The counterSuites also consist of dpsight's own
// experiments, but only their figures are kept.
var builtInStores = []string{headline, "headline-batch", "trainers", "quick", "seq", "mlp", "lora", "claims"}

// TestPredictionsHoldTheirLimits checks the promises about predictions. For each built-in method, model and preset,
// the predicted peak allocated is exact. For the development scripts the median error is 0, and the largest is at most
// 1 % in allocated and 5 % in reserved. Every prediction with the confidence exact expected is exact in allocated,
// whichever set it belongs to. The errors of the held-out scripts and of the missed kinds are published as measured.
// The fixed kinds and the worst kind were predicted once, before they were recorded, and the predictions were exact.
func TestPredictionsHoldTheirLimits(t *testing.T) {
	var runs []analyze.Summary
	for _, folder := range builtInStores {
		runs = append(runs, summariesOf(t, folder)...)
	}
	builtIn := predict.Accuracy(figuresOf(t, "predicted"), runs, "")
	// Only the experiments of examples/plain are predicted but not measured.
	if !slices.Equal(builtIn.Unmeasured, []string{"gan", "llama_lora", "resnet"}) || len(builtIn.Unpredicted) > 0 {
		t.Errorf("of the built-in experiments, predicted and not measured are %q, the reverse %q", builtIn.Unmeasured,
			builtIn.Unpredicted)
	}
	presets := predict.AccuracyOf(figuresOf(t, "predicted-presets"), figuresOf(t, "recorded-presets"), "")
	methods := predict.AccuracyOf(figuresOf(t, "predicted-methods"), figuresOf(t, "recorded-methods"), "")
	rest := predict.AccuracyOf(figuresOf(t, "predicted-methods-rest"), figuresOf(t, "recorded-methods-rest"), "")
	plainScripts := predict.Accuracy(figuresOf(t, "predicted"), summariesOf(t, plain), "")
	sets := map[string]*predict.AccuracyDocument{}
	for _, set := range accuracySets {
		doc := predict.AccuracyOf(figuresOf(t, "predicted-"+set), figuresOf(t, "recorded-"+set), "")
		sets[set] = &doc
	}
	for name, doc := range map[string]*predict.AccuracyDocument{"built in": &builtIn, "presets": &presets,
		"methods": &methods, "rest of the methods": &rest, fixedKinds: sets[fixedKinds], worstKind: sets[worstKind]} {
		if a := doc.Allocated; a.Exact != a.Of || a.Of != len(doc.Experiments) || len(doc.Unended) > 0 {
			t.Errorf("%s: %d of %d are exact in allocated (%s), %d did not end well", name, a.Exact,
				len(doc.Experiments), a.Where, len(doc.Unended))
		}
	}
	known := sets[development]
	for what, e := range map[string]struct {
		of    confidence.AccuracyErrors
		limit float64
	}{"allocated": {known.Allocated, 0.01}, "reserved": {known.Reserved, 0.05}} {
		if e.of.Of != len(known.Experiments) || *e.of.Median != 0 || *e.of.Worst >= e.limit {
			t.Errorf("of the development scripts %s is off by %g in the median, and by %g in %s", what, *e.of.Median,
				*e.of.Worst, e.of.Where)
		}
	}
	sure := 0
	all := map[string]*predict.AccuracyDocument{"built in": &builtIn, "presets": &presets, "methods": &methods,
		"rest of the methods": &rest, plain: &plainScripts}
	maps.Copy(all, sets)
	for name, doc := range all {
		for _, x := range doc.Experiments {
			if x.Confidence != schemas.ExactExpected {
				continue
			}
			if sure++; x.Allocated.Measured == nil || *x.Allocated.Predicted != *x.Allocated.Measured {
				t.Errorf("%s: %s is called %s, and its peak is %d, predicted %d", name, x.Label, x.Confidence,
					*x.Allocated.Measured, *x.Allocated.Predicted)
			}
			// The confidence exact expected promises nothing about reserved, which depends on where the driver puts
			// segments. In these predictions reserved is at most 0.01 % off.
			if e := math.Abs(*x.Reserved.Error); e > 0.0001 {
				t.Errorf("%s: of %s reserved is off by %g", name, x.Label, e)
			}
		}
	}
	// The test compares the number of experiments with the suites', so that it fails if a file lacks one.
	suites := map[string][]string{"presets": {"presets"}, "methods": {"methods"},
		"rest of the methods": {"methods-rest"}}
	maps.Copy(suites, accuracySuites)
	for name, files := range suites {
		want := 0
		for _, file := range files {
			want += len(planOf(t, filepath.Join("suites", file+".yaml")).Experiments)
		}
		if got := all[name].Allocated.Of + len(all[name].Unended); got != want || got == 0 {
			t.Errorf("%s: %d, its suites have %d", name, got, want)
		}
	}
	if builtIn.Allocated.Of != 74 {
		t.Errorf("%d built-in experiments, there were 74", builtIn.Allocated.Of)
	}
	if sure != 162 {
		t.Errorf("%d predictions are called %s, there were 162", sure, schemas.ExactExpected)
	}
}

// The prediction of the script hinge was wrong, since cuDNN withholds some engines without a device. After a fix, new
// predictions of the scripts of missed kinds that use one process are exact in allocated and reserved. The script
// denoise was predicted after this fix and before its recording, and is exact too.
func TestWithheldEnginesAreTold(t *testing.T) {
	for _, c := range []struct {
		predicted, recorded string
		names               []string
	}{{"predicted-held-out-missed-kinds-after-fixes", "recorded-held-out-missed-kinds",
		[]string{"bottleneck", "hinge", "mobile"}},
		{"predicted-held-out-worst-kind", "recorded-held-out-worst-kind", []string{"denoise"}}} {
		recorded := byKey(figuresOf(t, c.recorded))
		var names []string
		for _, p := range figuresOf(t, c.predicted).Experiments {
			names = append(names, p.Name)
			m := recorded[*p.Key]
			if p.Source != schemas.Predicted || m.Source != schemas.Measured || m.Name != p.Name {
				t.Errorf("%s: %q of %s beside %q of %s", c.predicted, p.Name, p.Source, m.Name, m.Source)
				continue
			}
			if *p.PeakBytes != *m.PeakBytes || *p.PeakReservedBytes != *m.PeakReservedBytes {
				t.Errorf("%s: %d allocated and %d reserved, recorded %d and %d", p.Name, *p.PeakBytes,
					*p.PeakReservedBytes, *m.PeakBytes, *m.PeakReservedBytes)
			}
			if c.predicted == "predicted-held-out-worst-kind" && *p.Allocations != *m.Allocations {
				t.Errorf("%s: %d allocations, recorded %d", p.Name, *p.Allocations, *m.Allocations)
			}
		}
		if slices.Sort(names); !slices.Equal(names, c.names) {
			t.Errorf("%s has %q", c.predicted, names)
		}
	}
}

// byName returns the experiments of a set by name. Names must be unique.
func byName(t *testing.T, byKey map[string]schemas.BaselineExperiment) map[string]schemas.BaselineExperiment {
	t.Helper()
	out := map[string]schemas.BaselineExperiment{}
	for _, x := range byKey {
		if _, twice := out[x.Name]; twice {
			t.Errorf("two experiments are named %s", x.Name)
		}
		out[x.Name] = x
	}
	return out
}

// figuresOf reads a file of figures in examples/accuracy.
func figuresOf(t *testing.T, name string) schemas.Baseline {
	t.Helper()
	b, err := schemas.ReadBaseline(filepath.Join("accuracy", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return *b
}

// summariesOf returns the summaries of a store's runs.
func summariesOf(t *testing.T, folder string) (out []analyze.Summary) {
	t.Helper()
	for e := range runsOf(t, folder) {
		out = append(out, analyze.Summarize(e.in))
	}
	return out
}
