package collect

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/collect/phantom"
)

// profileVariable is the variable that tells a process which dpsight did not start the device that its phantom GPU
// presents.
const profileVariable = "DPSIGHT_PROFILE"

// PhantomEnv returns the variables that a process needs to use a phantom GPU if dpsight does not start it.
func PhantomEnv(ctx context.Context, m *Machine, python string, devices int) (map[string]string, error) {
	switch {
	case !m.Predicted:
		return nil, &UsageError{"a real GPU needs no environment", "name a phantom GPU, as in --device phantom"}
	case devices < 1 || devices > phantom.MostDevices:
		return nil, &UsageError{fmt.Sprintf("a process cannot have %d phantom GPUs", devices),
			fmt.Sprintf("give 1 to %d", phantom.MostDevices)}
	}
	i, err := BuiltinPython(python)
	if err != nil {
		return nil, err
	}
	built, err := m.phantomFor(ctx, i.Path)
	if err != nil {
		return nil, err
	}
	library := *built
	library.MemoryBytes, library.AddressPolicy, library.Devices = m.memory, m.addresses, devices
	vars := library.Vars()
	vars[profileVariable] = m.profile.ID
	return vars, nil
}

// WriteExports writes variables as export commands for a shell. Existing entries of the loader's search lists are kept.
func WriteExports(w io.Writer, vars map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		value := quoted(vars[name])
		if name == "LD_PRELOAD" || name == "LD_LIBRARY_PATH" {
			value += "${" + name + ":+:$" + name + "}"
		}
		if _, err := fmt.Fprintf(w, "export %s=%s\n", name, value); err != nil {
			return err
		}
	}
	return nil
}

// quoted returns a text in quotes, so that a shell takes it literally.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
