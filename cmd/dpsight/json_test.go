package main

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
)

type breakdownDoc struct {
	Schema string
	Runs   []struct {
		RunID   string `json:"run_id"`
		Name    string
		Status  string
		Source  string
		Params  map[string]any
		Devices []struct {
			Allocated  int64  `json:"allocated_bytes"`
			Torch      *int64 `json:"torch_peak_allocated_bytes"`
			Categories []struct {
				Category      string
				Bytes, Blocks int64
				Held          int64 `json:"held_bytes"`
				Shared        int64 `json:"shared_bytes"`
				Tagged        int64 `json:"tagged_bytes"`
				Lifetime      int64 `json:"lifetime_bytes"`
				Stack         int64 `json:"stack_bytes"`
				PhaseOnly     int64 `json:"phase_only_bytes"`
				Max           int64 `json:"max_bytes"`
			}
			Conservation struct {
				Verdict string
				Residue int64 `json:"residue_bytes"`
			}
		}
	}
}

type overheadDoc struct {
	Schema, Baseline string
	Runs             []struct {
		RunID  string `json:"run_id"`
		Name   string
		Source string
		Peak   *int64   `json:"peak_bytes"`
		Delta  *int64   `json:"peak_delta_bytes"`
		Ratio  *float64 `json:"peak_ratio"`
		Device *int64   `json:"peak_device_bytes"`
		StepMS *struct {
			Median float64
			Clock  string
		} `json:"step_ms"`
		StepRatio  *float64 `json:"step_ratio"`
		Samples    *float64 `json:"samples_per_s"`
		Joules     *float64 `json:"joules_per_sample"`
		Categories []struct {
			Category string
			Bytes    int64
			Delta    int64    `json:"delta_bytes"`
			Percent  *float64 `json:"delta_percent"`
		}
		Phases []struct {
			Phase       string
			MS          *float64
			Delta       *float64 `json:"delta_ms"`
			StepPercent *float64 `json:"delta_step_percent"`
			Peak        *int64   `json:"peak_bytes"`
			PeakDelta   *int64   `json:"peak_delta_bytes"`
			PeakPercent *float64 `json:"peak_delta_percent"`
		}
	}
}

// stores runs a check on each fixture store.
func stores(t *testing.T, check func(t *testing.T, store string)) {
	t.Run("journals", func(t *testing.T) { check(t, journalStore(t)) })
	t.Run("imported", func(t *testing.T) { check(t, importedStore(t)) })
	t.Run("headline", func(t *testing.T) {
		store, err := filepath.Abs(filepath.Join("..", "..", "examples", "headline"))
		if err != nil {
			t.Fatal(err)
		}
		check(t, store)
	})
	t.Run("phantom", func(t *testing.T) { check(t, phantomStore(t)) })
}

func TestBreakdownDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		var doc breakdownDoc
		decodeOne(t, must(t, t.TempDir(), "analyze", "breakdown", store, "--format", "json"), breakdownShape, &doc)
		if doc.Schema != "dpsight.breakdown/1" || len(doc.Runs) == 0 {
			t.Fatalf("schema %q, %d runs", doc.Schema, len(doc.Runs))
		}
		for _, r := range doc.Runs {
			if bare := r.Params["bare"] == true; bare != (len(r.Devices) == 0) {
				t.Errorf("%s: bare %t, %d devices", r.Name, bare, len(r.Devices))
			}
			for _, d := range r.Devices {
				var sum int64
				order := -1
				for _, c := range d.Categories {
					sum += c.Bytes
					place := slices.Index(schemas.Categories, schemas.Category(c.Category))
					if place <= order {
						t.Errorf("%s: %s is unknown or out of the order of precedence", r.Name, c.Category)
					}
					order = place
					if c.Max <= 0 && c.Held <= 0 || c.Bytes > c.Max || c.Bytes < 0 ||
						c.Tagged+c.Lifetime+c.Stack+c.PhaseOnly != c.Bytes || c.Shared > c.Held ||
						(c.Bytes > 0) != (c.Blocks > 0) {
						t.Errorf("%s: %+v", r.Name, c)
					}
				}
				if sum != d.Allocated || d.Allocated <= 0 {
					t.Errorf("%s: the categories sum to %d, allocated are %d", r.Name, sum, d.Allocated)
				}
				if d.Conservation.Verdict == schemas.Exact && (d.Conservation.Residue != 0 || d.Torch != nil &&
					*d.Torch != d.Allocated) {
					t.Errorf("%s: exact, but the residue is %d, torch's peak %v, the peak %d", r.Name,
						d.Conservation.Residue, *d.Torch, d.Allocated)
				}
				if r.Source == schemas.Predicted && r.Status == schemas.StatusOK &&
					d.Conservation.Verdict != schemas.Exact {
					t.Errorf("%s: the verdict is %s", r.Name, d.Conservation.Verdict)
				}
			}
		}
	})
}

func TestOverheadDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		var doc overheadDoc
		decodeOne(t, must(t, t.TempDir(), "analyze", "overhead", store, "--baseline", "vanilla", "--store", store,
			"--format", "json"), overheadShape, &doc)
		if doc.Schema != "dpsight.overhead/1" || !strings.Contains(doc.Baseline, "-vanilla-") {
			t.Fatalf("schema %q, baseline %q", doc.Schema, doc.Baseline)
		}
		deltas, timed, measured := 0, 0, false
		near := func(got *float64, want float64) bool {
			return got != nil && math.Abs(*got-want) < 1e-6*max(1, math.Abs(want))
		}
		for _, r := range doc.Runs {
			var sum, bytes int64
			percent := 0.0
			for _, c := range r.Categories {
				sum, bytes = sum+c.Delta, bytes+c.Bytes
				if c.Percent == nil {
					t.Fatalf("%s: no percentage of %s", r.Name, c.Category)
				}
				percent += *c.Percent
			}
			if len(r.Categories) > 0 && !near(&percent, 100*(*r.Ratio-1)) {
				t.Errorf("%s: the categories' differences sum to %v %% of the baseline's peak, the peaks' ratio is %v",
					r.Name, percent, *r.Ratio)
			}
			measured = measured || r.StepMS != nil
			for _, p := range r.Phases {
				if p.PeakDelta != nil && *p.Peak != *p.PeakDelta &&
					!near(p.PeakPercent, 100*float64(*p.PeakDelta)/float64(*p.Peak-*p.PeakDelta)) {
					t.Errorf("%s, %s: %+d B above %d are said to be %v %%", r.Name, p.Phase, *p.PeakDelta,
						*p.Peak-*p.PeakDelta, p.PeakPercent)
				}
				if p.Delta != nil {
					timed++
					if step := r.StepMS.Median / *r.StepRatio; !near(p.StepPercent, 100**p.Delta/step) {
						t.Errorf("%s, %s: %+v ms of the baseline's step of %v ms are said to be %v %%", r.Name, p.Phase,
							*p.Delta, step, p.StepPercent)
					}
				}
			}
			if len(r.Categories) > 0 {
				deltas++
				if r.Peak == nil || r.Delta == nil || sum != *r.Delta || bytes != *r.Peak {
					t.Errorf("%s: the categories' deltas sum to %d, their bytes to %d, peak %v, delta %v", r.Name, sum,
						bytes, r.Peak, r.Delta)
				}
			}
			if r.Source != schemas.Measured && (r.StepMS != nil || r.Samples != nil || r.Joules != nil ||
				r.Device != nil) {
				t.Errorf("%s: %s, yet it has times, energy or a device peak", r.Name, r.Source)
			}
			if r.RunID == doc.Baseline && (*r.Delta != 0 || *r.Ratio != 1) {
				t.Errorf("the baseline differs from itself by %d", *r.Delta)
			}
		}
		if deltas < 2 || measured && timed < 10 {
			t.Errorf("only %d of %d runs are compared by category, and %d phases by time", deltas, len(doc.Runs), timed)
		}
	})
}

func TestPhasesDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		var doc struct {
			Schema string
			Runs   []struct{ Phases []struct{ Phase string } }
		}
		decodeOne(t, must(t, t.TempDir(), "analyze", "phases", store, "--format", "json"), phasesShape, &doc)
		if doc.Schema != "dpsight.phases/1" || len(doc.Runs) == 0 || len(doc.Runs[0].Phases) == 0 {
			t.Errorf("%+v", doc)
		}
	})
}

func TestCostDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		var doc struct {
			Schema string
			Runs   []struct {
				Name, Source, Verdict string
				Params                map[string]any
				Missing               int64    `json:"missing_events"`
				Residue               int64    `json:"residue_bytes"`
				Peak                  *int64   `json:"peak_bytes"`
				Torch                 *int64   `json:"torch_peak_bytes"`
				Collector             *float64 `json:"collector_share"`
				Step                  *float64 `json:"bare_step_ms"`
			}
		}
		decodeOne(t, must(t, "", "analyze", "cost", store, "--format", "json"), costShape, &doc)
		if doc.Schema != "dpsight.cost/1" || len(doc.Runs) == 0 {
			t.Fatalf("%+v", doc)
		}
		for _, r := range doc.Runs {
			if r.Verdict == schemas.Exact && (r.Missing != 0 || r.Residue != 0 || r.Torch == nil &&
				r.Source != schemas.Imported ||
				r.Torch != nil && r.Peak != nil && *r.Peak != *r.Torch) {
				t.Errorf("exact: %+v", r)
			}
			if r.Source != schemas.Measured && (r.Collector != nil || r.Step != nil) {
				t.Errorf("%s: %s, yet it has times", r.Name, r.Source)
			}
		}
	})
}

func TestTimeDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		var doc struct {
			Schema string
			Runs   []struct {
				Name     string
				Ranks    []any
				Warnings []string
			}
		}
		decodeOne(t, must(t, "", "analyze", "time", store, "--format", "json"), timeShape, &doc)
		if doc.Schema != "dpsight.time/1" || len(doc.Runs) == 0 {
			t.Fatalf("%+v", doc)
		}
		for _, r := range doc.Runs {
			if len(r.Ranks) == 0 && len(r.Warnings) == 0 {
				t.Errorf("%s: neither times nor a word why not", r.Name)
			}
		}
	})
}

func TestRunsDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		var doc struct {
			Schema string
			Runs   []struct {
				RunID string `json:"run_id"`
				Peak  *int64 `json:"peak_bytes"`
			}
		}
		decodeOne(t, must(t, t.TempDir(), "runs", "--store", store, "--format", "json"), runsShape, &doc)
		folders, err := filepath.Glob(filepath.Join(store, "*", schemas.ManifestFile))
		if err != nil || doc.Schema != "dpsight.runs/1" || len(doc.Runs) != len(folders) {
			t.Fatalf("%d runs of %d, %v", len(doc.Runs), len(folders), err)
		}
		for _, r := range doc.Runs {
			if r.Peak == nil || *r.Peak <= 0 {
				t.Errorf("%s has no peak", r.RunID)
			}
		}
	})
}

func TestIngestDocument(t *testing.T) {
	file := filepath.Join(snapshots, "vanilla.pickle.zst")
	store := t.TempDir()
	type document struct {
		Schema string
		Inputs []struct {
			Path   string
			RunIDs []string `json:"run_ids"`
			State  string
			Again  bool
			Reason *string
		}
		Remade []schemas.Remade
	}
	var first, second, third document
	decodeOne(t, must(t, "", "ingest", file, "--store", store, "--format", "json"), ingestShape, &first)
	r := dpsight(t, "", "ingest", file, filepath.Join(snapshots, "truth.json"), "--store", store, "--format", "json")
	decodeOne(t, r, ingestShape, &second)
	if r.code != exitUsage || first.Schema != "dpsight.ingest/1" || len(first.Inputs) != 1 || len(second.Inputs) != 2 {
		t.Fatalf("exit code %d, %+v, %+v", r.code, first, second)
	}
	a, b, c := first.Inputs[0], second.Inputs[0], second.Inputs[1]
	if a.State != "new" || a.Again || b.State != "known" || b.Again || len(a.RunIDs) != 1 ||
		!slices.Equal(a.RunIDs, b.RunIDs) || a.Reason != nil || b.Reason != nil {
		t.Errorf("the same file twice: %+v, %+v", a, b)
	}
	if c.State != "refused" || c.Reason == nil || *c.Reason == "" || len(c.RunIDs) != 0 {
		t.Errorf("a foreign file: %+v", c)
	}
	run := filepath.Join(store, a.RunIDs[0])
	if err := madeByOtherRules(run, 3, schemas.Activations, schemas.Other); err != nil {
		t.Fatal(err)
	}
	decodeOne(t, must(t, "", "ingest", "--again", run, "--format", "json"), ingestShape, &third)
	if len(third.Remade) != 1 || third.Remade[0].RulesBefore != 3 || third.Remade[0].Rules != ingest.RulesVersion ||
		len(third.Remade[0].Moved) != 2 || len(first.Remade)+len(second.Remade) != 0 {
		t.Errorf("made anew: %+v", third.Remade)
	}
}

func TestDoctorDocument(t *testing.T) {
	r := dpsight(t, t.TempDir(), "doctor", "--format", "json")
	var doc struct {
		Schema string
		Checks []struct {
			Name         string
			OK, Needed   bool
			Detail, Hint string
		}
		Features []struct {
			Name           string
			OK, Needed     bool
			Gives, Without string
		}
	}
	decodeOne(t, r, doctorShape, &doc)
	missing := false
	for _, c := range doc.Checks {
		missing = missing || c.Needed && !c.OK
		if c.Detail == "" || c.OK != (c.Hint == "") {
			t.Errorf("%+v", c)
		}
	}
	for _, f := range doc.Features {
		if f.Name == "" || f.Gives == "" || f.Without == "" {
			t.Errorf("%+v", f)
		}
	}
	if doc.Schema != "dpsight.doctor/1" || len(doc.Checks) < 8 || missing != (r.code == exitFailed) {
		t.Errorf("exit code %d, %+v", r.code, doc)
	}
}

func TestVersionDocument(t *testing.T) {
	var doc struct{ Version string }
	decodeOne(t, must(t, "", "version", "--json"), object{"version": "string", "revision": "string?",
		"modified": "bool?", "agent": "string", "phantom": "string", "go": "string", "platform": "string"}, &doc)
	if flag, command := must(t, "", "--version"), must(t, "", "version"); flag != command {
		t.Errorf("--version: %+v, version: %+v", flag, command)
	}
	if text := must(t, "", "version").stdout; doc.Version != version ||
		!strings.HasPrefix(text, "dpsight "+version+" (") {
		t.Errorf("%q and %q", doc.Version, text)
	}
}
