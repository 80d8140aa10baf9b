package gate

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
)

// A gate tells experiments apart by their arguments, too.
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
	list, _ := ParseThresholds([]string{"peak=1"})
	check := func(base, now []analyze.Summary) Document {
		return Check(BaselineOf(base, ""), now, Options{Thresholds: list})
	}
	if d := check(runs, runs); !d.OK || len(d.Experiments) != 2 ||
		!slices.Contains(d.Warnings, "train: runs whose arguments differ (--bs 16 --fast, --bs 8) are different "+
			"experiments; collect --param says what varies") {
		t.Errorf("beside themselves: %q %q", d.Failures, d.Warnings)
	}
	if d := check(runs[:1], runs[2:]); len(d.Experiments) != 1 || d.Experiments[0].State != StateRegressed ||
		!slices.Contains(d.Warnings, "train: compared though the commands differ in their arguments: --bs 16 --fast, "+
			"baseline --bs 8") {
		t.Errorf("the only one on both sides: %+v %q", d.Experiments, d.Warnings)
	}
}
