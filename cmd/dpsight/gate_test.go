package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/schemas"
)

var (
	compareShape = object{"schema": "string", "value": "string", "unit": "string", "rows": list{"string"},
		"cols":     list{"string"},
		"baseline": object{"run_id": "string?", "match": "any?", "label": "string"},
		"cells": list{object{"row": "any", "col": "any", "run_ids": list{"string"},
			"failed": list{object{"run_id": "string", "status": "string"}}, "n": "int",
			"value": "number?", "low": "number?", "high": "number?", "delta": "number?", "ratio": "number?",
			"is_baseline": "bool", "marks": list{"string"}}},
		"differences": list{object{"metric": "string", "unit": "string", "baseline": "number?", "value": "number?",
			"delta": "number?", "ratio": "number?"}},
		"runs": list{identity}, "warnings": list{"string"}}

	checkShape = object{"schema": "string", "ok": "bool", "baseline": "string",
		"thresholds": list{object{"metric": "string", "ratio": "string", "experiment?": "string",
			"place?": "string"}}, "floor_bytes": "int",
		"experiments": list{object{"key": "string?", "name": "string", "params": "any", "state": "string", "fails": "bool",
			"status": "string?", "reason?": "string", "source": "string?",
			"profile": "string?", "baseline_source": "string?",
			"baseline_status": "string?", "confidence?": "string", "runs": "int",
			"peak_bytes": "int?", "baseline_peak_bytes": "int?", "places?": list{object{"category": "string",
				"module?": "string", "file?": "string", "line?": "int", "function?": "string", "baseline_bytes": "int?",
				"current_bytes": "int"}},
			"comparisons": list{object{"metric": "string", "unit": "string", "limit": "string", "baseline": "number?",
				"current": "number?", "delta": "number?",
				"ratio": "number?", "verdict": "string", "reason?": "string", "acknowledged?": object{"metric": "string",
					"up_to": "number", "until": "string", "by": "string", "why": "string"}}}}},
		"failures": list{"string"}, "warnings": list{"string"}}
)

func TestCompareDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		var doc struct {
			Schema, Unit string
			Cells        []struct {
				RunIDs       []string `json:"run_ids"`
				Value, Delta *float64
			}
			Differences []struct{ Metric string }
			Runs        []struct{ RunID string }
		}
		decodeOne(t, must(t, t.TempDir(), "compare", store, "--format", "json"), compareShape, &doc)
		cells := 0
		for _, c := range doc.Cells {
			cells += len(c.RunIDs)
			if c.Value != nil && *c.Value != float64(int64(*c.Value)) {
				t.Errorf("%v bytes", *c.Value)
			}
		}
		if doc.Schema != "dpsight.compare/1" || doc.Unit != "bytes" || cells != len(doc.Runs) || cells < 2 {
			t.Errorf("schema %q, %d runs in cells, %d in all", doc.Schema, cells, len(doc.Runs))
		}
		decodeOne(t, must(t, t.TempDir(), "compare", "vanilla", "dpsgd", "--store", store, "--format", "json"),
			compareShape, &doc)
		if len(doc.Differences) < 5 || doc.Differences[0].Metric != "peak" {
			t.Errorf("side by side: %+v", doc.Differences)
		}
	})
}

func TestCheckDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		dir := t.TempDir()
		must(t, dir, "check", store, "--write-baseline", "b.json")
		var doc struct {
			Schema      string
			OK          bool
			Experiments []struct {
				State       string
				Comparisons []struct{ Metric, Verdict string }
			}
			Failures []string
		}
		decodeOne(t, must(t, dir, "check", store, "--baseline", "b.json", "--threshold", "peak=1", "--threshold",
			"category:*=1", "--format", "json"), checkShape, &doc)
		compared := 0
		for _, x := range doc.Experiments {
			for _, c := range x.Comparisons {
				if c.Verdict == "ok" {
					compared++
				}
			}
		}
		if doc.Schema != "dpsight.check/2" || !doc.OK || len(doc.Failures) != 0 || len(doc.Experiments) < 2 ||
			compared < 6 {
			t.Errorf("runs beside themselves: ok %t, %d experiments, %d figures compared, %q", doc.OK,
				len(doc.Experiments), compared, doc.Failures)
		}
	})
}

