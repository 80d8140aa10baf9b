package collect

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/dpsight/dpsight/collect/agent"
	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/schemas"
)

// A plan is an experiment made ready: everything that can be refused has been looked at, and nothing was written.
type plan struct {
	argv        []string
	path        string // of the executable
	dir         string
	environ     []string
	interpreter *schemas.Interpreter // nil where it cannot be seen
	phantom     *phantom.Library     // nil on a GPU
	builtin     bool
}

// prepare resolves the command, its interpreter and torch, and the phantom GPU.
func (m *Machine) prepare(ctx context.Context, e *Experiment) (*plan, error) {
	p := &plan{argv: e.Command, dir: e.Dir, environ: e.Environ}
	if p.environ == nil {
		p.environ = os.Environ()
	}
	var err error
	if p.dir, err = filepath.Abs(p.dir); err != nil {
		return nil, err
	}
	if st, err := os.Stat(p.dir); err != nil || !st.IsDir() {
		return nil, &UsageError{fmt.Sprintf("%s is no folder to run in", p.dir), ""}
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
		return nil, &UsageError{fmt.Sprintf("%s: %s", p.argv[0], whyNotFound(err)), "is it installed, and its folder on PATH?"}
	}
	if err := checkAllocator(p.environ); err != nil {
		return nil, err
	}
	p.path = absolute(p.path)
	python := ""
	if p.interpreter != nil {
		python = p.interpreter.Path
		install, err := m.install(ctx, python, p.environ)
		if err != nil {
			return nil, err
		}
		if err := install.check(python); err != nil {
			return nil, err
		}
	}
	if !m.Predicted {
		return p, nil
	}
	if python == "" {
		// The phantom GPU is made for one torch; behind a shell script it is most likely this one's.
		i, err := BuiltinPython("")
		if err != nil {
			return nil, err
		}
		python = i.Path
	}
	p.phantom, err = m.phantomFor(ctx, python)
	return p, err
}

// checkAllocator refuses torch's other allocator before anything runs: it keeps no history.
func checkAllocator(environ []string) error {
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if (name == "PYTORCH_CUDA_ALLOC_CONF" || name == "PYTORCH_ALLOC_CONF") && strings.Contains(value, "cudaMallocAsync") {
			return &UsageError{"the allocator cudaMallocAsync cannot be recorded: it keeps no history", "unset backend:cudaMallocAsync in " + name}
		}
	}
	return nil
}

func whyNotFound(err error) string {
	if e, ok := err.(*exec.Error); ok {
		if e.Err == exec.ErrNotFound {
			return "no such command"
		}
		return e.Err.Error()
	}
	return err.Error()
}

// install probes an interpreter once for all runs of a machine.
func (m *Machine) install(ctx context.Context, python string, env []string) (*Install, error) {
	if in := m.installs[python]; in != nil {
		return in, nil
	}
	in, err := Probe(ctx, python, env)
	if err != nil {
		return nil, err
	}
	if m.installs == nil {
		m.installs = map[string]*Install{}
	}
	m.installs[python] = in
	return in, nil
}

func (m *Machine) phantomFor(ctx context.Context, python string) (*phantom.Library, error) {
	if lib := m.phantoms[python]; lib != nil {
		return lib, nil
	}
	lib, err := m.buildPhantom(ctx, python)
	if err != nil {
		return nil, err
	}
	if m.phantoms == nil {
		m.phantoms = map[string]*phantom.Library{}
	}
	m.phantoms[python] = lib
	return lib, nil
}

// unpack puts the Python that the experiment needs into a private folder and gives its module search path. plugin is what
// the agent loads beside itself, "" on a GPU.
func (p *plan) unpack(dir string) (path []string, plugin string, err error) {
	if err := agent.Unpack(dir); err != nil {
		return nil, "", fmt.Errorf("unpacking the agent: %w", err)
	}
	path = []string{filepath.Join(dir, "python")}
	if p.phantom != nil {
		plugin = filepath.Join(dir, "phantom_sizes.py")
		if err := os.WriteFile(plugin, phantom.PythonModule(), 0o600); err != nil {
			return nil, "", fmt.Errorf("unpacking the phantom GPU's module: %w", err)
		}
	}
	if p.builtin {
		path = append(path, filepath.Join(dir, "experiments"))
		if err := os.CopyFS(path[1], experiments.FS()); err != nil {
			return nil, "", fmt.Errorf("unpacking the experiments: %w", err)
		}
	}
	return path, plugin, nil
}
