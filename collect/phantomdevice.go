package collect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/schemas"
)

// PhantomOptions are the options of a phantom GPU besides its profile.
type PhantomOptions struct {
	// MemoryBytes is what a process can take, 0 = the profile's memory. Beyond MemoryBytes an allocation fails as on a
	// device.
	MemoryBytes int64
}

// MostPhantomMemory is what the phantom GPU has addresses for.
const MostPhantomMemory = 2 << 40

// OpenPhantom returns a machine that predicts. OpenPhantom looks for no GPU. device is a profile's id or another name
// of its device, with or without "phantom:" before it.
func OpenPhantom(device string, o PhantomOptions) (*Machine, error) {
	profile := strings.TrimPrefix(device, DevicePhantom+":")
	switch word, _, _ := strings.Cut(device, ":"); {
	case device == "" || device == DevicePhantom || device == DevicePhantom+":":
		profile = phantom.DefaultProfile
	case word == DeviceCUDA || word == DeviceAuto:
		return nil, &UsageError{"a prediction does not run on --device " + device, "name the device to predict for: " +
			strings.Join(phantom.Profiles(), ", ")}
	}
	if o.MemoryBytes < 0 || o.MemoryBytes > MostPhantomMemory {
		return nil, &UsageError{fmt.Sprintf("a phantom GPU cannot have %d bytes of memory", o.MemoryBytes),
			"give a size up to 2TiB, as in 24GiB"}
	}
	if profile = profileCalled(profile); profile == "" {
		return nil, &UsageError{fmt.Sprintf("unknown device %q", device), beside(didYouMean(device, ""),
			"known: "+strings.Join(phantom.Profiles(), ", ")+". "+anyOther)}
	}
	return phantomMachine(profile, "", o)
}

// OpenPhantoms opens several phantom machines, each of another profile.
func OpenPhantoms(devices []string, o PhantomOptions) ([]*Machine, error) {
	var machines []*Machine
	for _, device := range devices {
		m, err := OpenPhantom(device, o)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(machines, func(other *Machine) bool { return other.Profile() == m.Profile() }) {
			return nil, &UsageError{fmt.Sprintf("--device names %s twice", m.Profile()),
				"leave one out: phantom:t4 and t4 are the same profile"}
		}
		machines = append(machines, m)
	}
	return machines, nil
}

// OpenMachineWith is [OpenMachine] with a phantom GPU's memory in bytes, 0 = its profile's. A real GPU keeps its own
// memory.
func OpenMachineWith(device string, memory int64) (*Machine, error) {
	m, err := OpenMachine(device)
	if err != nil || memory == 0 {
		return m, err
	}
	if !m.Predicted {
		m.Close()
		return nil, &UsageError{"--gpu-memory is of a phantom GPU, and here is a GPU",
			"choose one with --device phantom, or use dpsight predict"}
	}
	m.setMemory(memory)
	return m, nil
}

// Profile is the phantom GPU's profile, empty on a real GPU.
func (m *Machine) Profile() string { return m.profile.ID }

// GPUName is the name of the phantom GPU's device.
func (m *Machine) GPUName() string { return m.profile.Name }

// Checked is whether predictions for the phantom GPU's device were compared with recordings from one.
func (m *Machine) Checked() bool { return m.profile.Checked }

// ProcessBytes is what one process can take of the phantom GPU.
func (m *Machine) ProcessBytes() int64 { return m.phantomFacts(&Experiment{}).MemoryBytes }

// placed is the same machine with another policy of addresses (see phantom.Library). Both machines share what was
// looked up.
func (m *Machine) placed(addresses string) *Machine {
	m.found = m.shared()
	other := *m
	other.addresses = addresses
	return &other
}

// Policies returns n policies for addresses, the profile's own last. The places of segments decide which of several
// equal free blocks torch takes, so reserved bytes differ between policies. The first is the profile's policy with its
// grid of blocks moved relative to the process's mappings, which is random on a device too (csrc/blocks.c). The second
// and third policies are the extremes, which bound any driver. The policies after that place segments at random.
func (m *Machine) Policies(n int) []string {
	others := []string{m.profile.Addresses + "+0", "up", "down"}
	for seed := 1; len(others) < n-1; seed++ {
		others = append(others, fmt.Sprint(seed))
	}
	return append(others[:max(0, n-1)], m.profile.Addresses)
}

// phantomFacts describes the phantom GPU for the manifest.
func (m *Machine) phantomFacts(e *Experiment) *schemas.Phantom {
	p := m.profile.Properties
	f := &schemas.Phantom{Checked: m.profile.Checked, CheckedTorch: m.profile.CheckedTorch,
		Assumed:     slices.Sorted(maps.Keys(m.profile.Assumed)),
		MemoryBytes: m.memory, MemoryGiven: m.memory > 0, Addresses: m.addresses, DefaultAddresses: m.profile.Addresses,
		ComputeCapability: fmt.Sprintf("%d.%d", p["compute_major"], p["compute_minor"]),
		Placements:        e.Placements, Garbage: e.Garbage, Decisions: e.Decisions}
	if f.Assumed == nil {
		f.Assumed = []string{}
	}
	if !f.MemoryGiven {
		f.MemoryBytes = p["total_memory_bytes"] - p["context_bytes"]
	}
	if f.Addresses == "" {
		f.Addresses = m.profile.Addresses
	}
	return f
}

// deviceUses puts into the manifest what the processes of a run held of each device.
func deviceUses(uses []phantom.Use) (out []schemas.DeviceUse) {
	for _, u := range uses {
		out = append(out, schemas.DeviceUse{Device: u.Device, Processes: u.Processes, ReservedBytes: u.ReservedBytes,
			TakenBytes: u.TakenBytes})
	}
	return out
}
