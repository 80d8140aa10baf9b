package livetest_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// Nearly every byte at the peak has a line, also for requests in functions, generators, comprehensions, custom
// functions, recomputation and behind exceptions. Bytes that backward requests have the line of the forward call that
// they belong to. Recording changes neither the script's memory nor a trace function that the script has set.
func TestLines(t *testing.T) {
	python := testkit.Python(t)
	takeSlot(t)
	path := script(t, "lines.py")
	with := record(t, environment(), python, path)
	without := recordAs(t, environment(), func(e *collect.Experiment) { e.NoLines = true }, python, path)
	traced := record(t, environment(), python, path, "traced")
	for _, r := range []*recorded{with, without, traced} {
		if r.manifest.Status != schemas.StatusOK {
			t.Fatalf("status %s (%s)", r.manifest.Status, r.manifest.Reason)
		}
		expectConserved(t, r.dir, r.report)
		if got, want := r.report.Devices[0].PeakAllocatedBytes, with.report.Devices[0].PeakAllocatedBytes; got != want {
			t.Errorf("the peak is %d, with lines %d", got, want)
		}
	}
	if lost := strings.Contains(strings.Join(traced.report.Warnings, "\n"), "from some moment on the lines of the "+
		"script are not known: a debugger or another tracer"); lost != before312(t, python) {
		t.Errorf("warnings %q", traced.report.Warnings)
	}
	byLine := func(r *recorded) *grouping.DeviceBy {
		by, err := grouping.BreakdownBy(tables(t, r.dir), memory.At{},
			grouping.By{Dimensions: []grouping.Dimension{grouping.DimensionLine, grouping.DimensionPhase}})
		if err != nil {
			t.Fatal(err)
		}
		return &by.Devices[0]
	}
	d := byLine(with)
	if unknown := d.UnknownBytes[grouping.DimensionLine]; unknown*20 > d.AllocatedBytes {
		t.Errorf("the line of %d of %d bytes is not known", unknown, d.AllocatedBytes)
	}
	sources := map[string]int64{}
	backward := int64(0)
	for _, row := range d.Rows {
		if row.Key == nil {
			continue
		}
		if !strings.Contains(*row.Key, "lines.py:") {
			t.Errorf("a line of another file: %s", *row.Key)
		}
		sources[row.Source] += row.Bytes
		for _, within := range row.Rows {
			if within.Key != nil && *within.Key == schemas.PhaseBackward && !strings.Contains(row.Source, "backward()") {
				backward += within.Bytes
			}
		}
	}
	for source, bytes := range map[string]int64{ // bytes of the line's request; the rest of a segment may be slack
		`kept.append(torch.ones(5 << 18, device="cuda"))  # 5 MiB`: 5 << 20,
		"return x * 2":        2 << 20,
		"yield x[i::2] * 3.0": 2 << 20,
		"y = y * 1.5":         2 << 20,
		"x = torch.randn(1024, 512, device=\"cuda\")": 2 << 20,
	} {
		if slack := sources[source] - bytes; slack < 0 || slack > 1<<20 {
			t.Errorf("%q has %d bytes, not %d and slack, of %v", source, sources[source], bytes, sources)
		}
	}
	if backward < 16<<20 {
		t.Errorf("only %d bytes of backward have the line of their forward call", backward)
	}
	if none := byLine(without); none.UnknownBytes[grouping.DimensionLine] != none.AllocatedBytes {
		t.Errorf("without lines some are known: %s", fmt.Sprint(none.Rows))
	}
}

// before312 reports whether the interpreter has no sys.monitoring. With sys.monitoring, the agent knows lines even if
// the script sets a tracer.
func before312(t *testing.T, python string) bool {
	t.Helper()
	out, err := exec.Command(python, "-c", "import sys; print(hasattr(sys, 'monitoring'))").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out)) == "False"
}

// The agent stops following lines that a loop on the host reaches again and again. No request of another line gets
// such a line. A request of such a line has either no line or the right one.
func TestLinesBesideHostLoops(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	takeSlot(t)
	r := record(t, environment(), python, script(t, "hostloop.py"))
	expectConserved(t, r.dir, r.report)
	by, err := grouping.BreakdownBy(tables(t, r.dir), memory.At{},
		grouping.By{Dimensions: []grouping.Dimension{grouping.DimensionLine}})
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]int64{}
	for _, row := range by.Devices[0].Rows {
		if row.Key != nil {
			sources[row.Source] += row.Bytes
		}
	}
	if bytes := sources[`cache.append(torch.empty(8 << 20, device="cuda"))`]; bytes != 8*32<<20 {
		t.Errorf("cache.append asked for %d bytes: %v", bytes, sources)
	}
	for source := range sources {
		if !strings.Contains(source, "torch.empty") {
			t.Errorf("%q asks for no memory", source)
		}
	}
}

