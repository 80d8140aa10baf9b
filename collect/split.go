package collect

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// Split divides m into n Machines that can run experiments at the same time. Each has its own GPU, since two
// experiments on one GPU would share its memory and its time. A phantom GPU belongs to one process, so n may be any
// number. m must not be used meanwhile; Closing m closes the n Machines.
func (m *Machine) Split(n int) ([]*Machine, error) {
	if n == 1 {
		return []*Machine{m}, nil
	}
	devices := m.devices()
	switch {
	case m.Predicted:
	case m.library == nil:
		return nil, &UsageError{fmt.Sprintf("%d experiments cannot run at the same time: without NVML, dpsight "+
			"cannot tell the GPUs apart (%s)", n, m.nvmlReason),
			"leave --jobs out"}
	case len(devices) < n:
		return nil, &UsageError{fmt.Sprintf("%d experiments at the same time need %d GPUs, and %s visible", n, n,
			units.Plural(len(devices), "GPU is", "GPUs are")),
			fmt.Sprintf("give --jobs %d, or less", max(1, len(devices)))}
	}
	m.found = m.shared()
	parts := make([]*Machine, n)
	for i := range parts {
		part := *m
		part.idle = maps.Clone(m.idle)
		if !m.Predicted {
			part.only = devices[i].Info().UUID
		}
		parts[i] = &part
	}
	return parts, nil
}

// environ returns the environment for an experiment. On a part of a Machine, only the part's GPU is visible, by its
// UUID, which no setting can renumber. For a phantom GPU, settings that hide this machine's GPUs are removed, since
// they would hide it too. Hidden GPUs are a reason to use a phantom GPU.
func (m *Machine) environ(base []string) []string {
	if m.Predicted {
		return Without(base, "CUDA_VISIBLE_DEVICES")
	}
	if m.only == "" {
		return base
	}
	return Overlay(base, map[string]string{"CUDA_VISIBLE_DEVICES": m.only})
}

// Source says how the figures of runs on this Machine will be obtained: measured, or predicted for a device profile.
func (m *Machine) Source() (source string, profile *string) {
	if m.Predicted {
		return schemas.Predicted, &m.profile.ID
	}
	return schemas.Measured, nil
}

// Without returns an environment without some variables.
func Without(base []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}

// Overlay sets variables in an environment, as from os.Environ. If base is nil, Overlay uses this process's
// environment. Overlay replaces existing variables, since a C library takes the first of two entries.
func Overlay(base []string, set map[string]string) []string {
	if base == nil {
		base = os.Environ()
	}
	if len(set) == 0 {
		return base
	}
	var env []string
	for _, entry := range base {
		name, _, _ := strings.Cut(entry, "=")
		if _, ok := set[name]; !ok {
			env = append(env, entry)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env = append(env, name+"="+set[name])
	}
	return env
}
