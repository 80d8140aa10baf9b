package examples_test

import (
	"reflect"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/schemas/store"
)

// SummarizeWithLadder, which computes a summary and a ladder from shared work, returns the same as Summarize and
// ladder.Of.
func TestSummaryWithLadder(t *testing.T) {
	runs, _, err := store.Open(headline).Runs()
	if err != nil || len(runs) == 0 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for _, r := range runs {
		tab, err := store.Load(r, analyze.SummaryTables|ladder.Tables)
		if err != nil {
			t.Fatal(err)
		}
		in := *tab
		s, climbed, err := analyze.SummarizeWithLadder(in)
		alone, failed := ladder.Of(in)
		if !reflect.DeepEqual(s, analyze.Summarize(in)) || !reflect.DeepEqual(climbed, alone) ||
			!reflect.DeepEqual(err, failed) {
			t.Errorf("%s: it is another", r.Manifest.Name)
		}
	}
}