// ofPeak lists the least percentages of the peak that categories must have, by script. The scripts come from public
// reports of memory problems, and the percentages follow from the report and the script.
var ofPeak = map[string]map[schemas.Category]float64{
	"case01.py":          {schemas.Activations: 95},                           // of the retained graph
	"case04.py":          {schemas.AutocastCache: 31, schemas.Parameters: 63}, // casts of half the weights' size
	"case08.py":          {schemas.Activations: 70, schemas.Script: 18},       // earlier iterations' graphs; the data
	"case09.py":          {schemas.Script: 70},                                // whole results, kept by views
	"case11.py":          {schemas.Activations: 45, schemas.Script: 45},       // graphs that save their leaf's gradient
	"case16.py":          {schemas.Activations: 6, schemas.Workspace: 80},     // of graphs that no backward frees
	"eval_inputs.py":     {schemas.Inputs: 79},                                // batches of an evaluation after an epoch
	"eval_first.py":      {schemas.Workspace: 60, schemas.Inputs: 15},         // made by a matrix product before training
	"late_workspace.py":  {schemas.Workspace: 87},                             // cuBLAS is first used in the third step
	"init_step.py":       {schemas.Workspace: 60, schemas.OptimizerState: 15}, // after a step of zero gradients
	"per_sample_func.py": {schemas.PerSampleGradients: 11},                    // made by vmap of grad
	"jit_trace.py":       {schemas.Workspace: 95},                             // made while a model is traced
	"feature_bank.py":    {schemas.Script: 55, schemas.Activations: 15},       // features without their graphs
}

// expectKnown checks the breakdown of a peak: at most 3 % of the bytes are other or untraced, at most 10 % are known
// only by their phase, and the categories have at least the given percentages.
func expectKnown(t *testing.T, d *memory.DeviceBreakdown, least map[schemas.Category]float64) {
	t.Helper()
	percent := func(bytes int64) float64 { return 100 * float64(bytes) / float64(d.AllocatedBytes) }
	var nobodys, byPhase int64
	of := map[schemas.Category]int64{}
	for _, c := range d.Categories {
		of[c.Category] = c.Bytes
		byPhase += c.PhaseOnlyBytes
		if c.Category == schemas.Other || c.Category == schemas.Untraced {
			nobodys += c.Bytes
		}
	}
	if p := percent(nobodys); p > 3 {
		t.Errorf("%s: %.1f %% of the peak are other or untraced", d.Device, p)
	}
	if p := percent(byPhase); p > 10 {
		t.Errorf("%s: %.1f %% of the peak are known by their phase only", d.Device, p)
	}
	for c, p := range least {
		if got := percent(of[c]); got < p {
			t.Errorf("%s: %s has %.1f %% of the peak, and at least %.0f are right", d.Device, c, got, p)
		}
	}
}

// In scripts from public reports and from examples/scripts, nearly every byte at the peak has an owner and a line.
func TestScriptsAreKnown(t *testing.T) {
	python := testkit.Python(t)
	cases, err := filepath.Glob(filepath.Join("testdata", "cases", "*.py"))
	if err != nil || len(cases) < 20 {
		t.Fatalf("%q, %v", cases, err)
	}
	cases = slices.DeleteFunc(cases, func(path string) bool { return filepath.Base(path) == "host_modules.py" })
	for _, name := range []string{"gan.py", "oom.py"} { // all others need more than torch
		cases = append(cases, filepath.Join("..", "..", "examples", "scripts", name))
	}
	always := []string{"case04.py", "per_sample_func.py"}
	for _, path := range cases {
		t.Run(filepath.Base(path), func(t *testing.T) {
			testkit.Part(t, !slices.Contains(always, filepath.Base(path)))
			t.Parallel()
			takeSlot(t)
			whole, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			command := []string{python, whole}
			if filepath.Base(path) == "oom.py" {
				command = append(command, "recover")
			}
			r := recordAs(t, environment(), func(e *collect.Experiment) {
				e.LikeAGPU = false
				if filepath.Base(path) == "long_loop.py" {
					e.Steps = "2"
				}
			}, command...)
			in := tables(t, r.dir)
			by, err := grouping.BreakdownBy(in, memory.At{},
				grouping.By{Dimensions: []grouping.Dimension{grouping.DimensionLine}})
			if err != nil {
				t.Fatal(err)
			}
			for i := range by.Devices {
				d := &by.Devices[i]
				if unknown := d.UnknownBytes[grouping.DimensionLine]; unknown*20 > d.AllocatedBytes {
					t.Errorf("%s: the line of %d of %d bytes is not known", d.Device, unknown, d.AllocatedBytes)
				}
			}
			if r.manifest.Status != schemas.StatusOK { // a script that needs two devices fails early
				return
			}
			breakdown, err := memory.Breakdown(in, memory.At{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range breakdown.Devices {
				expectKnown(t, &breakdown.Devices[i], ofPeak[filepath.Base(path)])
			}
		})
	}
}
