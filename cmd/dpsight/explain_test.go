package main

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

var explainedPhases = list{object{"phase": "string", "from_ms": "number?", "to_ms": "number?", "delta_ms": "number?"}}

var evidenceShape = object{"tagged_bytes": "int", "lifetime_bytes": "int", "stack_bytes?": "int",
	"phase_only_bytes": "int"}

var explainedBirths = list{object{"phase": "string?", "from_bytes": "int", "to_bytes": "int", "delta_bytes": "int"}}

var explainShape = object{"schema": "string", "from": "string", "to": "string", "peak_delta_bytes": "int?",
	"categories": list{object{"category": "string", "from_bytes": "int", "to_bytes": "int", "delta_bytes": "int",
		"from_evidence": evidenceShape, "to_evidence": evidenceShape,
		"modules": list{object{"module": "string?", "role": "string?", "modules": "int", "from_bytes": "int",
			"to_bytes": "int", "delta_bytes": "int"}}, "phases": explainedBirths}},
	"memory_phases": explainedBirths,
	"stacks":        list{object{"stack": "string?", "from_bytes": "int", "to_bytes": "int", "delta_bytes": "int"}},
	"step_delta_ms": "number?", "phases": explainedPhases, "phase_residue_ms": "number?",
	"module_times": list{object{"module": "string?", "role": "string?", "modules": "int", "from_hook_ms": "number",
		"to_hook_ms": "number",
		"from_ms":    "number?", "to_ms": "number?", "delta_ms": "number", "phases": explainedPhases}},
	"outside_modules": nullable{object{"from_ms": "number?", "to_ms": "number?", "delta_ms": "number",
		"phases": explainedPhases}},
	"module_residue_ms": "number?",
	"sentences":         list{"string"},
	"step_sentences":    list{"string"},
	"runs": list{with(identity, object{"label": "string", "peak_bytes": "int?", "device": "string?",
		"at": nullable{object{"event": "int", "step": "int?", "phase": "string?"}}, "step_ms": nullable{interval},
		"modules": nullable{object{"owner_bytes": "int", "name_bytes": "int", "birth_bytes": "int",
			"shared_bytes": "int", "none_bytes": "int"}},
		"module_timing": nullable{object{"rank": "int", "ranks": "int", "bare_steps": "int", "repeats": "int",
			"instrumented_steps": "int", "instrumented_step_ms": "number"}},
		"conservation": nullable{object{"verdict": "string", "residue_bytes": "int", "ambiguous_tags": "int",
			"reason": "string?"}}})},
	"warnings": list{"string"}}

// Every run of every fixture is compared with the next run: the parts in explain's JSON document sum to the difference
// of the two peaks.
func TestExplainDocument(t *testing.T) {
	stores(t, func(t *testing.T, folder string) {
		runs, _, err := store.Open(folder).Runs()
		if err != nil || len(runs) == 0 {
			t.Fatal(runs, err)
		}
		broken := 0
		for i := range runs {
			a, b := runs[i], runs[(i+1)%len(runs)]
			if a.ID == b.ID {
				t.Skip("SKIPPED: there is but one run")
			}
			var doc struct {
				Schema, From, To string
				Delta            *int64 `json:"peak_delta_bytes"`
				Categories       []struct {
					Category string
					Delta    int64 `json:"delta_bytes"`
					Modules  []struct {
						Delta int64 `json:"delta_bytes"`
					}
				}
				Births []struct {
					Delta int64 `json:"delta_bytes"`
				} `json:"memory_phases"`
				Step        *float64 `json:"step_delta_ms"`
				ModuleTimes []struct {
					Delta float64 `json:"delta_ms"`
				} `json:"module_times"`
				Outside *struct {
					Delta float64 `json:"delta_ms"`
				} `json:"outside_modules"`
				ModuleResidue *float64 `json:"module_residue_ms"`
				Sentences     []string
			}
			r := must(t, t.TempDir(), "analyze", "explain", filepath.Join(folder, a.ID), filepath.Join(folder, b.ID),
				"--format", "json")
			decodeOne(t, r, explainShape, &doc)
			if doc.Schema != "dpsight.explain/1" || doc.From != a.ID || doc.To != b.ID || doc.Delta == nil ||
				len(doc.Sentences) == 0 {
				t.Fatalf("%s to %s: %+v", a.ID, b.ID, doc)
			}
			var sum int64
			order := -1
			for _, c := range doc.Categories {
				var modules int64
				for _, m := range c.Modules {
					modules += m.Delta
				}
				place := slices.Index(schemas.Categories, c.Category)
				if modules != c.Delta || place <= order {
					t.Errorf("%s to %s: %s, modules sum to %d of %d", a.ID, b.ID, c.Category, modules, c.Delta)
				}
				order = place
				sum += c.Delta
			}
			if len(doc.Categories) > 0 {
				broken++
				if sum != *doc.Delta {
					t.Errorf("%s to %s: categories sum to %d of %d", a.ID, b.ID, sum, *doc.Delta)
				}
				for _, p := range doc.Births {
					sum -= p.Delta
				}
				// An imported snapshot has phases only if annotations in it name them.
				imported := a.Manifest.Source == schemas.Imported || b.Manifest.Source == schemas.Imported
				if none := len(doc.Births) == 0; none && !imported || !none && sum != 0 {
					t.Errorf("%s to %s: %d phases of birth leave %d of %d", a.ID, b.ID, len(doc.Births), sum,
						*doc.Delta)
				}
			}
			if doc.ModuleResidue != nil {
				left := *doc.Step - *doc.ModuleResidue - doc.Outside.Delta
				for _, m := range doc.ModuleTimes {
					left -= m.Delta
				}
				if math.Abs(left) > 1e-6 {
					t.Errorf("%s to %s: times by module leave %g of %g ms", a.ID, b.ID, left, *doc.Step)
				}
			} else if len(doc.ModuleTimes) > 0 || doc.Outside != nil || doc.Step != nil &&
				!strings.Contains(strings.Join(doc.Sentences, " "), "not known by module") {
				t.Errorf("%s to %s: nothing says why there are no times by module: %+v", a.ID, b.ID, doc)
			}
			if unmeasured := a.Manifest.Source != schemas.Measured ||
				b.Manifest.Source != schemas.Measured; unmeasured != (doc.Step == nil) {
				t.Errorf("%s to %s: step difference %v", a.ID, b.ID, doc.Step)
			} else if text := strings.Join(doc.Sentences, " "); unmeasured && !strings.Contains(text, "not measured") &&
				!strings.Contains(text, "did not record") {
				t.Errorf("%s to %s: no sentence says how the figures are known: %q", a.ID, b.ID, doc.Sentences)
			}
		}
		if broken == 0 {
			t.Error("no pair is broken down")
		}
	})
}
