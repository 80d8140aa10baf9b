package phantom

import (
	"slices"
	"testing"
)

func TestEnvMerges(t *testing.T) {
	library := &Library{Dir: "/cache/lib", ProfilePath: "/cache/p.txt", ScratchDir: "/run/scratch", Devices: 2,
		MemoryBytes: 1 << 30, AddressPolicy: "down"}
	env := library.Env([]string{"HOME=/home/u", "LD_PRELOAD=libjemalloc.so", "LD_LIBRARY_PATH=", "PHANTOM_MEM=5",
		"A=b=c"})
	want := []string{
		"HOME=/home/u",
		"A=b=c",
		"LD_LIBRARY_PATH=/cache/lib",
		"LD_PRELOAD=/cache/lib/libphantom.so:libjemalloc.so",
		"OMP_WAIT_POLICY=PASSIVE",
		"PHANTOM_ADDR=down",
		"PHANTOM_DEVICES=2",
		"PHANTOM_MEM=1073741824",
		"PHANTOM_PROFILE=/cache/p.txt",
		"PHANTOM_VALUES=/cache/lib/libphantom_values.so",
		"TORCHINDUCTOR_CACHE_DIR=/run/scratch/inductor",
		"TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT=0",
		"TRITON_CACHE_DIR=/run/scratch/triton",
		"TRITON_LIBCUDA_PATH=/cache/lib",
	}
	if !slices.Equal(env, want) {
		t.Errorf("got  %q\nwant %q", env, want)
	}
	if got := library.Vars()["LD_PRELOAD"]; got != "/cache/lib/libphantom.so" {
		t.Errorf("Vars has the preload of the base: %q", got)
	}
}

func TestEnvKeepsHowOpenMPWaits(t *testing.T) {
	if env := (&Library{}).Env([]string{"OMP_WAIT_POLICY=ACTIVE"}); !slices.Contains(env, "OMP_WAIT_POLICY=ACTIVE") ||
		slices.Contains(env, "OMP_WAIT_POLICY=PASSIVE") {
		t.Errorf("%q", env)
	}
}

// If a run has its own TorchInductor cache, Triton's compiled kernels still go to the shared scratch folder.
func TestInductorsOwnFolder(t *testing.T) {
	vars := (&Library{ScratchDir: "/cache/compiled", InductorDir: "/run/inductor"}).Vars()
	if vars["TORCHINDUCTOR_CACHE_DIR"] != "/run/inductor" || vars["TRITON_CACHE_DIR"] != "/cache/compiled/triton" {
		t.Errorf("TorchInductor's %s, Triton's %s", vars["TORCHINDUCTOR_CACHE_DIR"], vars["TRITON_CACHE_DIR"])
	}
}

func TestEnvLeavesDefaultsToTheLibrary(t *testing.T) {
	library := &Library{Dir: "/cache/lib"}
	for _, name := range []string{"PHANTOM_DEVICES", "PHANTOM_MEM", "PHANTOM_ADDR"} {
		if value, set := library.Vars()[name]; set {
			t.Errorf("%s is set to %q", name, value)
		}
	}
}
