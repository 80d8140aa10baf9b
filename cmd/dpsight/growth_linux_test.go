package main

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

// dpsight also finds growth in loops without optimizer updates. dpsight counts the growth of a loop by evaluation
// passes, by backward passes, or by passes of a line if the loop has neither. dpsight finds no growth in the corrected
// version of each loop.
func TestGrowthOfLoopsWithoutUpdates(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	python(t)
	for _, c := range []struct {
		script, mended string
		id, unit       string
		each           int64 // least growth of each pass, in bytes
		lines          string
		holder, edit   string // parts of the holder and of the line to change; empty if there is none
	}{
		{"case08", "detach", "kept-graphs", "line_pass", 19 * 100_000, "train.py:18 train.py:19 train.py:20",
			"global kept → grad_fn", "kept = "},
		{"case09", "clone", "view-keeps-base", "evaluation_pass", 128 * 197 * 768 * 4, "train.py:18",
			"global features[*]", "features.append("},
		{"case11", "grad", "gradient-graphs", "step", 4 << 22, "train.py:19 train.py:20 train.py:21", "C++ alone",
			"create_graph=True"},
		{"case16", "nograd", "evaluation-graphs", "evaluation_pass", 12 * 16 * 256 * 4, "train.py:19",
			"global losses[*] → grad_fn", "losses.append("},
	} {
		text := scriptOf(t, c.script)
		got, peak := findingsAndPeak(t, text)
		f := findFinding(got, c.id)
		switch {
		case f == nil:
			t.Errorf("%s: %v", c.script, ids(got))
		case got[0].ID != c.id || f.Growth.Unit != c.unit || int64(f.Growth.Slope) < c.each ||
			int64(f.Growth.Slope) > c.each*11/10 || f.Growth.Tau < 0.95 || f.Place.Line == nil ||
			!strings.Contains(c.lines, fmt.Sprintf("%s:%d", f.Place.Line.File, f.Place.Line.Line)):
			t.Errorf("%s: %+v, %+v, %+v", c.script, f.Growth, f.Place.Line, f)
		case !strings.Contains(holderOf(f), c.holder):
			t.Errorf("%s: held by %q, not %q", c.script, holderOf(f), c.holder)
		default:
			(&change{script: c.script, edit: c.edit}).edits(t, text, f)
		}
		mended, lower := findingsAndPeak(t, text, c.mended)
		for _, id := range []string{"growth", "evaluation-graphs", "kept-graphs", "gradient-graphs", "view-keeps-base"} {
			if f := findFinding(mended, id); f != nil {
				t.Errorf("%s %s: %+v", c.script, c.mended, f)
			}
		}
		// The peak falls by the stated saving. The peak may fall by a little more, since the changed script also frees
		// what its last passes make.
		if f != nil && (*f.saves() > peak-lower || *f.saves() < peak-lower-4*c.each || f.Confidence != "at_least") {
			t.Errorf("%s saves %d, and %s takes %d less", c.script, *f.saves(), c.mended, peak-lower)
		}
	}
}

// The finding growth states the step at which memory will run out. A longer run of the same script runs out within 2 %
// of that step. The statement does not count what the allocator rounds up and caches.
func TestExhaustionComesAsSaid(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	const script = `
import sys, torch
kept = []
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    kept.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
    optimizer.zero_grad()
    model(torch.randn(64, 256, device="cuda")).sum().backward()
    optimizer.step()
    print("step", step, flush=True)
`
	program := scriptFile(t, script)
	predict := func(steps string) (store, printed string) {
		store = t.TempDir()
		r := dpsight(t, t.TempDir(), "predict", "--steps", "all", "--gpu-memory", "256MiB", "--store", store, "--",
			python(t), program, steps)
		return store, r.stdout + r.stderr
	}
	store, _ := predict("24")
	f := findFinding(findingsOf(t, store)["train"], "growth")
	if f == nil || f.Growth == nil || f.Growth.Exhausted == nil {
		t.Fatalf("%+v", f)
	}
	_, printed := predict("400")
	last := strings.Count("\n"+printed, "\nstep ")
	if math.Abs(float64(*f.Growth.Exhausted)-float64(last)) > 0.02*float64(last) {
		t.Errorf("said to be full at step %d, and step %d is the one that fails", *f.Growth.Exhausted, last)
	}
}
