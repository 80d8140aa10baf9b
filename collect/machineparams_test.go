package collect

import (
	"maps"
	"testing"
)

// ParamsWithMachine adds the machine settings that the user gave, such as gpu_memory, to a run's parameters.
// ParamsWithMachine adds no defaults and does not change the experiment's own parameters.
func TestParamsWithMachine(t *testing.T) {
	world, err := newWorld(16, "0,15", 4)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]any{"rank": "8"}
	for _, c := range []struct {
		memory int64
		world  *World
		want   map[string]any
	}{
		{0, nil, map[string]any{"rank": "8"}},
		{24 << 30, nil, map[string]any{"rank": "8", "gpu_memory": int64(24 << 30)}},
		{0, world, map[string]any{"rank": "8", "world_size": int64(16), "ranks": "0,15", "gpus_per_node": int64(4)}},
	} {
		m, err := OpenPhantom("h200", PhantomOptions{MemoryBytes: c.memory})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.ParamsWithMachine(&Experiment{Params: own, World: c.world}); !maps.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
	if len(own) != 1 {
		t.Errorf("the experiment's own parameters became %v", own)
	}
}

// variablesOf returns only those environment variables that torch, its libraries and the phantom GPU read.
func TestVariablesOf(t *testing.T) {
	got := variablesOf([]string{"HOME=/root", "PYTORCH_ALLOC_CONF=x:1", "CUBLASLT_WORKSPACE_SIZE=1", "PATH=/bin",
		"CUBLAS_WORKSPACE_CONFIG=:16:8", "PHANTOM_ADDR=up", "CUDNN_X=1"})
	want := []string{"CUBLASLT_WORKSPACE_SIZE=1", "CUBLAS_WORKSPACE_CONFIG=:16:8", "CUDNN_X=1", "PHANTOM_ADDR=up",
		"PYTORCH_ALLOC_CONF=x:1"}
	if len(got) != len(want) {
		t.Fatal(got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
