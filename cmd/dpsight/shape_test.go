package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A shape says what a JSON value must be. A shape is a kind ("string", "int", "number", "bool" or "any", with "?" if
// the value may be null), an object with exactly these keys (optional ones with a "?"), or a list (a slice of one) of
// one shape.
type (
	shape  any
	object map[string]shape
	list   []shape
)

var identity = object{"run_id": "string", "name": "string", "status": "string", "reason?": "string", "source": "string",
	"profile": "string?", "params": "any",
	"confidence?": "string?", "confidence_reasons?": list{"string"}, "known_error?": "string?", // predicted runs
	"undigested?": "bool", "peak_low_bytes?": "int", "peak_high_bytes?": "int"}

func with(base object, more object) object {
	all := object{}
	for _, o := range []object{base, more} {
		for k, v := range o {
			all[k] = v
		}
	}
	return all
}

var (
	interval = object{"median": "number", "low": "number", "high": "number", "n": "int", "of": "string",
		"confidence": "number", "over": "string", "clock": "string"}

	breakdownShape = object{"schema": "string", "runs": list{with(identity, object{
		"devices": list{object{
			"device": "string", "rank": "int", "at": object{"event": "int", "step": "int?", "phase": "string?"},
			"allocated_bytes": "int", "reserved_bytes": "int?", "peak_reserved_bytes": "int?",
			"torch_peak_allocated_bytes": "int?",
			"categories": list{object{"category": "string", "bytes": "int", "held_bytes": "int", "shared_bytes": "int",
				"shared_with?": "any",
				"tagged_bytes": "int", "lifetime_bytes": "int", "stack_bytes?": "int", "phase_only_bytes": "int", "blocks": "int",
				"max_bytes": "int"}},
			"conservation": object{"verdict": "string", "residue_bytes": "int", "ambiguous_tags": "int",
				"reason": "string?"},
			"warnings": list{"string"},
		}},
		"confidence": "string?", "peak_reserved_band": "any?", "unknown_reads": "int?", "warnings": list{"string"},
	})}}

	overheadRun = with(identity, object{
		"baseline": "string", "peak_bytes": "int?", "peak_delta_bytes": "int?", "peak_ratio": "number?",
		"peak_reserved_bytes": "int?", "peak_device_bytes": "int?",
		"kept_gradient_bytes": "int?", "freed_peak_bytes": "int?", "freed_delta_bytes": "int?",
		"step_ms": nullable{interval}, "step_delta_ms": "number?", "step_ratio": "number?", "samples_per_s": "number?",
		"tokens_per_s":    "number?",
		"joules_per_step": "number?", "joules_per_sample": "number?", "warnings": list{"string"},
		"categories": list{object{"category": "string", "bytes": "int", "delta_bytes": "int",
			"delta_percent": "number?"}},
		"phases": list{object{"phase": "string", "ms": "number?", "delta_ms": "number?",
			"delta_step_percent": "number?", "peak_bytes": "int?", "peak_delta_bytes": "int?",
			"peak_delta_percent": "number?"}},
	})

	overheadShape = object{"schema": "string", "baseline": "string", "runs": list{overheadRun},
		"baseline_warnings": list{"string"},
		"cells": list{with(overheadRun, object{"label": "string", "run_ids": list{"string"}, "peak_low_bytes": "int?",
			"peak_high_bytes": "int?"})}}

	phasesShape = object{"schema": "string", "runs": list{with(identity, object{
		"phases": list{object{"device": "string", "rank": "int", "phase": "string", "occurrences": "int",
			"allocated_begin_bytes": "int?",
			"allocated_end_bytes":   "int?", "peak_bytes": "int?", "peak_step": "int?", "lowest_peak_bytes": "int?",
			"peak_percent": "number?", "step_percent": "number?", "gpu_ms": nullable{interval},
			"wall_ms": nullable{interval}}},
		"warnings": list{"string"},
	})}}

	runsShape = object{"schema": "string", "runs": list{with(identity, object{
		"tags?": list{"string"}, "suite": "string?", "trial?": "bool", "peak_bytes": "int?", "peak_reserved_bytes": "int?",
		"reserved_at_peak_bytes": "int?",
		"reserved_together?":     "bool", "step_ms": "number?", "samples_per_s": "number?", "gpu": "string?",
		"started": "string", "superseded_by": "string?", "failed_requests": "int?", "warnings": list{"string"},
	})}}

	costShape = object{"schema": "string", "runs": list{with(identity, object{
		"peak_bytes": "int?", "torch_peak_bytes": "int?", "peak_reserved_bytes": "int?", "verdict": "string",
		"events": "int", "missing_events": "int", "residue_bytes": "int",
		"bare_step_ms": "number?", "beside_bare_run": "number?", "instrumented_step_ms": "number?",
		"instrument_ms": "number?", "instrument_share": "number?", "bare_steps": "int",
		"instrumented_steps": "int", "recorded_steps": "int", "windows": "int", "drain_ms": "number?",
		"drain_share": "number?", "lines_share": "number?", "collector_share": "number?", "collector_setup_ms": "number?",
		"collector_seal_ms": "number?",
		"warnings":          list{"string"},
	})}}

	hostCurve = object{"readings": "int", "first_bytes": "int", "last_bytes": "int", "highest_bytes": "int"}

	hostMemoryShape = with(hostCurve, object{"growth_bytes": "int", "unknown_bytes": "int",
		"explained_percent": "number?", "trend": nullable{object{"steps": "int", "bytes_per_step": "int"}},
		"phases": list{object{"phase": "string", "bytes": "int", "steps": "int"}}})

	hostShape = object{"schema": "string", "runs": list{with(identity, object{"tree": nullable{hostCurve},
		"ranks": list{object{"rank": "int", "resident": hostMemoryShape, "pinned": nullable{hostMemoryShape}}}})}}

	ranksPart = object{"category?": "string", "module?": "string", "line?": "string", "source?": "string", "bytes": "int",
		"beside_bytes": "int", "delta_bytes": "int"}

	ranksShape = object{"schema": "string", "bound_percent": "number", "runs": list{with(identity, object{
		"ranks": list{object{"rank": "int", "device": "string", "peak_allocated_bytes": "int?",
			"peak_reserved_bytes": "int?", "step": "int?", "phase": "string?", "others_median_bytes": "int?",
			"delta_bytes": "int?", "apart": "bool"}},
		"outlier": nullable{object{"rank": "int", "device": "string", "delta_bytes": "int",
			"beside": object{"rank": "int", "device": "string"}, "parts_delta_bytes": "int?",
			"categories": list{ranksPart}, "modules": list{ranksPart}, "lines": list{ranksPart}}},
	})}}

	timeShape = object{"schema": "string", "by": "string", "depth": "int", "fold": "bool", "top": "int",
		"runs": list{with(identity, object{
			"ranks": list{object{"rank": "int", "bare_steps": "int", "instrumented_steps": "int", "step_ms": "number?",
				"instrumented_step_ms": "number?",
				"phases": list{object{"phase": "string", "bare_ms": "number?", "instrumented_ms": "number",
					"outside_ms": "number", "scale": "number"}},
				"rows": list{object{"key": "string?", "others": "int", "modules": "int", "ms": "number",
					"hook_ms": "number", "phases": "any"}},
				"outside_ms": "number", "residue_ms": "number?"}},
			"warnings": list{"string"},
		})}}

	ingestShape = object{"schema": "string", "inputs": list{object{"path": "string", "run_ids": list{"string"},
		"state": "string", "again": "bool", "reason": "string?",
		"warnings?": list{"string"}}}, "other_rules?": list{"string"},
		"remade?": list{object{"run_id": "string", "name": "string", "rules_before": "int", "rules": "int",
			"moved": list{object{"rank": "int", "device": "string", "category": "string?", "before_bytes": "int",
				"after_bytes": "int"}}}}}

	doctorShape = object{"schema": "string", "checks": list{object{"name": "string", "ok": "bool", "needed": "bool",
		"detail": "string", "hint": "string"}}, "features": list{object{"name": "string", "ok": "bool", "needed": "bool",
		"gives": "string", "without": "string", "error": "string"}}}
)

// A nullable is the shape of a value that may also be null.
type nullable struct{ of shape }

// match lists how the JSON value v at path differs from the shape that it must have.
func match(path string, v any, want shape) (wrong []string) {
	fail := func(format string, args ...any) []string {
		return append(wrong, path+": "+fmt.Sprintf(format, args...))
	}
	switch w := want.(type) {
	case nullable:
		if v == nil {
			return nil
		}
		return match(path, v, w.of)
	case object:
		m, ok := v.(map[string]any)
		if !ok {
			return fail("%v is no object", v)
		}
		for key := range m {
			if w[key] == nil && w[key+"?"] == nil {
				wrong = fail("unexpected key %s", key)
			}
		}
		for key, inner := range w {
			name, optional := strings.CutSuffix(key, "?")
			value, ok := m[name]
			switch {
			case ok:
				wrong = append(wrong, match(path+"."+name, value, inner)...)
			case !optional:
				wrong = fail("no key %s", name)
			}
		}
		return wrong
	case list:
		items, ok := v.([]any)
		if !ok {
			return fail("%v is no list", v)
		}
		for i, item := range items {
			wrong = append(wrong, match(fmt.Sprintf("%s[%d]", path, i), item, w[0])...)
		}
		return wrong
	}
	kind, optional := strings.CutSuffix(want.(string), "?")
	if v == nil && optional {
		return nil
	}
	ok := false
	switch kind {
	case "any":
		ok = v != nil
	case "string":
		_, ok = v.(string)
	case "bool":
		_, ok = v.(bool)
	case "number", "int":
		var n json.Number
		n, ok = v.(json.Number)
		ok = ok && (kind == "number" || !strings.ContainsAny(n.String(), ".eE"))
	}
	if !ok {
		return fail("%v is no %s", v, kind)
	}
	return nil
}

// decodeOne checks that stdout is exactly one JSON document of the wanted shape, and decodes the document into typed.
func decodeOne(t *testing.T, r result, want shape, typed any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(r.stdout))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		t.Fatalf("stdout is no JSON document: %v\n%s", err, r.stdout)
	}
	if err := d.Decode(new(any)); err != io.EOF {
		t.Errorf("stdout holds more than one document (%v)", err)
	}
	for _, wrong := range match("document", tree, want) {
		t.Error(wrong)
	}
	if err := json.Unmarshal([]byte(r.stdout), typed); err != nil {
		t.Fatal(err)
	}
}
