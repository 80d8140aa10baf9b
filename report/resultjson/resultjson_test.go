package resultjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/schemas/store"
)

func TestMain(m *testing.M) {
	code := m.Run()
	ingesttest.Remove()
	os.Exit(code)
}

// profile returns a profile of two iterations, like the profiler's own files in testdata.
func profile(method string) analyze.ComponentProfile {
	n := func(v int64) *int64 { return &v }
	ms := 24.5
	p := analyze.ComponentProfile{Identity: identity.Identity{RunID: "20261121T101500Z-" + method + "-aaaaaa",
		Name: method, Status: "ok", Source: "measured",
		Params: map[string]any{"method": method, "vocab_size": 1000.0, "hidden_dim": 512.0, "num_layers": 4.0,
			"num_heads": 8.0, "seq_len": 1024.0, "batch_size": 2.0}},
		MeanStepMS: &ms, PeakBytes: n(512 << 20), EndAllocated: n(128 << 20), EndReserved: n(256 << 20),
		HeldByHooks: n(64 << 20),
		Components: &analyze.Components{Parameters: 32 << 20, Gradients: 16 << 20, NormSamples: 816,
			OptimizerState: 64 << 20}}
	add := func(at analyze.Point, iteration int) {
		p.Points = append(p.Points, analyze.MemoryPoint{Point: at, Iteration: iteration, Allocated: n(100 << 20),
			Reserved: n(200 << 20), Highest: n(300 << 20), TimeNS: n(1795223003510865000)})
	}
	add(analyze.ModelLoaded, -1)
	if method != "vanilla" {
		add(analyze.WrappedWithDP, -1)
	}
	add(analyze.OptimizerCreated, -1)
	add(analyze.AfterWarmup, -1)
	for i := range 2 {
		for _, at := range []analyze.Point{analyze.BeforeForward, analyze.AfterForward, analyze.AfterBackward,
			analyze.AfterStep} {
			add(at, i)
		}
	}
	return p
}

func written(t *testing.T, p analyze.ComponentProfile) map[string]any {
	t.Helper()
	var b bytes.Buffer
	doc := New(p)
	if err := doc.Write(&b); err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// An exported file has every key of the profiler's own file, with a value of the same type, and the same names of
// snapshots.
func TestSameKeysAsTheProfiler(t *testing.T) {
	for _, method := range []string{"vanilla", "ghost"} {
		ours := written(t, profile(method))
		if _, ok := ours["dpsight"]; !ok {
			t.Error("it does not say how it is known")
		}
		delete(ours, "dpsight")
		same(t, method, ours, theirs(t, method))
	}
}

// theirs reads a file of two iterations that the profiler itself wrote.
func theirs(t *testing.T, method string) (d map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", method+"_result.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func same(t *testing.T, path string, ours, theirs any) {
	t.Helper()
	switch b := theirs.(type) {
	case map[string]any:
		a, ok := ours.(map[string]any)
		if !ok || !slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))) {
			t.Errorf("%s: %v, want the keys of %v", path, ours, theirs)
			return
		}
		for k := range b {
			if k == "name" && a[k] != b[k] {
				t.Errorf("%s: named %v, want %v", path, a[k], b[k])
			}
			same(t, path+"."+k, a[k], b[k])
		}
	case []any:
		a, ok := ours.([]any)
		if !ok || len(a) != len(b) {
			t.Errorf("%s: %v, want %d of them", path, ours, len(b))
			return
		}
		for i := range b {
			same(t, path, a[i], b[i])
		}
	case float64:
		if _, ok := ours.(float64); !ok {
			t.Errorf("%s: %v is no number", path, ours)
		}
	case string:
		if _, ok := ours.(string); !ok {
			t.Errorf("%s: %v is no string", path, ours)
		}
	}
}

// A notebook reads the exported files of recorded runs. The notebook takes the maximum and the sum of each key, rounds,
// sorts, and looks up snapshots by name.
func TestReadAsNotebooksDo(t *testing.T) {
	runs, damaged, err := store.Open(ingesttest.Store(t, filepath.Join("..", "..", "examples", "headline"))).Runs()
	if err != nil || len(damaged) > 0 {
		t.Fatal(damaged, err)
	}
	full := 0
	for _, r := range runs {
		tab, err := store.Load(r, analyze.SummaryTables)
		if err != nil {
			t.Fatal(err)
		}
		p := analyze.Profile(*tab)
		t.Run(p.Name, func(t *testing.T) {
			d := written(t, p)
			number := func(of any, key string) float64 {
				t.Helper()
				v, ok := of.(map[string]any)[key].(float64)
				if !ok {
					t.Fatalf("%s is no number in %v", key, of)
				}
				return v
			}
			snapshots := d["snapshots"].([]any)
			var names []string
			highest, before := map[string]float64{}, 0.0
			for _, s := range snapshots {
				names = append(names, s.(map[string]any)["name"].(string))
				for _, k := range []string{"allocated_mb", "reserved_mb", "max_allocated_mb"} {
					highest[k] = max(highest[k], math.Round(number(s, k)*100)/100)
				}
				if a, m, r := number(s, "allocated_mb"), number(s, "max_allocated_mb"),
					number(s, "reserved_mb"); a > m || a > r || a <= 0 {
					t.Errorf("%v", s)
				}
				if at := number(s, "timestamp"); at < before {
					t.Errorf("%v comes before its time", s)
				} else {
					before = at
				}
			}
			peak, breakdown := number(d, "peak_memory_mb"), d["breakdown"]
			if number(breakdown, "peak_allocated_mb") != peak || number(d, "avg_time_ms") <= 0 ||
				number(breakdown, "total_allocated_mb") > number(breakdown, "total_reserved_mb") {
				t.Errorf("%v", breakdown)
			}
			if tab.Manifest.Bare { // a bare run has only torch's counters at the ends of steps
				if len(names) != 1 || !strings.HasSuffix(names[0], "_after_warmup") ||
					breakdown.(map[string]any)["gradients_mb"] != nil {
					t.Errorf("snapshots %v, %v", names, breakdown)
				}
				return
			}
			full++
			recorded := float64(tab.Report.Devices[0].PeakAllocatedBytes) / (1 << 20)
			if rounded := math.Round(recorded*100) / 100; peak != recorded || highest["max_allocated_mb"] != rounded ||
				highest["allocated_mb"] > rounded || highest["reserved_mb"] < rounded {
				t.Errorf("peak %v, the highest of the snapshots %v, recorded %v", peak, highest, recorded)
			}
			sum := 0.0
			for _, k := range []string{"model_parameters_mb", "optimizer_states_mb", "gradients_mb",
				"activation_hooks_mb", "norm_samples_mb", "temp_matrices_mb"} {
				sum += number(breakdown, k)
			}
			if sum <= number(breakdown, "model_parameters_mb") || sum > peak {
				t.Errorf("components of %v MiB in a peak of %v", sum, peak)
			}
			like := "ghost"
			if p.Method() == "vanilla" {
				like = "vanilla"
			}
			if want := namesOf(t, like, int(p.Params["num_iter"].(float64))); !slices.Equal(
				slices.Sorted(slices.Values(names)), want) {
				t.Errorf("snapshots %v, want %v", names, want)
			}
		})
	}
	if full != 7 {
		t.Errorf("%d runs with events", full)
	}
}