// The check fails and names the category if one category grew so much that the run has 5.1 % more than the baseline.
// With 4.9 % it passes. The test tries every category of the experiments ghost and vanilla. If 5.1 % of a category are
// no more than the least growth that a check reports, the check must pass.
func TestPlantedGrowthOfRecordedRuns(t *testing.T) {
	store, dir := journalStore(t), t.TempDir()
	path := filepath.Join(dir, "b.json")
	must(t, dir, "check", store, "--write-baseline", path)
	whole, err := schemas.ReadBaseline(path)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for i, e := range whole.Experiments {
		for c, now := range e.Categories {
			if e.Name != "ghost" && e.Name != "vanilla" {
				continue
			}
			plant := func(was int64) result {
				whole.Experiments[i].Categories[c] = was
				if err := schemas.WriteBaseline(path, whole); err != nil {
					t.Fatal(err)
				}
				whole.Experiments[i].Categories[c] = now
				var stdout, stderr bytes.Buffer
				code := run([]string{"check", e.Name, "--store", store, "--baseline", path, "--partial", "--threshold",
					"category:*=1.05"}, &stdout, &stderr)
				return result{code, stdout.String(), stderr.String()}
			}
			was := now * 1000 / 1051
			r := plant(was)
			if now-was <= gate.LeastGrowth {
				if r.code != exitDone {
					t.Errorf("%s: %s: %d bytes: exit code %d, %s", e.Name, c, now-was, r.code, r.stderr)
				}
				continue
			}
			tried++
			if named := fmt.Sprintf("dpsight: error: %s: %s at the peak grew by ", e.Name, c); r.code != exitFailed ||
				!strings.HasPrefix(r.stderr, named) {
				t.Errorf("%s: %s: 5.1 %%: exit code %d, %s", e.Name, c, r.code, r.stderr)
			}
			if r = plant((now*1000 + 1048) / 1049); r.code != exitDone {
				t.Errorf("%s: %s: 4.9 %%: exit code %d, %s", e.Name, c, r.code, r.stderr)
			}
		}
	}
	if tried < 12 {
		t.Errorf("only %d categories tried", tried)
	}
}

// Recorded runs are checked against their own figures, and against baselines with another figure or status. The test
// covers each state of a check, and whether that state fails the check.
func TestStatesOfRecordedRuns(t *testing.T) {
	store, dir := journalStore(t), t.TempDir()
	path := filepath.Join(dir, "b.json")
	must(t, dir, "check", store, "--write-baseline", path)
	type experiment = schemas.BaselineExperiment
	for _, c := range []struct {
		what, run, state string
		fails            bool
		change           func(e *experiment)
	}{
		{"as recorded", "ghost", gate.StateOK, false, func(*experiment) {}},
		{"4 % less than it was", "ghost", gate.StateOK, false, func(e *experiment) { *e.PeakBytes = *e.PeakBytes * 26 / 25 }},
		{"10 % less than it was", "ghost", gate.StateImproved, false, func(e *experiment) {
			*e.PeakBytes = *e.PeakBytes * 10 / 9
		}},
		{"it failed", "ghost", gate.StateImproved, false, func(e *experiment) {
			*e = experiment{Name: e.Name, Key: e.Key, Params: e.Params, Source: e.Source, Status: schemas.StatusFailed}
		}},
		{"6 % more than it was", "ghost", gate.StateRegressed, true, func(e *experiment) {
			*e.PeakBytes = *e.PeakBytes * 100 / 106
		}},
		{"another version of the rules", "ghost", gate.StateNotComparable, true, func(e *experiment) { *e.Rules-- }},
		{"out of memory as before", "oom", gate.StateNotComparable, false, func(*experiment) {}},
		{"out of memory", "oom", gate.StateNewlyOOM, true, func(e *experiment) { e.Status, e.Runs = schemas.StatusOK, 1 }},
		{"another failure", "killed", gate.StateNewlyFailing, true, func(e *experiment) {
			e.Status, e.Runs = schemas.StatusOK, 1
		}},
		{"of another name", "ghost", gate.StateNew, false, func(e *experiment) {
			e.Name, e.Key, e.Params = "gone", new("another"), map[string]any{"batch_size": 1}
		}},
		{"of another name", "gone", gate.StateGone, true, func(*experiment) {}},
	} {
		whole, err := schemas.ReadBaseline(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := filepath.Join(dir, "changed.json")
		for i := range whole.Experiments {
			e := &whole.Experiments[i]
			if e.Name == c.run || e.Name == "ghost" && c.run == "gone" {
				c.change(e)
			}
		}
		if c.run == "gone" {
			whole.Experiments = append(whole.Experiments, experiment{Name: "gone", Source: schemas.Predicted,
				Status: schemas.StatusOK, Params: map[string]any{"batch_size": 1}})
		}
		if err := schemas.WriteBaseline(changed, whole); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		code := run([]string{"check", store, "--baseline", changed, "--threshold", "peak=1.05", "--threshold",
			"category:*=1.5", "--format", "json"}, &stdout, &stderr)
		var doc struct {
			Experiments []struct {
				Name, State string
				Fails       bool
			}
		}
		if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		found := false
		for _, x := range doc.Experiments {
			if x.Name == c.run && x.State == c.state {
				found = true
				if x.Fails != c.fails || (code != exitDone) != c.fails && c.state != gate.StateNew {
					t.Errorf("%s: %s fails is %t, exit code %d", c.what, c.run, x.Fails, code)
				}
			}
		}
		if !found {
			t.Errorf("%s: %s is not %s in %+v", c.what, c.run, c.state, doc.Experiments)
		}
	}
}
