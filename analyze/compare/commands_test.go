package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/analyze/timing"
)

// Runs of the same script under different names are compared. A note says which arguments of these runs differ. The
// note leaves out arguments whose difference a parameter already shows.
func TestComparedThoughArgumentsDiffer(t *testing.T) {
	run := func(id, method, command string) analyze.Summary {
		s := summaries.Scripted(id, 1000, map[string]any{"method": method}, strings.Fields(command)...)
		s.Name, s.StepMS = id, &timing.Interval{Median: 1, Clock: timing.ClockWall}
		return s
	}
	const note = "compared although the commands differ in their arguments: "
	for _, c := range []struct{ base, run, want string }{
		{"python train.py --batch-size 4", "python src/train.py --dp ghost --batch-size 32",
			note + "--batch-size 32, baseline --batch-size 4"},
		{"python train.py", "/venv/bin/python train.py --dp ghost --data " +
			"/a/very/long/path/to/a/folder/of/much/data/on/a/disk",
			note + "--data …path/to/a/folder/of/much/data/on/a/disk, baseline none"},
		{"python train.py --method vanilla", "python train.py --method ghost", ""},
		// the names of the scripts already show the difference
		{"python plain.py --bs 4", "python train.py --bs 32", ""},
	} {
		base, other := run("base", "vanilla", c.base), run("other", "ghost", c.run)
		said := func(where string, list []string) {
			i := slices.IndexFunc(list, func(w string) bool { return strings.Contains(w, note) })
			if (i >= 0) != (c.want != "") || i >= 0 && !strings.HasSuffix(list[i], c.want) {
				t.Errorf("%s of %q: %q", where, c.run, list)
			}
		}
		study := told(NewStudy([]analyze.Summary{base, other}, &base))
		said("overhead", study.Overhead.Cells[1].Warnings)
		said("compare", compare(t, Options{}, base, other).Warnings)
	}
}