// namesOf returns the sorted names of the snapshots in the profiler's own file, for the given number of iterations
// instead of two.
func namesOf(t *testing.T, method string, iterations int) (names []string) {
	t.Helper()
	for _, s := range theirs(t, method)["snapshots"].([]any) {
		name := s.(map[string]any)["name"].(string)
		switch {
		case !strings.Contains(name, "_iter"):
			names = append(names, name)
		case strings.Contains(name, "_iter0_"):
			for i := range iterations {
				names = append(names, strings.Replace(name, "_iter0_", fmt.Sprintf("_iter%d_", i), 1))
			}
		}
	}
	slices.Sort(names)
	return names
}

// If a run is recorded throughout, it has twice the requested iterations. If it is recorded for a while, its recording
// begins late. The exported file has only the requested iterations, numbered from 0, and leaves out an incomplete
// snapshot.
func TestSnapshotsAreWhole(t *testing.T) {
	p := profile("ghost")
	p.Params["num_iter"] = 1.0
	for i := range p.Points {
		at := &p.Points[i]
		if at.Iteration >= 0 {
			at.Iteration += 5
		}
		switch at.Point {
		case analyze.ModelLoaded:
			at.Allocated = nil
		case analyze.WrappedWithDP:
			later := *at.TimeNS + 1e9
			at.TimeNS = &later
		case analyze.AfterForward:
			at.Highest = nil
		case analyze.AfterBackward:
			at.Reserved = nil
		}
	}
	p.Points = append([]analyze.MemoryPoint{{Point: analyze.BeforeForward, Iteration: 0, TimeNS: p.Points[0].TimeNS}},
		p.Points...)
	var names []string
	for _, s := range written(t, p)["snapshots"].([]any) {
		names = append(names, s.(map[string]any)["name"].(string))
	}
	if got, want := strings.Join(names, " "), "2_optimizer_created 3_after_warmup 4_iter0_before_forward "+
		"7_iter0_after_step 1_wrapped_with_dp"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestWhatIsNotKnownIsNull(t *testing.T) {
	d := written(t, analyze.ComponentProfile{Identity: identity.Identity{RunID: "r", Source: "predicted", Status: "ok"},
		Points: []analyze.MemoryPoint{{Point: analyze.ModelLoaded, Iteration: -1}}})
	var walk func(path string, v any)
	seen := 0
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				walk(path+"."+k, inner)
			}
		case []any:
			for _, inner := range v {
				walk(path, inner)
			}
		case nil:
			seen++
		case float64:
			t.Errorf("%s is %v, and nothing said so", path, v)
		}
	}
	walk("document", d)
	if seen < 17 || d["experiment"] != "r" {
		t.Errorf("%d nulls in %v", seen, d)
	}
	if s, ok := d["snapshots"].([]any); !ok || len(s) > 0 {
		t.Errorf("snapshots of which nothing is known: %v", d["snapshots"])
	}
	if p := d["dpsight"].(map[string]any); p["source"] != "predicted" {
		t.Errorf("a prediction passes for a measurement: %v", p)
	}
}

func TestFileNames(t *testing.T) {
	named := func(id, name, method string) analyze.ComponentProfile {
		return analyze.ComponentProfile{Identity: identity.Identity{RunID: id, Name: name,
			Params: map[string]any{"method": method}}}
	}
	got := FileNames([]analyze.ComponentProfile{named("1", "vanilla", "vanilla"), named("2", "flash", "flash"),
		named("3", "my flash", "flash"), named("4", "twice", ""),
		named("5", "Twice", ""), named("6", "", ""), named("7", "../up", ""), named("8", "a/b:c", ""),
		named("9", "..", "")})
	want := "vanilla flash_clip my flash 4 5 6 .._up a_b_c run"
	if text := strings.ReplaceAll(strings.Join(got, " "), "_result.json", ""); text != want {
		t.Errorf("%s, want %s", text, want)
	}
}
