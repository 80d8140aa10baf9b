package main

import (
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

var ladderShape = object{"schema": "string", "runs": list{with(identity, object{
	"gpus": list{object{"gpu": "string?", "uuid": "string?", "index": "int?", "total_bytes": "int?",
		"devices": list{object{"device": "string", "rank": "int"}},
		"moments": list{object{"at": "string", "device": "string?", "rank": "int?", "time_ns": "int?", "event": "int?",
			"step": "int?", "phase": "string?",
			"sample_offset_ns": "int?", "memory_api": "int?", "driver_reserve_bytes": "int?", "other_processes": "int?",
			"rungs": list{object{"rung": "string", "in": "string?", "bytes": "int?", "how": "string"}},
			"notes": list{"string"}}},
		"outside_torch": list{object{"time_ns": "int", "step": "int?", "phase": "string?", "bytes": "int"}},
	}},
	"warnings": list{"string"},
})}}

func TestLadderDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		var doc struct {
			Schema string
			Runs   []struct {
				Name, Source string
				Params       map[string]any
				GPUs         []struct {
					Moments []struct {
						At    string
						Rungs []struct {
							Rung, How string
							In        *string
							Bytes     *int64
						}
					}
				}
			}
		}
		decodeOne(t, must(t, t.TempDir(), "analyze", "ladder", store, "--format", "json"), ladderShape, &doc)
		if doc.Schema != "dpsight.ladder/1" || len(doc.Runs) == 0 {
			t.Fatalf("schema %q, %d runs", doc.Schema, len(doc.Runs))
		}
		for _, r := range doc.Runs {
			moments := 0
			for _, g := range r.GPUs {
				for _, m := range g.Moments {
					moments++
					bytes, sums := map[string]*int64{}, map[string]int64{}
					for _, rung := range m.Rungs {
						bytes[rung.Rung] = rung.Bytes
						if (rung.Bytes == nil) != (rung.How == "unknown") {
							t.Errorf("%s, %s: %+v", r.Name, m.At, rung)
						}
						if rung.In != nil && rung.Bytes != nil {
							sums[*rung.In] += *rung.Bytes
						}
					}
					for rung, sum := range sums {
						if whole := bytes[rung]; whole != nil && *whole != sum {
							t.Errorf("%s, %s: %s has %d bytes, the rungs in it %d", r.Name, m.At, rung, *whole, sum)
						}
					}
					if used := bytes["device_used"]; (used != nil) != (r.Source == schemas.Measured) ||
						bytes["reserved"] == nil {
						t.Errorf("%s (%s), %s: %v", r.Name, r.Source, m.At, bytes)
					}
				}
			}
			if moments == 0 && r.Params["bare"] != true {
				t.Errorf("%s: no moment", r.Name)
			}
		}
	})
}
