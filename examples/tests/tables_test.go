package examples_test

import (
	"encoding/json"
	"regexp"
	"strconv"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// An analysis returns the same result from the tables that it declares as from all tables.
func TestDeclaredTablesSuffice(t *testing.T) {
	by := grouping.By{Dimensions: []grouping.Dimension{grouping.DimensionCategory, grouping.DimensionModule}}
	analyses := map[string]struct {
		tables schemas.Want
		of     func(schemas.Tables) (any, error)
	}{
		"breakdown": {memory.BreakdownTables, func(in schemas.Tables) (any, error) {
			return memory.Breakdown(in, memory.At{})
		}},
		"breakdown by": {grouping.Tables, func(in schemas.Tables) (any, error) {
			return grouping.BreakdownBy(in, memory.At{}, by)
		}},
		"timeline": {timeline.CategoryTables, func(in schemas.Tables) (any, error) {
			return timeline.CategoryTimeline(in, timeline.EventRange{}, 100)
		}},
		"ladder": {ladder.Tables, func(in schemas.Tables) (any, error) { return ladder.Of(in) }},
		"module times": {timing.ModuleTimeTables, func(in schemas.Tables) (any, error) {
			return timing.ModuleTimes(in, timing.ModuleTimeBy{Dimension: grouping.DimensionModule}), nil
		}},
		"phases":  {analyze.PhasesTables, func(in schemas.Tables) (any, error) { return analyze.Phases(in), nil }},
		"cost":    {analyze.CostTables, func(in schemas.Tables) (any, error) { return analyze.Cost(in), nil }},
		"list":    {analyze.ListTables, func(in schemas.Tables) (any, error) { return analyze.ListRun(in), nil }},
		"summary": {analyze.SummaryTables, func(in schemas.Tables) (any, error) { return analyze.Summarize(in), nil }},
		"findings": {findings.Tables, func(in schemas.Tables) (any, error) {
			return findings.Find([]findings.Checked{findings.CheckRun(in)}, nil), nil
		}},
	}
	compared := 0
	runs, _, err := store.Open(headline).Runs()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		all, err := store.Load(r, ^schemas.Want(0))
		if err != nil {
			t.Fatal(err)
		}
		for name, a := range analyses {
			some, err := store.Load(r, a.tables)
			if err != nil {
				t.Fatal(err)
			}
			want, wantErr := a.of(*all)
			got, gotErr := a.of(*some)
			if x, y := text(t, want), text(t, got); x != y || (wantErr == nil) != (gotErr == nil) {
				t.Errorf("%s of %s: with the declared tables it is another", name, r.Manifest.Name)
			}
			compared++
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// The list of runs and the breakdown have the same reserved bytes, both at the peak and at the highest reserved.
func TestReservedIsTheSameInListAndBreakdown(t *testing.T) {
	runs, _, err := store.Open(headline).Runs()
	if err != nil {
		t.Fatal(err)
	}
	compared, later := 0, 0
	for _, r := range runs {
		listed, err := store.Load(r, analyze.ListTables)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := store.Load(r, memory.BreakdownTables)
		if err != nil {
			t.Fatal(err)
		}
		b, err := memory.Breakdown(*whole, memory.At{})
		if err != nil || len(b.Devices) != 1 {
			continue // a bare run
		}
		row, d := analyze.ListRun(*listed), &b.Devices[0]
		if row.ReservedAtPeakBytes == nil || *row.ReservedAtPeakBytes != *d.ReservedBytes ||
			*row.PeakReservedBytes != *d.PeakReservedBytes {
			t.Errorf("%s: %+v in the list, %d and %d in the breakdown", r.Manifest.Name, row, *d.ReservedBytes,
				*d.PeakReservedBytes)
		}
		if compared++; *d.PeakReservedBytes > *d.ReservedBytes {
			later++
		}
	}
	if later == 0 {
		t.Errorf("in none of %d runs the highest reserved came after the peak", compared)
	}
}

var fractions = regexp.MustCompile(`\d+\.\d+(e-?\d+)?`)

// text returns a result as JSON, with fractions rounded to 9 digits: the last digits of sums of times depend on the
// order of the parts.
func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return fractions.ReplaceAllStringFunc(string(out), func(digits string) string {
		x, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			t.Fatal(err)
		}
		return strconv.FormatFloat(x, 'g', 9, 64)
	})
}
