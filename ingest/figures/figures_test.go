package figures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// read reads a file of testdata with the function that ingest uses.
func read(t *testing.T, name string, kind Kind) []Run {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if got := KindOf(b[:min(len(b), Head)]); got != kind {
		t.Fatalf("%s is taken for %q, not %q", name, got, kind)
	}
	runs, err := Read(kind, bytes.NewReader(b), name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return runs
}

func phase(t *testing.T, d *Device, name string, step int64) *Phase {
	t.Helper()
	for i := range d.Phases {
		if p := &d.Phases[i]; p.Name == name && p.Step == step {
			return p
		}
	}
	t.Fatalf("no phase %s of step %d in %+v", name, step, d.Phases)
	return nil
}

// noted reports whether one of the run's notes contains the text.
func noted(run *Run, text string) bool {
	return slices.ContainsFunc(run.Notes, func(n string) bool { return strings.Contains(n, text) })
}

func is(b *int64, mibs float64) bool { return b != nil && *b == int64(mibs*mib) }

// The figures of a run equal the figures in the file to the byte. Two peaks stay unknown, since the file's counters do
// not show them: the peak of a phase that did not raise the highest value, and the peak of the warm-up before the
// profiler reset the counter.
func TestComponents(t *testing.T) {
	run := read(t, "ghost_result.json", schemas.ImportComponents)[0]
	d := &run.Devices[0]
	if run.Name != "ghost" || run.Params["method"] != "norm_only" || run.Params["experiment"] != "ghost" ||
		run.Params["seq_len"] != 1024.0 || run.StartNS != 1795222994334731776 || !is(d.Peak, 529.90966796875) ||
		d.PeakReserved != nil || !noted(&run, "norm pass only, not private") || noted(&run, "impossible") {
		t.Errorf("%+v", run)
	}
	if len(d.Steps) != 2 || *d.Steps[0].GPUNS != 34824816 || *d.Steps[1].GPUNS != 34824816 ||
		d.Steps[0].Samples != 2 || d.Steps[0].Tokens != 2048 || !is(d.Steps[0].Peak, 529.90966796875) ||
		d.Steps[1].Peak != nil || !is(d.Steps[1].Begin.Allocated, 289.291015625) ||
		!is(d.Steps[1].End.Allocated, 289.337890625) || d.Steps[1].StartNS != d.Steps[0].EndNS {
		t.Errorf("steps %+v", d.Steps)
	}
	back := phase(t, d, schemas.PhaseBackward, 0)
	if !is(back.Peak, 529.90966796875) || !is(back.Begin.Allocated, 493.72119140625) || !is(back.End.Reserved, 592) {
		t.Errorf("backward %+v", back)
	}
	if p := phase(t, d, schemas.PhaseBackward, 1); p.Peak != nil {
		t.Errorf("the highest did not rise, and the phase has the peak %d", *p.Peak)
	}
	if p := phase(t, d, phaseWarmup, -1); p.Peak != nil {
		t.Errorf("the warm-up has the peak %d", *p.Peak)
	}
	vanilla := read(t, "vanilla_result.json", schemas.ImportComponents)[0]
	if vanilla.Params["method"] != "vanilla" || noted(&vanilla, "private") || len(vanilla.Devices[0].Steps) != 2 {
		t.Errorf("%+v", vanilla)
	}
}

// If the file says that a component is larger than the peak, a note says that this is impossible.
func TestImpossibleComponent(t *testing.T) {
	run := read(t, "flash_clip_result.json", schemas.ImportComponents)[0]
	if !noted(&run, "impossible: the file has 84,864.75 MiB for activation_hooks, more than its peak of 56,816.12 MiB") {
		t.Errorf("%q", run.Notes)
	}
}

// The test's file has its keys in sorted order, as some scripts write them. Like older files, it has no highest values.
func TestComponentsOfOlderFiles(t *testing.T) {
	text := `{"avg_time_ms": null, "breakdown": {}, "config": {"batch_size": 1, "odd": {"a": 1}}, "experiment": "bk",
		"snapshots": [{"allocated_mb": 1, "name": "after_load", "reserved_mb": 2, "timestamp": 5},
		{"allocated_mb": 3, "name": "mine", "reserved_mb": 4, "timestamp": 6.5},
		{"allocated_mb": -3, "name": "4_iter0_before_forward", "timestamp": 7}]}`
	if k := KindOf([]byte(text)); k != schemas.ImportComponents {
		t.Fatalf("it is taken for %q", k)
	}
	runs, err := Read(schemas.ImportComponents, strings.NewReader(text), "x.json")
	if err != nil {
		t.Fatal(err)
	}
	d := runs[0].Devices[0]
	if d.Peak != nil || len(d.Steps) != 0 || runs[0].Params["odd"] != nil || runs[0].Params["method"] != "bk" {
		t.Errorf("%+v", runs[0])
	}
	if p := phase(t, &d, "mine", -1); p.Peak != nil || !is(p.Begin.Reserved, 2) || !is(p.End.Allocated, 3) ||
		p.EndNS-p.StartNS != 1.5e9 {
		t.Errorf("%+v", p)
	}
	if p := phase(t, &d, schemas.PhaseBetween, 0); p.End.Allocated != nil {
		t.Errorf("memory below nothing is believed: %+v", p)
	}
}

// Read does not take a file that dpsight itself exported for an experiment that only computes norms.
func TestExported(t *testing.T) {
	text := `{"experiment": "ghost", "peak_memory_mb": 5, "dpsight": {"run_id": "20261121T010314Z-ghost-a50208"}}`
	runs, err := Read(KindOf([]byte(text)), strings.NewReader(text), "ghost_result.json")
	if err != nil || runs[0].Params["method"] != "ghost" || !noted(&runs[0], "20261121T010314Z-ghost-a50208") {
		t.Errorf("%+v, %v", runs, err)
	}
}

// The stages in the file of a sweep may be nested. The time between two memory snapshots belongs to the innermost
// stage.
func TestSweep(t *testing.T) {
	runs := read(t, "memory_profile_results.json", schemas.ImportSweep)
	if len(runs) != 2 || runs[0].Name != "memory_profile_results_seq128_bs8_phys2" ||
		runs[1].Name != "memory_profile_results_seq128_bs8_phys2_lora8" || runs[0].Params["lora_rank"] != nil ||
		runs[1].Params["lora_rank"] != 8.0 || runs[1].Params["physical_batch_size"] != 2.0 {
		t.Fatalf("%+v", runs)
	}
	d := &runs[0].Devices[0]
	if !is(d.Peak, 640) || !is(d.PeakReserved, 700) || len(d.Steps) != 1 || !is(d.Steps[0].Peak, 640) ||
		d.Steps[0].EndNS-d.Steps[0].StartNS != 875e6 {
		t.Errorf("%+v", d)
	}
	if p := phase(t, d, schemas.PhaseBackward, 0); !is(p.Peak, 640) || !is(p.End.Allocated, 500) {
		t.Errorf("%+v", p)
	}
	if p := phase(t, d, schemas.PhaseOptimizer, 0); p.Peak != nil {
		t.Errorf("%+v", p)
	}
	detailed := read(t, "detailed_memory_results.json", schemas.ImportSweep)[0]
	if !noted(&detailed, "750.00 MiB for component attention, more than its peak of 640.00 MiB") ||
		!noted(&detailed, "activation_estimate") || noted(&detailed, "gradient_estimate") ||
		!is(phase(t, &detailed.Devices[0], schemas.PhaseSetupModel, -1).End.Allocated, 100) {
		t.Errorf("%+v", detailed)
	}
	table := read(t, "memory_profile_summary.csv", schemas.ImportSweepTable)
	if len(table) != 2 || !is(table[0].Devices[0].Peak, 640) || table[1].Params["lora"] != true ||
		table[1].Params["seq_len"] != 128.0 {
		t.Errorf("%+v", table)
	}
}

func TestStages(t *testing.T) {
	run := read(t, "stages.json", schemas.ImportStages)[0]
	d := &run.Devices[0]
	if !is(d.Peak, 210.125) || !is(phase(t, d, schemas.PhaseForward, 0).Peak, 95.75) ||
		!is(phase(t, d, schemas.PhaseSetupPrivacy, -1).Begin.Allocated, 50.5) {
		t.Errorf("%+v", d)
	}
}

func TestTrainerLogs(t *testing.T) {
	run := read(t, "DPSGDTrainer_bs4_seq512.log", schemas.ImportTrainerLog)[0]
	d := &run.Devices[0]
	if run.Name != "DPSGDTrainer_bs4_seq512" || run.Status != schemas.StatusOK || run.Params["method"] != "dpsgd" ||
		run.Params["preset"] != "1b" || run.Params["batch_size"] != 4.0 || run.Params["model_parameters"] != 1339123712.0 ||
		d.Peak == nil || *d.Peak != 45101036339 || !noted(&run, "rounded to 0.1 MiB") {
		t.Errorf("%+v", run)
	}
	if p := phase(t, d, "training", -1); p.Peak == nil || *p.Peak != *d.Peak {
		t.Errorf("%+v", p)
	}
	failed := read(t, "DPGhostClippingTrainer_bs4_seq512.log", schemas.ImportTrainerLog)[0]
	if failed.Status != schemas.StatusOOM || !strings.HasPrefix(failed.Reason, "OutOfMemoryError: CUDA out of memory") {
		t.Errorf("%+v", failed)
	}
	cut := "Trainer: StandardTrainer, Batch Size: 4, Seq Length: 512, Model: tiny\n" +
		"Initial Memory Usage:\n  System RSS: 8.0 MB\n"
	runs, err := Read(KindOf([]byte(cut)), strings.NewReader(cut), "cut.log")
	if err != nil || runs[0].Status != schemas.StatusPartial || runs[0].Devices[0].Peak != nil ||
		!noted(&runs[0], "does not say how the run ended") || !noted(&runs[0], "no figures of a GPU") {
		t.Errorf("%+v, %v", runs, err)
	}
	all := read(t, "results.json", schemas.ImportTrainerSummary)
	if len(all) != 2 || all[0].Devices[0].Peak != nil || all[1].Status != schemas.StatusFailed ||
		!noted(&all[0], "ingest the logs") || all[0].Params["method"] != "dpsgd" {
		t.Errorf("%+v", all)
	}
}

// The work of a GPU belongs to the phase whose call launched the kernels, and overlapping kernels count once. Memory is
// known at each moment while the profiler is on.
func TestTrace(t *testing.T) {
	run := read(t, "gpu.pt.trace.json", schemas.ImportTrace)[0]
	d := &run.Devices[0]
	if run.Name != "gpu" || run.GPU != "NVIDIA H100 80GB HBM3" || d.Rank != 1 || run.Params["world_size"] != 2.0 ||
		!is(d.Peak, 15) || !is(d.PeakReserved, 24) || run.StartNS != 1790857026001000000 || len(d.Steps) != 2 ||
		d.Steps[1].Number != 2 || d.Steps[1].EndNS-d.Steps[1].StartNS != 1e6 || d.Steps[0].GPUNS != nil {
		t.Errorf("%+v", run)
	}
	if !noted(&run, "device 0 computed for 0.720 ms and was idle for 1.000 ms between: before work of backward 0.400 ms, "+
		"forward 0.400 ms, optimizer 0.200 ms") {
		t.Errorf("%q", run.Notes)
	}
	for _, want := range []struct {
		phase           string
		wall, gpu       int64
		begin, end, top float64
	}{{schemas.PhaseForward, 400e3, 100e3, 10, 11, 11}, {schemas.PhaseBackward, 200e3, 200e3, 11, 15, 15},
		{schemas.PhaseOptimizer, 100e3, 60e3, 10, 10, 10}} {
		for step := int64(1); step <= 2; step++ {
			p := phase(t, d, want.phase, step)
			if p.EndNS-p.StartNS != want.wall || *p.GPUNS != want.gpu || !is(p.Begin.Allocated, want.begin) ||
				!is(p.End.Allocated, want.end) || !is(p.Peak, want.top) {
				t.Errorf("%+v", p)
			}
		}
	}
}

// The innermost annotations name the phases. If annotations overlap without being nested, the resulting phases cover
// the same time and do not overlap.
func TestCut(t *testing.T) {
	got := cut(span{"", 0, 100}, []span{{"a", 10, 60}, {"b", 20, 30}, {"c", 50, 80}, {"c", 80, 90}})
	want := []span{{schemas.PhaseBetween, 0, 10}, {"a", 10, 20}, {"b", 20, 30}, {"a", 30, 50}, {"c", 50, 90},
		{schemas.PhaseBetween, 90, 100}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// An annotation around steps names the parts of the steps that nothing else names. An annotation within a step names
// the part that it covers.
func TestAnnotations(t *testing.T) {
	tr := trace{backward: []span{{"", 50, 60}}}
	step := span{"", 20, 100}
	got := cut(step, tr.covering(step, []span{{"train", 0, 200}, {"loss", 40, 50}}))
	want := []span{{schemas.PhaseForward, 20, 40}, {"loss", 40, 50}, {schemas.PhaseBackward, 50, 60}, {"train", 60, 100}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// If gradients are accumulated, a step has several backward passes, with forward passes between them.
func TestAccumulation(t *testing.T) {
	const op = `{"ph": "X", "cat": "cpu_op", "name": "%s", "ts": %d, "dur": %d, "pid": 1, "tid": %d},`
	// the backward pass runs on the step's thread, as on a CPU, or on a separate thread
	for engine := 1; engine <= 2; engine++ {
		text := "[" + fmt.Sprintf(op, "aten::mm", 12, 2, 1)
		for _, begin := range []int{20, 24, 60, 66} {
			text += fmt.Sprintf(op, "autograd::engine::evaluate_function: MmBackward0", begin, 4, engine) +
				fmt.Sprintf(op, "aten::mm", begin+1, 1, engine)
		}
		// the third thread does not belong to the step
		text += fmt.Sprintf(op, "aten::mm", 40, 5, 1) + fmt.Sprintf(op, "aten::mm", 65, 1, 3) +
			`{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "ts": 10, "dur": 90, "pid": 1, "tid": 1}]`
		runs, err := Read(schemas.ImportTrace, strings.NewReader(text), "x.json")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range runs[0].Devices[0].Phases {
			got = append(got, fmt.Sprintf("%s %d-%d", p.Name, p.StartNS/1000, p.EndNS/1000))
		}
		want := []string{"forward 10-20", "backward 20-28", "forward 28-60", "backward 60-70", "between 70-100"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// An import keeps a limited number of a trace's events. An import keeps nothing of fields that it does not read, even
// if they are large.
func TestLargeTraces(t *testing.T) {
	event := `{"ph": "X", "cat": "kernel", "name": "k", "ts": 5, "dur": 2, "pid": 1, "tid": 1}`
	tr := &trace{kept: maxKept - 1}
	if err := tr.read(json.NewDecoder(strings.NewReader("[" + event + `, {"cat": "blink", "ts": 1}]`))); err != nil {
		t.Error(err)
	}
	if err := tr.read(json.NewDecoder(strings.NewReader("[" + event + "]"))); err == nil ||
		!strings.Contains(err.Error(), "trace fewer steps") {
		t.Errorf("beyond the bound: %v", err)
	}
	text := `{"stackFrames": {"1": [{"a": [[], {}, 5, "]}"]}]}, "traceEvents": [` + event + `], "empty": {}}`
	if runs, err := Read(schemas.ImportTrace, strings.NewReader(text), "x.json"); err != nil || len(runs) != 1 {
		t.Errorf("%+v, %v", runs, err)
	}
	if _, err := Read(schemas.ImportTrace, strings.NewReader(text[:len(text)-3]), "x.json"); err == nil {
		t.Error("a trace that is cut is no error")
	}
}

// A file of any kind may begin with a byte order mark.
func TestByteOrderMark(t *testing.T) {
	names, err := filepath.Glob("testdata/*.*")
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		kind := KindOf(b[:min(len(b), Head)])
		want, err := Read(kind, bytes.NewReader(b), "x")
		if err != nil {
			t.Fatal(name, err)
		}
		marked := append([]byte(byteOrderMark), b...)
		if got := KindOf(marked[:min(len(marked), Head)]); got != kind {
			t.Errorf("%s is taken for %q, not %q", name, got, kind)
		}
		if got, err := Read(kind, bytes.NewReader(marked), "x"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// If a file is too long, Read returns an error. Read does not quietly stop after a part of the file.
func TestLongFiles(t *testing.T) {
	const log = "Trainer: StandardTrainer, Batch Size: 4, Seq Length: 512, Model: tiny\n"
	more := strings.Repeat(strings.Repeat("-", 1<<19)+"\n", maxDocument>>19)
	for kind, begin := range map[Kind]string{schemas.ImportTrainerLog: log, schemas.ImportSweepTable: peakColumn + "\n"} {
		r := strings.NewReader(begin + more)
		if runs, err := Read(kind, r, "long"); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
			t.Errorf("%s: %d runs, %v", kind, len(runs), err)
		}
	}
}

// A trace without a GPU still has steps and phases. Read refuses a trace without useful events.
func TestTracesOfLess(t *testing.T) {
	text := `[{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "ts": 5, "dur": 2, "pid": 1, "tid": 1},
		{"ph": "X", "cat": "kernel", "name": "k", "ts": "soon", "dur": 2, "pid": 1, "tid": 1}]`
	runs, err := Read(KindOf([]byte(text)), strings.NewReader(text), "x.json")
	if err != nil || runs[0].Devices[0].Peak != nil || runs[0].Devices[0].Steps[0].Number != 7 || runs[0].StartNS != 0 ||
		!noted(&runs[0], "no GPU") || !noted(&runs[0], "1 part of the trace is not as torch writes it") {
		t.Errorf("%+v, %v", runs, err)
	}
	for _, text := range []string{`{"traceEvents": []}`, `{"traceEvents": 5}`, `{"traceEvents": [`,
		`{"traceEvents": [{"ph": "X", "cat": "blink", "ts": 1}]}`} {
		if runs, err := Read(schemas.ImportTrace, strings.NewReader(text), "x.json"); err == nil {
			t.Errorf("%s: %+v", text, runs)
		}
	}
}

func TestMemoryTimelines(t *testing.T) {
	for _, name := range []string{"mt.raw.json", "mt.json"} {
		run := read(t, name, schemas.ImportMemoryTimeline)[0]
		d := &run.Devices[0]
		if p := phase(t, d, "profiled", -1); run.Name != "mt" || *d.Peak != 20736 || *p.Begin.Allocated != 16640 ||
			*p.End.Allocated != 16640 || p.EndNS-p.StartNS < 965000 || p.EndNS-p.StartNS > 966000 {
			t.Errorf("%s: %+v, %+v", name, d, p)
		}
	}
	for _, text := range []string{"[[1795801622111, 1]", "[[1795801622111, 1795801622112], [[1]]]",
		"[[1795801622111, 1, 5, 2], [3]]"} {
		if runs, err := Read(schemas.ImportMemoryTimeline, strings.NewReader(text), "x"); err == nil {
			t.Errorf("%s: %+v", text, runs)
		}
	}
}

// KindOf returns None for documents that no supported tool wrote.
func TestKindsOfOthers(t *testing.T) {
	for _, text := range []string{"", "{", "[", "[]", "[1, 2]", `{"schema": "dpsight.baseline/2", "experiments": []}`,
		`{"experiment": 5}`, "a,b\n1,2\n", "Loading model\nstep 1\n", `[{"stage": 1}]`, "\x80\x04}q", "[[", `[{"a"`} {
		if k := KindOf([]byte(text)); k != None {
			t.Errorf("%q is taken for %s", text, k)
		}
	}
	if _, err := Read(schemas.ImportSweep, strings.NewReader("[]"), "x"); err == nil {
		t.Error("a file without a run is no error")
	}
	if _, err := Read(None, strings.NewReader("{}"), "x"); err == nil {
		t.Error("a file of no kind is no error")
	}
}

// For any file, the reader of each kind neither panics nor returns impossible figures.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		kinds := []Kind{KindOf(b[:min(len(b), Head)])}
		for _, form := range formats {
			kinds = append(kinds, form.kind)
		}
		for _, kind := range kinds {
			runs, err := Read(kind, bytes.NewReader(b), "file.json")
			if err == nil {
				sound(t, runs)
			}
		}
	})
}

// sound checks that each figure is absent or possible, and that times are in order.
func sound(t *testing.T, runs []Run) {
	amount := func(all ...*int64) {
		for _, b := range all {
			if b != nil && (*b < 0 || *b > most) {
				t.Fatalf("%d bytes", *b)
			}
		}
	}
	stretch := func(startNS, endNS int64, gpuNS *int64, begin, end Memory, peak *int64) {
		amount(begin.Allocated, begin.Reserved, end.Allocated, end.Reserved, peak)
		if startNS < 0 || endNS < startNS || gpuNS != nil && *gpuNS < 0 {
			t.Fatalf("from %d to %d, %v", startNS, endNS, gpuNS)
		}
	}
	names := map[string]bool{}
	for i := range runs {
		run := &runs[i]
		if run.Status == "" || len(run.Devices) == 0 || run.StartNS < 0 || run.EndNS < run.StartNS || names[run.Name] {
			t.Fatalf("%+v", *run)
		}
		names[run.Name] = true
		for k := range run.Devices {
			d := &run.Devices[k]
			if d.Rank < 0 || d.Device < 0 {
				t.Fatalf("rank %d, device %d", d.Rank, d.Device)
			}
			amount(d.Peak, d.PeakReserved)
			for _, s := range d.Steps {
				stretch(s.StartNS, s.EndNS, s.GPUNS, s.Begin, s.End, s.Peak)
				if s.Number < 0 && len(d.Steps) > 1 || s.Samples < 0 || s.Tokens < 0 {
					t.Fatalf("%+v", s)
				}
			}
			for _, p := range d.Phases {
				stretch(p.StartNS, p.EndNS, p.GPUNS, p.Begin, p.End, p.Peak)
				if p.Step < -1 {
					t.Fatalf("%+v", p)
				}
			}
		}
	}
}

// Read accepts a trace of any size. Read refuses a document with a single value that is too large, since the decoder
// buffers a value as a whole.
func TestValuesAreBounded(t *testing.T) {
	head := `{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "`
	endless := io.MultiReader(strings.NewReader(head), &repeated{text: strings.Repeat("a", 4096)})
	if _, err := Read(schemas.ImportTrace, endless, "t.json"); err == nil || !strings.Contains(err.Error(), "value of") {
		t.Errorf("an endless name: %v", err)
	}
	endless = io.MultiReader(strings.NewReader("[[1,"), &repeated{text: strings.Repeat("1,", 4096)})
	if _, err := Read(schemas.ImportMemoryTimeline, endless, "t.json"); err == nil ||
		!strings.Contains(err.Error(), "times") {
		t.Errorf("an endless list: %v", err)
	}
	for kind, head := range map[Kind]string{schemas.ImportTrace: `{"schemaVersion": 1, "notes": [`,
		schemas.ImportMemoryTimeline: "[[1,"} {
		deep := io.MultiReader(strings.NewReader(head), &repeated{text: strings.Repeat("[", 4096)})
		if _, err := Read(kind, deep, "t.json"); err == nil || !strings.Contains(err.Error(), "at byte") {
			t.Errorf("%s: lists within lists: %v", kind, err)
		}
	}
	rows := io.MultiReader(strings.NewReader("[[1,2],["), &repeated{text: strings.Repeat("[],", 4096)})
	if _, err := Read(schemas.ImportMemoryTimeline, rows, "t.json"); err == nil ||
		!strings.Contains(err.Error(), "2 times and more sizes") {
		t.Errorf("more sizes than times: %v", err)
	}
	note := `{"a": "` + strings.Repeat("a", 4086) + `"},`
	many := io.MultiReader(strings.NewReader(`{"schemaVersion": 1, "notes": [`), // the import skips these notes
		io.LimitReader(&repeated{text: note}, int64(len(note))<<15), strings.NewReader(`1]}`))
	if _, err := Read(schemas.ImportTrace, many, "t.json"); err == nil || !strings.Contains(err.Error(), "no steps") {
		t.Errorf("many small values: %v", err)
	}
}

// repeated is an endless reader that repeats a text.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}
