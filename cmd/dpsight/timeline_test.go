package main

import (
	"encoding/csv"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

var (
	momentShape   = object{"event": "int", "step": "int?", "phase": "string?"}
	timelineShape = object{"schema": "string", "points": "int", "runs": list{with(identity, object{
		"devices": list{object{"device": "string", "rank": "int", "from_event": "int", "to_event": "int",
			"peak_bytes": "int", "peak_at": momentShape,
			"run_peak_bytes": "int", "run_peak_at": momentShape,
			"categories": list{object{"category": "string", "max_bytes": "int", "at": momentShape,
				"allocated_bytes": "int", "at_peak_bytes": "int",
				"max_evidence": evidenceShape, "at_peak_evidence": evidenceShape}},
			"points": list{object{"from_event": "int", "to_event": "int", "step": "int?", "phase": "string?",
				"low_bytes": "int", "low_event": "int",
				"high_bytes": "int", "high_event": "int", "bytes": list{"int"}, "max_bytes": list{"int"}}},
			"conservation": object{"verdict": "string", "residue_bytes": "int", "ambiguous_tags": "int",
				"reason": "string"},
			"warnings": list{"string"}}},
		"warnings": list{"string"},
	})}}
)

func TestTimelineDocument(t *testing.T) {
	stores(t, func(t *testing.T, store string) {
		var doc struct {
			Schema string
			Points int
			Runs   []struct {
				Name    string
				Params  map[string]any
				Devices []struct {
					RunPeak    int64 `json:"run_peak_bytes"`
					Peak       int64 `json:"peak_bytes"`
					To         int64 `json:"to_event"`
					Categories []struct {
						Category string
						Max      int64 `json:"max_bytes"`
						AtPeak   int64 `json:"at_peak_bytes"`
					}
					Points []struct {
						From  int64 `json:"from_event"`
						To    int64 `json:"to_event"`
						High  int64 `json:"high_bytes"`
						Low   int64 `json:"low_bytes"`
						Bytes []int64
						Max   []int64 `json:"max_bytes"`
					}
				}
			}
		}
		decodeOne(t, must(t, t.TempDir(), "analyze", "timeline", store, "--points", "50", "--format", "json"),
			timelineShape, &doc)
		if doc.Schema != "dpsight.timeline/1" || doc.Points != 50 || len(doc.Runs) == 0 {
			t.Fatalf("schema %q, %d points, %d runs", doc.Schema, doc.Points, len(doc.Runs))
		}
		for _, r := range doc.Runs {
			if bare := r.Params["bare"] == true; bare != (len(r.Devices) == 0) {
				t.Errorf("%s: bare %t, %d devices", r.Name, bare, len(r.Devices))
			}
			for _, d := range r.Devices {
				var atPeak, highest, next int64
				most := make([]int64, len(d.Categories))
				for _, c := range d.Categories {
					atPeak += c.AtPeak
				}
				for _, p := range d.Points {
					var sum int64
					for c, b := range p.Bytes {
						sum += b
						most[c] = max(most[c], p.Max[c])
					}
					if p.From != next || sum != p.High || p.Low > p.High || len(p.Bytes) != len(d.Categories) {
						t.Fatalf("%s: %+v after event %d", r.Name, p, next-1)
					}
					highest, next = max(highest, p.High), p.To+1
				}
				if len(d.Points) != 50 || next != d.To+1 || highest != d.Peak || d.Peak != d.RunPeak ||
					atPeak != d.RunPeak {
					t.Errorf("%s: %d points to %d of %d; %d, %d, %d and %d bytes", r.Name, len(d.Points), next-1, d.To,
						highest, d.Peak, d.RunPeak, atPeak)
				}
				for c := range most {
					if most[c] != d.Categories[c].Max {
						t.Errorf("%s: the points of %s reach %d of %d", r.Name, d.Categories[c].Category, most[c],
							d.Categories[c].Max)
					}
				}
			}
		}
	})
}

// In the CSV of analyze timeline, the categories of a point sum to the point's highest total, whatever categories the
// run has.
func TestTimelineRecords(t *testing.T) {
	r := must(t, t.TempDir(), "analyze", "timeline", "ghost", "oom", "--store", journalStore(t), "--points", "7",
		"--format", "csv")
	rows, err := csv.NewReader(strings.NewReader(r.stdout)).ReadAll()
	if err != nil || len(rows) != 1+2*7 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	number := func(row []string, column string) int64 {
		n, err := strconv.ParseInt(row[slices.Index(rows[0], column)], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, row := range rows[1:] {
		var sum int64
		for _, c := range schemas.Categories {
			b := number(row, string(c)+"_bytes")
			if m := number(row, string(c)+"_max_bytes"); b < 0 || b > m {
				t.Errorf("%s has %d bytes, at most %d", c, b, m)
			}
			sum += b
		}
		if sum != number(row, "high_bytes") || sum == 0 {
			t.Errorf("%v: the categories sum to %d", row, sum)
		}
	}
}
