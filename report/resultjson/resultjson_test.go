package resultjson

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
)

// profile has two iterations, as the profiler's own files in testdata.
func profile(method string) analyze.ComponentProfile {
	n := func(v int64) *int64 { return &v }
	ms := 24.5
	p := analyze.ComponentProfile{Identity: analyze.Identity{RunID: "20261121T101500Z-" + method + "-aaaaaa", Name: method, Status: "ok", Source: "measured",
		Params: map[string]any{"method": method, "vocab_size": 1000.0, "hidden_dim": 512.0, "num_layers": 4.0, "num_heads": 8.0, "seq_len": 1024.0, "batch_size": 2.0}},
		MeanStepMS: &ms, PeakBytes: n(512 << 20), EndAllocated: n(128 << 20), EndReserved: n(256 << 20), HeldByHooks: n(64 << 20),
		Components: &analyze.Components{Parameters: 32 << 20, Gradients: 16 << 20, NormSamples: 816, OptimizerState: 64 << 20}}
	add := func(at analyze.Point, iteration int) {
		p.Points = append(p.Points, analyze.MemoryPoint{Point: at, Iteration: iteration, Allocated: n(100 << 20), Reserved: n(200 << 20), Highest: n(300 << 20), TimeNS: n(1795223003510865000)})
	}
	add(analyze.ModelLoaded, -1)
	if method != "vanilla" {
		add(analyze.WrappedWithDP, -1)
	}
	add(analyze.OptimizerCreated, -1)
	add(analyze.AfterWarmup, -1)
	for i := range 2 {
		for _, at := range []analyze.Point{analyze.BeforeForward, analyze.AfterForward, analyze.AfterBackward, analyze.AfterStep} {
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

// An export has every key that the profiler's own file has, each of the same type, and the same snapshots by name.
func TestSameKeysAsTheProfiler(t *testing.T) {
	for _, method := range []string{"vanilla", "ghost"} {
		text, err := os.ReadFile(filepath.Join("testdata", method+"_result.json"))
		if err != nil {
			t.Fatal(err)
		}
		var theirs map[string]any
		if err := json.Unmarshal(text, &theirs); err != nil {
			t.Fatal(err)
		}
		ours := written(t, profile(method))
		if _, ok := ours["dpsight"]; !ok {
			t.Error("it does not say how it is known")
		}
		delete(ours, "dpsight")
		same(t, method, ours, theirs)
	}
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

// The profiler's own charts read a file thus.
func TestReadAsTheProfilersChartsDo(t *testing.T) {
	d := written(t, profile("ghost"))
	breakdown := d["breakdown"].(map[string]any)
	sum := 0.0
	for _, k := range []string{"model_parameters_mb", "optimizer_states_mb", "gradients_mb", "activation_hooks_mb", "norm_samples_mb", "temp_matrices_mb"} {
		sum += breakdown[k].(float64)
	}
	peak := d["peak_memory_mb"].(float64)
	if peak != 512 || breakdown["peak_allocated_mb"] != 512.0 || sum > peak || sum != 32+16+64+816.0/(1<<20) {
		t.Errorf("components of %v MiB in a peak of %v", sum, peak)
	}
	if d["avg_time_ms"] != 24.5 || breakdown["total_allocated_mb"] != 128.0 || breakdown["total_reserved_mb"] != 256.0 {
		t.Errorf("%v", d)
	}
	snapshots := d["snapshots"].([]any)
	for i, s := range snapshots {
		at := s.(map[string]any)
		name := at["name"].(string)
		if i == 0 && name != "0_model_loaded" || i == len(snapshots)-1 && name != "7_iter1_after_step" {
			t.Errorf("snapshot %d is %s", i, name)
		}
		if at["allocated_mb"] != 100.0 || at["reserved_mb"] != 200.0 || at["max_allocated_mb"] != 300.0 || at["timestamp"] != 1795223003.510865 {
			t.Errorf("%v", at)
		}
	}
}

func TestWhatIsNotKnownIsNull(t *testing.T) {
	d := written(t, analyze.ComponentProfile{Identity: analyze.Identity{RunID: "r", Source: "predicted", Status: "ok"}, Points: []analyze.MemoryPoint{{Point: analyze.ModelLoaded, Iteration: -1}}})
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
	if seen < 20 || d["experiment"] != "r" {
		t.Errorf("%d nulls in %v", seen, d)
	}
	if p := d["dpsight"].(map[string]any); p["source"] != "predicted" {
		t.Errorf("a prediction passes for a measurement: %v", p)
	}
}

func TestFileNames(t *testing.T) {
	named := func(id, name, method string) analyze.ComponentProfile {
		return analyze.ComponentProfile{Identity: analyze.Identity{RunID: id, Name: name, Params: map[string]any{"method": method}}}
	}
	got := FileNames([]analyze.ComponentProfile{named("1", "vanilla", "vanilla"), named("2", "flash", "flash"), named("3", "my flash", "flash"), named("4", "twice", ""),
		named("5", "Twice", ""), named("6", "", ""), named("7", "../up", ""), named("8", "a/b:c", ""), named("9", "..", "")})
	want := "vanilla flash_clip my flash 4 5 6 .._up a_b_c run"
	if text := strings.ReplaceAll(strings.Join(got, " "), "_result.json", ""); text != want {
		t.Errorf("%s, want %s", text, want)
	}
}
