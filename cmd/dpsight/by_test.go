package main

import "testing"

var (
	byLeaf = object{"key": "string?", "others": "int", "modules": "int", "bytes": "int",
		"view_bytes?": "int", "tagged_bytes": "int",
		"lifetime_bytes": "int", "stack_bytes?": "int", "phase_only_bytes": "int", "blocks": "int"}

	byShape = object{"schema": "string", "by": list{"string"}, "depth": "int", "fold": "bool", "top": "int",
		"runs": list{with(identity, object{
			"devices": list{object{
				"device": "string", "rank": "int", "at": object{"event": "int", "step": "int?", "phase": "string?"},
				"allocated_bytes": "int", "torch_peak_allocated_bytes": "int?",
				"rows": list{with(byLeaf, object{"rows": list{byLeaf}})}, "columns": list{byLeaf},
				"unknown_bytes": object{"module": "int", "phase": "int"},
				"module_bytes": object{"owner_bytes": "int", "name_bytes": "int", "birth_bytes": "int",
					"shared_bytes": "int", "none_bytes": "int"},
				"shared_hook_activations": nullable{object{"run_id": "string", "device": "string", "rank": "int",
					"held_bytes": "int", "shared_bytes": "int",
					"autograd_bytes": "int", "extra_bytes": "int"}},
				"conservation": object{"verdict": "string", "residue_bytes": "int", "ambiguous_tags": "int",
					"reason": "string?"},
				"warnings": list{"string"},
			}},
			"warnings": list{"string"},
		})}}
)

func TestBreakdownByDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		type row struct {
			Bytes int64
			Rows  []row
		}
		var doc struct {
			Schema string
			Runs   []struct {
				Name    string
				Params  map[string]any
				Devices []struct {
					Allocated     int64 `json:"allocated_bytes"`
					Rows, Columns []row
				}
			}
		}
		decodeOne(t, must(t, t.TempDir(), "analyze", "breakdown", store, "--by", "module,phase", "--fold", "--format",
			"json"), byShape, &doc)
		if doc.Schema != "dpsight.breakdown_by/1" || len(doc.Runs) == 0 {
			t.Fatalf("schema %q, %d runs", doc.Schema, len(doc.Runs))
		}
		sum := func(rows []row) (bytes int64) {
			for _, r := range rows {
				bytes += r.Bytes
			}
			return bytes
		}
		for _, r := range doc.Runs {
			if bare := r.Params["bare"] == true; bare != (len(r.Devices) == 0) {
				t.Errorf("%s: bare %t, %d devices", r.Name, bare, len(r.Devices))
			}
			for _, d := range r.Devices {
				if sum(d.Rows) != d.Allocated || sum(d.Columns) != d.Allocated || d.Allocated <= 0 {
					t.Errorf("%s: rows sum to %d, columns to %d, allocated are %d", r.Name, sum(d.Rows), sum(d.Columns),
						d.Allocated)
				}
				for _, w := range d.Rows {
					if sum(w.Rows) != w.Bytes {
						t.Errorf("%s: a row of %d bytes sums to %d", r.Name, w.Bytes, sum(w.Rows))
					}
				}
			}
		}
	})
}
