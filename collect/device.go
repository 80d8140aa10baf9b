package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/collect/nvml"
	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/schemas"
)

// The words that --device accepts.
const (
	DeviceAuto    = "auto"
	DeviceCUDA    = "cuda"
	DevicePhantom = "phantom"
)

// A Machine is a device on which experiments can run: a GPU of this machine, or the phantom GPU. The caller opens a
// Machine once for a run or a whole suite, and closes it afterwards.
type Machine struct {
	// Predicted is true if experiments run on the phantom GPU.
	Predicted bool
	// Note says in one sentence what was chosen and why.
	Note string

	profile      phantom.Profile
	memory       int64            // bytes of the phantom GPU; 0 means the profile's memory
	addresses    string           // the phantom GPU's policy of addresses; "" means the profile's
	chosen       string           // why the phantom GPU was chosen; "" if the user named it
	library      nvml.Library     // nil without NVML, and on the phantom GPU
	nvmlReason   string           // why library is nil
	idle         map[string]int64 // lowest memory in use so far, by UUID
	throttledFor string           // why the clocks were throttled during a whole wait
	only         string           // UUID of the only device, if this Machine is a part of another

	found *found // shared with the Machine's parts; nil before the first run
}

// OpenMachine returns the Machine that --device names.
func OpenMachine(device string) (*Machine, error) {
	cpu := newCPUMeter()
	m, err := openMachine(device, nvml.Open)
	if err == nil {
		m.shared().opening.Store(cpu.part())
	}
	return m, err
}

// PlannedMachine returns the Machine for a suite's plan. A plan may be made on a machine without the GPU, so
// PlannedMachine does not look for a GPU if device is cuda.
func PlannedMachine(device string) (*Machine, error) {
	if device == DeviceCUDA {
		return &Machine{Note: "device: " + DeviceCUDA}, nil
	}
	return OpenMachine(device)
}

func openMachine(device string, open func() (nvml.Library, error)) (*Machine, error) {
	word, profile, named := strings.Cut(device, ":")
	switch {
	case word == DevicePhantom:
		if !named || profile == "" {
			profile = phantom.DefaultProfile
		}
		return phantomMachine(cmp.Or(profileCalled(profile), profile), "", PhantomOptions{})
	case word != DeviceAuto && word != DeviceCUDA && word != "" || named:
		return nil, &UsageError{fmt.Sprintf("unknown device %q", device), beside(didYouMean(device, DevicePhantom+":"),
			knownDevices)}
	}
	m := &Machine{idle: map[string]int64{}}
	library, err := open()
	switch {
	case err != nil:
		m.nvmlReason = err.Error()
	case len(library.Devices()) == 0:
		library.Close()
		m.nvmlReason = "NVML finds no GPU"
	default:
		m.library = library
	}
	hidden := hiddenGPUs(os.Getenv("CUDA_VISIBLE_DEVICES"), os.LookupEnv)
	// A build without cgo cannot use NVML, even on a machine with a GPU.
	if m.library != nil && !hidden || word == DeviceCUDA && hasGPUFile() || m.nvmlReason != "" && hasGPUFile() &&
		!hidden {
		m.Note = "device: CUDA"
		if m.library != nil {
			m.Note = "device: " + m.library.Devices()[0].Info().Name
			if n := len(m.devices()); n > 1 {
				m.Note += fmt.Sprintf(" (%d visible)", n)
			}
		} else {
			m.Note += ", without samples: " + m.nvmlReason
		}
		return m, nil
	}
	reason := m.nvmlReason
	if hidden {
		reason = "CUDA_VISIBLE_DEVICES hides every GPU"
	}
	m.Close()
	if word == DeviceCUDA {
		return nil, &UsageError{"no GPU was found: " + reason, "use --device phantom to predict its memory without one"}
	}
	return phantomMachine(phantom.DefaultProfile, reason, PhantomOptions{})
}

func phantomMachine(profile, reason string, o PhantomOptions) (*Machine, error) {
	p, err := phantom.LoadProfile(profile)
	if err != nil {
		return nil, &UsageError{err.Error(), cmp.Or(didYouMean(profile, DevicePhantom+":"), "name a profile as in "+
			"--device phantom:"+phantom.DefaultProfile)}
	}
	m := &Machine{Predicted: true, profile: p, chosen: reason, nvmlReason: "the phantom GPU has no sensors"}
	m.setMemory(o.MemoryBytes)
	return m, nil
}

