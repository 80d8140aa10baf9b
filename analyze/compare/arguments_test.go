package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// Runs that were predicted for different devices, or that ended early, get their differing arguments in their names
// too. The badges of such runs alone do not show that the arguments differ.
func TestArgumentsTellKindsApart(t *testing.T) {
	ids := []identity.Identity{summaries.Scripted("a", 1, nil, "python", "train.py").Identity,
		summaries.Scripted("b", 1, nil, "python", "train.py",
			"--bs", "16").Identity,
		summaries.Scripted("c", 1, nil, "python", "train.py", "--bs", "32").Identity,
		summaries.Scripted("d", 1, nil, "python",
			"train.py").Identity}
	ids[1].Source, ids[2].Status, ids[3].Source = schemas.Predicted, schemas.StatusOOM, schemas.Predicted
	if got, want := identity.Labels(ids, nil), []string{"train", "train (--bs 16)", "train (--bs 32)",
		"train"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// If runs have the same name and parameters but different commands, all documents treat them as different experiments.
// Each experiment gets its own name, and a note gives the reason.
func TestArgumentsTellExperimentsApart(t *testing.T) {
	runs := []analyze.Summary{summaries.Scripted("a", 1000, nil, "python", "train.py", "--bs", "8"),
		summaries.Scripted("b", 1002, nil,
			"/venv/bin/python", "train.py", "--bs", "8"),
		summaries.Scripted("c", 3000, nil, "python", "train.py", "--bs", "16", "--fast")}
	const note = "train: runs with different arguments (--bs 8, --bs 16 --fast) are different experiments; collect " +
		"--param NAME=VALUE names what varies"

	doc := compare(t, Options{}, runs...)
	if got := text(&doc); got != "--bs 8: 1000 base | --bs 16 --fast: 3000 +2000" ||
		!slices.Equal(doc.Warnings, []string{note}) {
		t.Errorf("compare: %s, %q", got, doc.Warnings)
	}
	if got := compare(t, Options{}, runs[:2]...); len(got.Differences) == 0 || len(got.Warnings) != 0 {
		t.Errorf("a program in another folder is the same: %q", got.Warnings)
	}

	if _, err := Compare(runs, Options{Value: Metric{Name: MetricPeak}, Rows: []string{"nope"}}); err == nil ||
		!strings.HasSuffix(err.Error(), "there are source, name, arguments, script, suite, status, run") {
		t.Errorf("what there is: %v", err)
	}

	listed := analyze.Runs(runs)
	if got := listed.UnlikeArguments(); len(got) != 1 || got[0].Title != "train" ||
		!slices.Equal(got[0].Arguments, []string{"--bs 8", "--bs 16 --fast"}) {
		t.Errorf("runs: %q", got)
	}

	failed := summaries.Scripted("g", 9000, map[string]any{"method": "dp"}, "python", "train.py", "--bs", "32")
	failed.Status = schemas.StatusOOM
	listed = analyze.Runs(append(slices.Clone(runs), summaries.Scripted("h", 1000, map[string]any{"method": "dp"},
		"python", "train.py",
		"--bs", "8"), failed))
	if got := listed.Differing(); !slices.Equal(got, []string{"--bs 8", "--bs 8", "--bs 16 --fast", "method=dp, --bs 8",
		"method=dp, --bs 32"}) {
		t.Errorf("what differs in a store: %q", got)
	}
	again := analyze.Runs(runs[:2])
	if got := again.Differing(); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("repeats: %q", got)
	}

	// Runs with the parameter method can be repeats even without a suite.
	m := map[string]any{"method": "dp"}
	methods := []analyze.Summary{summaries.Scripted("d", 1000, m, "python", "train.py", "--bs", "8"),
		summaries.Scripted("e", 1000, m, "python",
			"train.py", "--bs", "8"), summaries.Scripted("f", 2000, m, "python", "train.py", "--bs", "16")}
	s := told(NewStudy(methods, nil))
	if !slices.Equal(s.Labels, []string{"train (--bs 8)", "train (--bs 8)", "train (--bs 16)"}) || len(s.Cells) != 2 {
		t.Errorf("study: %q", s.Labels)
	}
	d := analyze.NewPhasesDocument(methods[0].Phases, methods[2].Phases)
	if d.Runs[0].Shown() != "train (--bs 8)" || d.Runs[1].Shown() != "train (--bs 16)" {
		t.Errorf("titles %q and %q", d.Runs[0].Shown(), d.Runs[1].Shown())
	}
	// If a parameter already shows how two commands differ, no note names their arguments.
	said := []analyze.Summary{summaries.Scripted("g", 1000, map[string]any{"bs": 8}, "python", "train.py", "--bs", "8"),
		summaries.Scripted("h", 1000, map[string]any{"bs": 16}, "python", "train.py", "--bs", "16")}
	if doc := compare(t, Options{Rows: []string{"bs"}}, said...); len(doc.Warnings) != 0 {
		t.Errorf("%q", doc.Warnings)
	}
}
