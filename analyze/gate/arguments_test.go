package gate

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
)

// A check treats runs with different arguments as different experiments.
func TestArgumentsTellExperimentsOfAGateApart(t *testing.T) {
	runs := []analyze.Summary{summaries.Scripted("a", 1000, nil, "python", "train.py", "--bs", "8"),
		summaries.Scripted("b", 1002, nil,
			"/venv/bin/python", "train.py", "--bs", "8"),
		summaries.Scripted("c", 3000, nil, "python", "train.py", "--bs", "16", "--fast")}
	b := BaselineOf(runs, "")
	if len(b.Experiments) != 2 || b.Experiments[0].Runs != 1 || b.Experiments[1].Runs != 2 ||
		!slices.Equal(ExperimentLabels(b.Experiments), []string{"train (--bs 16 --fast)", "train (--bs 8)"}) {
		t.Errorf("baseline: %q %+v", ExperimentLabels(b.Experiments), b.Experiments)
	}
	if kept, _ := Newest(runs); len(kept) != 2 {
		t.Errorf("the newest of each: %d runs", len(kept))
	}
}
