package collect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dpsight/dpsight/collect/agent"
	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/launch"
)

// A plan is a prepared experiment: everything that can be refused was checked, and nothing was written.
type plan struct {
	argv        []string
	path        string // of the executable
	dir         string
	environ     []string
	interpreter *schemas.Interpreter // nil if the interpreter is unknown
	phantom     *phantom.Library     // nil on a GPU
	builtin     bool
	world       *World // nil if the experiment runs alone
}

// prepare resolves the command, its interpreter and torch, and the phantom GPU.
func (m *Machine) prepare(ctx context.Context, e *Experiment) (*plan, error) {
	p := &plan{argv: e.Command, dir: e.Dir, environ: e.Environ}
	if p.environ == nil {
		p.environ = os.Environ()
	}
	p.environ = m.environ(p.environ)
	var err error
	if p.dir, err = filepath.Abs(p.dir); err != nil {
		return nil, err
	}
	if st, err := os.Stat(p.dir); err != nil || !st.IsDir() {
		return nil, &UsageError{fmt.Sprintf("%s is not a folder", p.dir), ""}
	}
	if len(p.argv) == 0 {
		if p.interpreter, err = BuiltinPython(e.Python); err != nil {
			return nil, err
		}
		p.builtin = true
		p.argv = append([]string{p.interpreter.Path}, experiments.Args(e.Params)...)
		p.argv = append(p.argv, "--device", "cuda")
	} else if p.interpreter = commandPython(p.argv); p.interpreter == nil && e.Python != "" {
		if p.interpreter, err = explicitPython(e.Python, "--python"); err != nil {
			return nil, err
		}
	}
	if p.path, err = exec.LookPath(p.argv[0]); err != nil {
		return nil, notFound(p.argv[0], err)
	}
	if script, _ := launch.Started(p.argv); script != "" {
		if _, err := os.Stat(inFolder(p.dir, script)); errors.Is(err, fs.ErrNotExist) {
			return nil, &UsageError{fmt.Sprintf("%s: no such script", script), beside(meantScript(p.dir, script),
				"dpsight looked in "+p.dir)}
		}
	}
	if err := checkAllocator(p.environ); err != nil {
		return nil, err
	}
	p.path = absolute(p.path)
	python := ""
	if p.interpreter != nil {
		python = p.interpreter.Path
		install, err := m.install(ctx, python, p.environ)
		var none *UsageError
		// --python has no effect on a user's own command.
		if p.interpreter.Chosen == chosenByCommand && errors.As(err, &none) {
			err = &UsageError{none.Problem, "name another interpreter in the command"}
		}
		if err != nil {
			return nil, err
		}
		if err := install.check(python, p.builtin); err != nil {
			return nil, err
		}
	}
	if p.world = e.World; p.world != nil {
		if err := p.world.check(m, e, python); err != nil {
			return nil, err
		}
	}
	if !m.Predicted {
		return p, nil
	}
	if python == "" {
		// The phantom GPU is built for one torch. A shell script most likely uses the torch of BuiltinPython's
		// interpreter.
		i, err := BuiltinPython("")
		if err != nil {
			return nil, err
		}
		python = i.Path
	}
	built, err := m.phantomFor(ctx, python)
	if err != nil {
		return nil, err
	}
	library := *built // runs with other memories and policies share one build
	library.MemoryBytes, library.AddressPolicy = m.memory, m.addresses
	switch {
	case p.world != nil:
		library.Devices = p.world.devices()
	case e.GPUs > 0:
		library.Devices = e.GPUs
	case !slices.ContainsFunc(p.environ, func(v string) bool { return strings.HasPrefix(v, "PHANTOM_DEVICES=") }):
		library.Devices = min(launch.Ranks(p.argv), phantom.MostDevices) // each rank takes one device
	}
	p.phantom = &library
	return p, nil
}

// checkAllocator refuses torch's alternative allocator before anything runs, since that allocator keeps no history.
func checkAllocator(environ []string) error {
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if (name == "PYTORCH_CUDA_ALLOC_CONF" || name == "PYTORCH_ALLOC_CONF") &&
			strings.Contains(value, "cudaMallocAsync") {
			return &UsageError{"dpsight cannot record the allocator cudaMallocAsync: it keeps no history",
				"remove backend:cudaMallocAsync from " + name}
		}
	}
	return nil
}

// found has what a machine looked up once for all its runs.
type found struct {
	opening  atomic.Int64 // CPU time in nanoseconds of opening the machine, until a run takes it over
	mu       sync.Mutex   // held during a look-up, so that experiments that start together wait for the first one's
	installs map[string]*Install
	phantoms map[string]*phantom.Library
}

func (m *Machine) shared() *found {
	if m.found == nil {
		m.found = &found{installs: map[string]*Install{}, phantoms: map[string]*phantom.Library{}}
	}
	return m.found
}

// openingCPU returns the CPU time of opening the machine to the first run, and 0 to later ones.
func (m *Machine) openingCPU() int64 { return m.shared().opening.Swap(0) }

// install probes an interpreter, once.
func (m *Machine) install(ctx context.Context, python string, env []string) (*Install, error) {
	f := m.shared()
	f.mu.Lock()
	defer f.mu.Unlock()
	return once(f.installs, python, func() (*Install, error) { return Probe(ctx, python, env) })
}

func (m *Machine) phantomFor(ctx context.Context, python string) (*phantom.Library, error) {
	f := m.shared()
	f.mu.Lock()
	defer f.mu.Unlock()
	return once(f.phantoms, python, func() (*phantom.Library, error) { return m.buildPhantom(ctx, python) })
}

// once returns a value, and makes it if it does not exist yet. A failure is not remembered: the next call tries again.
func once[T any](have map[string]*T, key string, make func() (*T, error)) (*T, error) {
	if v := have[key]; v != nil {
		return v, nil
	}
	v, err := make()
	if err == nil {
		have[key] = v
	}
	return v, err
}

// unpack writes the Python code that the experiment needs into a private folder, and returns the module search path.
// plugin lists the modules that the agent also loads, and is "" on a GPU.
func (p *plan) unpack(dir string) (path []string, plugin string, err error) {
	if err := agent.Unpack(dir); err != nil {
		return nil, "", fmt.Errorf("unpacking the agent: %w", err)
	}
	path = []string{filepath.Join(dir, "python")}
	patterns, err := mask.PatternsForAgent()
	if err == nil {
		err = os.WriteFile(filepath.Join(path[0], "dpsight", mask.AgentFile), patterns, 0o600)
	}
	if err != nil {
		return nil, "", fmt.Errorf("unpacking the agent: %w", err)
	}
	if p.phantom != nil {
		plugins, err := phantom.Unpack(dir)
		if err != nil {
			return nil, "", fmt.Errorf("unpacking the phantom GPU's modules: %w", err)
		}
		plugin = strings.Join(plugins, string(os.PathListSeparator))
	}
	if p.builtin {
		path = append(path, filepath.Join(dir, "experiments"))
		if err := os.CopyFS(path[1], experiments.FS()); err != nil {
			return nil, "", fmt.Errorf("unpacking the experiments: %w", err)
		}
	}
	return path, plugin, nil
}
