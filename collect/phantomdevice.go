package collect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/schemas"
)

// PhantomOptions are the settings of a phantom GPU besides its profile.
type PhantomOptions struct {
	// MemoryBytes is the memory that a process can allocate. 0 means the profile's memory. Beyond it an allocation
	// fails as on a GPU.
	MemoryBytes int64
}

// MostPhantomMemory is the most memory for which the phantom GPU has addresses.
const MostPhantomMemory = 2 << 40

// OpenPhantom returns a machine that predicts, and does not look for a GPU. device is a profile's id or another name of
// the profile's device, with or without "phantom:" before it.
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

// OpenPhantoms returns several machines that predict, each with another profile.
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

// OpenMachineWith does what [OpenMachine] does, with the phantom GPU's memory in bytes. 0 means the profile's memory.
// For a real GPU, memory has no effect.
func OpenMachineWith(device string, memory int64) (*Machine, error) {
	m, err := OpenMachine(device)
	if err != nil || memory == 0 {
		return m, err
	}
	if !m.Predicted {
		m.Close()
		return nil, &UsageError{"--gpu-memory sets the memory of a phantom GPU, and this is a real GPU",
			"choose one with --device phantom, or use dpsight predict"}
	}
	m.setMemory(memory)
	return m, nil
}

// Profile returns the id of the phantom GPU's profile, or "" on a real GPU.
func (m *Machine) Profile() string { return m.profile.ID }

// GPUName returns the name of the device that the phantom GPU presents.
func (m *Machine) GPUName() string { return m.profile.Name }

// Checked reports whether predictions for the phantom GPU's device were compared with recordings from such a device.
func (m *Machine) Checked() bool { return m.profile.Checked }

// ProcessBytes returns the memory of the phantom GPU that one process can allocate.
func (m *Machine) ProcessBytes() int64 { return m.phantomFacts(&Experiment{}).MemoryBytes }

// placed returns the same machine with another address policy (see phantom.Library). The given and the returned machine
// share what is looked up for either.
func (m *Machine) placed(addresses string) *Machine {
	m.found = m.shared()
	other := *m
	other.addresses = addresses
	return &other
}

// Policies returns n address policies, the profile's own last. The addresses of segments decide which of several equal
// free blocks torch takes, so reserved bytes differ between policies. The first policy is the profile's, with its grid
// of blocks moved relative to the process's mappings, which is random on a device too (csrc/blocks.c). The second and
// third policies are extremes, between which the reserved bytes of real drivers should lie. Further policies place
// segments at random.
func (m *Machine) Policies(n int) []string {
	others := []string{m.profile.Addresses + "+0", "up", "down"}
	for seed := 1; len(others) < n-1; seed++ {
		others = append(others, fmt.Sprint(seed))
	}
	return append(others[:max(0, n-1)], m.profile.Addresses)
}

// phantomFacts returns the facts about the phantom GPU for the manifest.
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

// deviceUses converts, for the manifest, how much of each device the processes of a run held.
func deviceUses(uses []phantom.Use) (out []schemas.DeviceUse) {
	for _, u := range uses {
		out = append(out, schemas.DeviceUse{Device: u.Device, Processes: u.Processes, ReservedBytes: u.ReservedBytes,
			TakenBytes: u.TakenBytes})
	}
	return out
}
