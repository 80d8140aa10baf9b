package phantom

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MostDevices is the most devices that a phantom GPU can have.
const MostDevices = 8

// Library is a built phantom GPU. The fields up to Compiler are results; the other fields may be set before Vars or Env
// is called.
type Library struct {
	// Dir is the folder with libphantom.so, libphantom_values.so, libcuda.so.1 and libnvidia-ml.so.1.
	Dir string
	// ProfilePath is the file of the device profile, in the form that the library reads.
	ProfilePath string
	Profile     Profile
	// Python is the interpreter that the library was built for. TorchVersion and CUDAVersion are the versions of its
	// torch and of that torch's CUDA, such as 2.11.0+cu130 and 13.0.
	Python       string
	TorchVersion string
	CUDAVersion  string
	// Compiler is the C compiler's version, or "" if this build of dpsight contained the libraries.
	Compiler string

	// ScratchDir is where Triton stores compiled code, apart from the user's own cache, and TorchInductor too if
	// InductorDir is "". Build sets it to a folder of the cache.
	ScratchDir string
	// InductorDir is TorchInductor's cache folder. The cache records which variant of a kernel was fastest. Timing the
	// variants allocates memory, and a run with a filled cache times none. A run whose memory must not depend on
	// earlier runs therefore needs an empty InductorDir. InductorDir must never be the user's cache, since on the
	// phantom GPU the fastest variant is random.
	InductorDir string
	// Devices is the number of devices, from 1 to [MostDevices]. 0 means 1.
	Devices int
	// MemoryBytes is how much memory cudaMalloc can provide on each device before it fails. 0 means the profile's
	// memory minus the context.
	MemoryBytes int64
	// AddressPolicy decides where segments are placed, which changes reserved memory, usually by about a per cent.
	// "h200" and "blocks" follow a driver's observed behaviour (csrc/blocks.c); with "+0" to "+31" the grid of blocks
	// lies elsewhere. Other address policies are "" (the profile's choice), "up", "down", a number that seeds random
	// places, and "@PATH" (the segments of a recording).
	AddressPolicy string
	// Shared is the path of the page in which the processes of a run count the memory that they hold on each device
	// (see [NewShared]). If it is "", each process has devices of its own.
	Shared string
}

// Preload returns the path of the library to preload.
func (l *Library) Preload() string { return filepath.Join(l.Dir, "libphantom.so") }

// Vars returns the variables that a process on the phantom GPU needs, without regard to existing ones. Env merges
// them into an environment.
func (l *Library) Vars() map[string]string {
	inductor := l.InductorDir
	if inductor == "" {
		inductor = filepath.Join(l.ScratchDir, "inductor")
	}
	vars := map[string]string{
		"LD_PRELOAD":              l.Preload(),
		"LD_LIBRARY_PATH":         l.Dir,
		"PHANTOM_VALUES":          filepath.Join(l.Dir, valuesLibrary),
		"TRITON_LIBCUDA_PATH":     l.Dir,
		"PHANTOM_PROFILE":         l.ProfilePath,
		"TORCHINDUCTOR_CACHE_DIR": inductor,
		"TRITON_CACHE_DIR":        filepath.Join(l.ScratchDir, "triton"),
		// At the end of the process, a late thread of the autograd engine waits for that end (csrc/finalize.c). torch
		// would wait ten seconds for the thread.
		"TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT": "0",
		// Steps without kernels follow so fast that OpenMP's threads never stop spinning between parallel regions: that
		// takes two to six times the CPU time if cores are shared.
		openMPWaits: "PASSIVE",
	}
	if l.Devices > 0 {
		vars["PHANTOM_DEVICES"] = strconv.Itoa(l.Devices)
	}
	if l.MemoryBytes > 0 {
		vars["PHANTOM_MEM"] = strconv.FormatInt(l.MemoryBytes, 10)
	}
	if l.AddressPolicy != "" {
		vars["PHANTOM_ADDR"] = l.AddressPolicy
	}
	if l.Shared != "" {
		vars["PHANTOM_SHARED"] = l.Shared
	}
	return vars
}

// openMPWaits is the variable that says how OpenMP's threads wait for work.
const openMPWaits = "OMP_WAIT_POLICY"

// Env returns the environment for a child process: base (as from os.Environ) with Vars set, and the loader's two search
// lists prepended to base's. base's setting of how OpenMP's threads wait is kept.
func (l *Library) Env(base []string) []string {
	vars := l.Vars()
	var env []string
	for _, entry := range base {
		name, value, _ := strings.Cut(entry, "=")
		ours, set := vars[name]
		switch {
		case !set:
			env = append(env, entry)
		case (name == "LD_PRELOAD" || name == "LD_LIBRARY_PATH") && value != "":
			vars[name] = ours + ":" + value
		case name == openMPWaits:
			vars[name] = value
		}
	}
	names := make([]string, 0, len(vars))
	for name := range vars {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		env = append(env, name+"="+vars[name])
	}
	return env
}
