package analyze

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// scripted is a run of a script with these arguments, of so many bytes.
func scripted(id string, bytes int64, params map[string]any, command ...string) Summary {
	in := sized("train", map[schemas.Category]int64{schemas.Parameters: bytes / 2,
		schemas.Activations: bytes - bytes/2})
	in.Manifest.RunID, in.Manifest.Params, in.Manifest.Command = id, params, command
	return Summarize(in)
}

// What was predicted for another device, or ended early, is told apart by its arguments too: its mark does not say that
// they differ.
func TestArgumentsTellKindsApart(t *testing.T) {
	ids := []Identity{scripted("a", 1, nil, "python", "train.py").Identity, scripted("b", 1, nil, "python", "train.py",
		"--bs", "16").Identity,
		scripted("c", 1, nil, "python", "train.py", "--bs", "32").Identity, scripted("d", 1, nil, "python",
			"train.py").Identity}
	ids[1].Source, ids[2].Status, ids[3].Source = schemas.Predicted, schemas.StatusOOM, schemas.Predicted
	if got, want := Labels(ids, nil), []string{"train", "train (--bs 16)", "train (--bs 32)",
		"train"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Runs of one name and parameters whose commands differ are different experiments everywhere, each under a name of its
// own, and it is said why.
func TestArgumentsTellExperimentsApart(t *testing.T) {
	runs := []Summary{scripted("a", 1000, nil, "python", "train.py", "--bs", "8"), scripted("b", 1002, nil,
		"/venv/bin/python", "train.py", "--bs", "8"),
		scripted("c", 3000, nil, "python", "train.py", "--bs", "16", "--fast")}
	const note = "train: runs whose arguments differ (--bs 8, --bs 16 --fast) are different experiments; collect " +
		"--param says what varies"

	doc := compare(t, CompareOptions{}, runs...)
	if got := doc.text(); got != "--bs 8: 1000 base | --bs 16 --fast: 3000 +2000" ||
		!slices.Equal(doc.Warnings, []string{note}) {
		t.Errorf("compare: %s, %q", got, doc.Warnings)
	}
	if got := compare(t, CompareOptions{}, runs[:2]...); len(got.Differences) == 0 || len(got.Warnings) != 0 {
		t.Errorf("a program in another folder is the same: %q", got.Warnings)
	}

	if _, err := Compare(runs, CompareOptions{Value: Metric{Name: MetricPeak}, Rows: []string{"nope"}}); err == nil ||
		!strings.HasSuffix(err.Error(), "there are source, name, arguments, suite, status, run") {
		t.Errorf("what there is: %v", err)
	}

	b := BaselineOf(runs, "")
	if len(b.Experiments) != 2 || b.Experiments[0].Runs != 1 || b.Experiments[1].Runs != 2 ||
		!slices.Equal(experimentLabels(b.Experiments), []string{"train (--bs 16 --fast)", "train (--bs 8)"}) {
		t.Errorf("baseline: %q %+v", experimentLabels(b.Experiments), b.Experiments)
	}
	if kept, _ := Newest(runs); len(kept) != 2 {
		t.Errorf("the newest of each: %d runs", len(kept))
	}
	list, _ := ParseThresholds([]string{"peak=1"})
	check := func(base, now []Summary) CheckDocument {
		return Check(BaselineOf(base, ""), now, CheckOptions{Thresholds: list})
	}
	if d := check(runs, runs); !d.OK || len(d.Experiments) != 2 ||
		!slices.Contains(d.Warnings, note[:len("train: runs whose arguments differ (")]+"--bs 16 --fast, --bs 8) are "+
			"different experiments; collect --param says what varies") {
		t.Errorf("beside themselves: %q %q", d.Failures, d.Warnings)
	}
	if d := check(runs[:1], runs[2:]); len(d.Experiments) != 1 || d.Experiments[0].State != StateRegressed ||
		!slices.Contains(d.Warnings, "train: compared though the commands differ in their arguments: --bs 16 --fast, "+
			"baseline --bs 8") {
		t.Errorf("the only one on both sides: %+v %q", d.Experiments, d.Warnings)
	}

	listed := Runs(runs)
	if got := listed.ArgumentNotes(); !slices.Equal(got, []string{note}) {
		t.Errorf("runs: %q", got)
	}

	failed := scripted("g", 9000, map[string]any{"method": "dp"}, "python", "train.py", "--bs", "32")
	failed.Status = schemas.StatusOOM
	listed = Runs(append(slices.Clone(runs), scripted("h", 1000, map[string]any{"method": "dp"}, "python", "train.py",
		"--bs", "8"), failed))
	if got := listed.Differing(); !slices.Equal(got, []string{"--bs 8", "--bs 8", "--bs 16 --fast", "method=dp, --bs 8",
		"method=dp, --bs 32"}) {
		t.Errorf("what differs in a store: %q", got)
	}
	again := Runs(runs[:2])
	if got := again.Differing(); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("repeats: %q", got)
	}

	// With a method, which makes repeats of runs by hand, too.
	m := map[string]any{"method": "dp"}
	methods := []Summary{scripted("d", 1000, m, "python", "train.py", "--bs", "8"), scripted("e", 1000, m, "python",
		"train.py", "--bs", "8"), scripted("f", 2000, m, "python", "train.py", "--bs", "16")}
	s := NewStudy(methods, nil)
	if !slices.Equal(s.Labels, []string{"train (--bs 8)", "train (--bs 8)", "train (--bs 16)"}) || len(s.Cells) != 2 ||
		len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "--param") {
		t.Errorf("study: %q %q", s.Labels, s.Notes)
	}
	if own, _ := trialsOf(&methods[0], methods); len(own.runs) != 2 {
		t.Errorf("%d runs of one trial", len(own.runs))
	}
	d := NewPhasesDocument(methods[0].Phases, methods[2].Phases)
	if d.Runs[0].Shown() != "train (--bs 8)" || d.Runs[1].Shown() != "train (--bs 16)" {
		t.Errorf("titles %q and %q", d.Runs[0].Shown(), d.Runs[1].Shown())
	}
	// What a parameter says needs no arguments.
	said := []Summary{scripted("g", 1000, map[string]any{"bs": 8}, "python", "train.py", "--bs", "8"),
		scripted("h", 1000, map[string]any{"bs": 16}, "python", "train.py", "--bs", "16")}
	if doc := compare(t, CompareOptions{Rows: []string{"bs"}}, said...); len(doc.Warnings) != 0 {
		t.Errorf("%q", doc.Warnings)
	}
}