// setMemory sets the phantom GPU's memory in bytes. 0 means the profile's.
func (m *Machine) setMemory(bytes int64) {
	m.memory = bytes
	m.Note = "device: phantom GPU, predicting the memory of the " + m.profile.Name
	if bytes > 0 {
		m.Note += fmt.Sprintf(" with %.2f GiB", float64(bytes)/(1<<30))
	}
	if !m.profile.Checked {
		m.Note += "; no prediction was ever compared with a real one"
	}
	if m.chosen != "" {
		m.Note += " (" + m.chosen + ")"
	}
}

// Close shuts NVML down.
func (m *Machine) Close() {
	if m.library != nil {
		m.library.Close()
		m.library = nil
	}
}

func hasGPUFile() bool {
	files, _ := filepath.Glob("/dev/nvidia[0-9]*")
	return len(files) > 0
}

// hiddenGPUs reports whether CUDA_VISIBLE_DEVICES hides every GPU.
func hiddenGPUs(value string, lookup func(string) (string, bool)) bool {
	_, set := lookup("CUDA_VISIBLE_DEVICES")
	return set && (strings.TrimSpace(value) == "" || strings.HasPrefix(strings.TrimSpace(value), "-1"))
}

// devices returns the NVML devices that CUDA_VISIBLE_DEVICES leaves visible and that belong to this Machine.
func (m *Machine) devices() []nvml.Device {
	if m.library == nil {
		return nil
	}
	if m.only != "" {
		return slices.DeleteFunc(slices.Clone(m.library.Devices()), func(d nvml.Device) bool {
			return d.Info().UUID != m.only
		})
	}
	all := m.library.Devices()
	value, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	if !set {
		return all
	}
	var visible []nvml.Device
	for word := range strings.SplitSeq(value, ",") {
		word = strings.TrimSpace(word)
		i := slices.IndexFunc(all, func(d nvml.Device) bool {
			info := d.Info()
			return strconv.Itoa(info.Index) == word || strings.HasPrefix(word, "GPU-") &&
				strings.HasPrefix(info.UUID, word)
		})
		if i < 0 { // a MIG instance or a mistake: CUDA ignores everything after a device that it cannot resolve
			break
		}
		visible = append(visible, all[i])
	}
	if len(visible) == 0 {
		return all
	}
	return visible
}

// gpus returns the descriptions of the devices for the manifest.
func (m *Machine) gpus() []schemas.GPU {
	if m.Predicted {
		return []schemas.GPU{{Name: m.profile.Name, TotalBytes: cmp.Or(m.memory,
			m.profile.Properties["total_memory_bytes"])}}
	}
	gpus := []schemas.GPU{}
	for _, d := range m.devices() {
		info := d.Info()
		gpus = append(gpus, schemas.GPU{Index: info.Index, Name: info.Name, UUID: info.UUID,
			TotalBytes: info.TotalBytes})
	}
	return gpus
}

func (m *Machine) driver() *string {
	if m.library == nil || m.library.Driver() == "" {
		return nil
	}
	d := m.library.Driver()
	return &d
}

// buildPhantom builds the phantom GPU for the torch of an interpreter.
func (m *Machine) buildPhantom(ctx context.Context, python string) (*phantom.Library, error) {
	lib, err := phantom.Build(ctx, phantom.Options{Python: python, Profile: m.profile})
	if err == nil {
		return lib, nil
	}
	hints := []struct {
		is   error
		hint string
	}{
		{phantom.ErrPlatform, containerHint},
		{phantom.ErrNoPython, "name another interpreter with --python"},
		{phantom.ErrNoTorch, "pip install torch (2.10 or later, a CUDA build)"},
		{phantom.ErrCPUTorch, "install a CUDA build of torch: the phantom GPU needs it, but no real GPU"},
		{phantom.ErrNoHeaders, "pip install the package nvidia-cuda-runtime of torch's CUDA version"},
		{phantom.ErrNoKernels, "name another device with --device phantom:PROFILE (" + strings.Join(phantom.Profiles(),
			", ") + "), or install a torch that was built for it"},
		{phantom.ErrNoCompiler, "install gcc and g++ (apt-get install gcc g++ libc6-dev)"},
		{phantom.ErrNoCXXCompiler, "install g++ (apt-get install g++)"},
	}
	for _, h := range hints {
		if errors.Is(err, h.is) {
			return nil, &UsageError{err.Error(), h.hint}
		}
	}
	return nil, err
}

const containerHint = "run dpsight in a Linux container with Python, a CUDA build of torch, gcc and g++; ingest, " +
	"analyze and report work here too"
