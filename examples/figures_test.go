package examples_test

import (
	"errors"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas/store"
)

// In the figures of every example no text sticks out or lies over another, and nothing reaches beyond its axis: the step of
// the peak, and all steps.
func TestFiguresAreLegible(t *testing.T) {
	folders := storeFolders(t)
	for _, folder := range folders {
		runs, _, err := store.Open(ingesttest.Store(t, folder)).Runs()
		if err != nil {
			t.Fatal(err)
		}
		sums, ladders := reduced(t, runs)
		for _, all := range []bool{false, true} {
			m := report.Model{Study: analyze.NewMatchedStudy(sums, nil, ""), Ladders: ladders, AllSteps: all}
			for _, fig := range m.Figures() {
				bad, err := fig.Misplaced()
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range bad {
					t.Errorf("%s, %s: %s", folder, fig.Name, b)
				}
			}
		}
	}
	if len(folders) < 2 {
		t.Errorf("%d stores", len(folders))
	}
}

// reduced is what a report needs of runs.
func reduced(t testing.TB, runs []store.Run) ([]analyze.Summary, map[string]analyze.LadderRun) {
	t.Helper()
	var sums []analyze.Summary
	ladders := map[string]analyze.LadderRun{}
	for _, r := range runs {
		tab, err := store.Load(r, store.WantAll|store.WantClock)
		if err != nil {
			t.Fatal(err)
		}
		in := analyze.Input(*tab)
		if len(in.Samples) == 0 {
			sums = append(sums, analyze.Summarize(in))
			continue
		}
		// A bare run has a ladder without categories, and an error that says so.
		var none *analyze.NoEventsError
		s, ladder, err := analyze.SummarizeWithLadder(in)
		if err != nil && !errors.As(err, &none) {
			t.Fatal(err)
		}
		sums, ladders[r.ID] = append(sums, s), ladder
	}
	return sums, ladders
}