// Runs of one script under names of their own are compared, and it is said that their arguments differ, but for those
// that a parameter says.
func TestComparedThoughArgumentsDiffer(t *testing.T) {
	run := func(id, method, command string) Summary {
		s := scripted(id, 1000, map[string]any{"method": method}, strings.Fields(command)...)
		s.Name, s.StepMS = id, &Interval{Median: 1, Clock: ClockWall}
		return s
	}
	const note = "compared though the commands differ in their arguments: "
	for _, c := range []struct{ base, run, want string }{
		{"python train.py --batch-size 4", "python src/train.py --dp ghost --batch-size 32",
			note + "--batch-size 32, baseline --batch-size 4"},
		{"python train.py", "/venv/bin/python train.py --dp ghost --data " +
			"/a/very/long/path/to/a/folder/of/much/data/on/a/disk",
			note + "--data " + shortened("/a/very/long/path/to/a/folder/of/much/data/on/a/disk") + ", baseline none"},
		{"python train.py --method vanilla", "python train.py --method ghost", ""},
		{"python plain.py --bs 4", "python train.py --bs 32", ""}, // which is said of the scripts
	} {
		base, other := run("base", "vanilla", c.base), run("other", "ghost", c.run)
		said := func(where string, list []string) {
			i := slices.IndexFunc(list, func(w string) bool { return strings.Contains(w, note) })
			if (i >= 0) != (c.want != "") || i >= 0 && !strings.HasSuffix(list[i], c.want) {
				t.Errorf("%s of %q: %q", where, c.run, list)
			}
		}
		study := NewStudy([]Summary{base, other}, &base)
		said("overhead", study.Overhead.Cells[1].Warnings)
		said("compare", compare(t, CompareOptions{}, base, other).Warnings)
		doc, err := Explain(Dissection{Summary: base}, Dissection{Summary: other})
		if err != nil {
			t.Fatal(err)
		}
		said("explain", doc.Warnings)
	}
}

// What a suite hashed, and what the built-in experiments' parameters say, does not hang on the words of a command: a
// later dpsight writes others.
func TestCommandsThatTellNothing(t *testing.T) {
	for _, m := range []*schemas.Manifest{
		{Command: []string{"python3", "-m", "dpsight_experiments", "--method", "ghost"}},
		{Command: []string{"python", "train.py"}, Suite: &schemas.SuiteRef{Key: "k"}},
		{},
	} {
		if got := commandOf(m); got != nil {
			t.Errorf("%q: %q", m.Command, got)
		}
	}
	long := strings.Repeat("x", 60)
	got := argumentsOf([]string{"python", "-u", "t.py", "--lr=0.1", "--out", long + "/1", "--flag"})
	want := []string{"python", "-u t.py", "--lr=0.1", "--out …" + strings.Repeat("x", 37) + "/1", "--flag"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
