package collect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/collect/agent"
	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/phantom"
)

// A Basis is everything that a prediction depends on besides its experiment. With another basis the same experiment may
// have another peak.
type Basis struct {
	Interpreter string   `json:"interpreter"` // path of the interpreter
	Python      string   `json:"python"`
	Torch       string   `json:"torch"`
	CUDA        string   `json:"cuda"`
	Opacus      string   `json:"opacus"`
	Library     string   `json:"library"`     // the phantom GPU's build: its sources, torch's libraries, the compilers
	Profile     string   `json:"profile"`     // the profile's name, with a hash of its content
	Modules     string   `json:"modules"`     // hash of dpsight's own Python files that run in the process
	Experiments string   `json:"experiments"` // hash of the built-in experiments; empty for a command
	Variables   []string `json:"variables"`   // relevant environment variables, sorted
}

// basisVariables are the prefixes of the environment variables that torch, its libraries and the phantom GPU read.
// CUBLAS has no underscore, so that it includes the variable for cuBLASLt's workspace.
var basisVariables = []string{"PYTORCH_", "TORCH_", "CUBLAS", "CUDNN_", "PHANTOM_"}

// Basis prepares an experiment as [Run] would, but runs nothing. If the preparation fails, Basis returns the error that
// Run would return. The machine must be a phantom GPU.
func (m *Machine) Basis(ctx context.Context, e *Experiment) (Basis, error) {
	p, err := m.prepare(ctx, e)
	if err != nil {
		return Basis{}, err
	}
	lib := p.phantom
	if lib == nil {
		return Basis{}, fmt.Errorf("dpsight predicts nothing without a phantom GPU (%s)", m.Note)
	}
	b := Basis{Interpreter: lib.Python, Torch: lib.TorchVersion, CUDA: lib.CUDAVersion, Library: filepath.Base(lib.Dir),
		Profile: filepath.Base(lib.ProfilePath),
		Modules: hashOf(agent.FS(), phantom.Modules()), Variables: variablesOf(p.environ)}
	if p.builtin {
		b.Experiments = hashOf(experiments.FS())
	}
	if p.interpreter != nil {
		install, err := m.install(ctx, p.interpreter.Path, p.environ)
		if err != nil {
			return Basis{}, err
		}
		b.Interpreter, b.Python, b.Opacus = p.interpreter.Path, install.Python, install.Opacus
	}
	return b, nil
}

// variablesOf returns the variables of environ that a prediction can depend on.
func variablesOf(environ []string) []string {
	out := []string{}
	for _, entry := range environ {
		if slices.ContainsFunc(basisVariables, func(prefix string) bool { return strings.HasPrefix(entry, prefix) }) {
			out = append(out, entry)
		}
	}
	slices.Sort(out)
	return out
}

// hashOf returns a hash of embedded files.
func hashOf(all ...fs.FS) string {
	hash := sha256.New()
	for _, files := range all {
		err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := fs.ReadFile(files, path)
			fmt.Fprintf(hash, "%s %d\n%s\n", path, len(b), b)
			return err
		})
		if err != nil { // embedded files can always be read
			panic(err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}
