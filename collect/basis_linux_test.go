package collect

import (
	"context"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/testkit"
)

// The basis of a prediction, for a command or a built-in experiment, names the interpreter, its torch, the phantom
// GPU's build, and those environment variables that torch reads.
func TestBasis(t *testing.T) {
	python := testkit.Python(t)
	m, err := OpenPhantom("t4", PhantomOptions{})
	if err != nil {
		t.Fatal(err)
	}
	params, err := experiments.Resolve(map[string]string{"method": "vanilla", "preset": "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"PATH=/usr/bin:/bin", "PYTORCH_ALLOC_CONF=max_split_size_mb:64", "TZ=UTC"}
	command, err := m.Basis(context.Background(), &Experiment{Command: []string{python, "-c", "pass"},
		Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"interpreter": command.Interpreter, "Python": command.Python,
		"torch": command.Torch, "CUDA": command.CUDA, "library": command.Library,
		"profile": command.Profile, "modules": command.Modules} {
		if text == "" {
			t.Errorf("no %s: %+v", what, command)
		}
	}
	if command.Interpreter != python || command.Experiments != "" || !slices.Equal(command.Variables, environ[1:2]) {
		t.Errorf("%+v", command)
	}
	builtin, err := m.Basis(context.Background(), &Experiment{Params: params, Python: python, Environ: environ[:1]})
	if err != nil || builtin.Experiments == "" || builtin.Library != command.Library || len(builtin.Variables) != 0 {
		t.Errorf("%+v, %v", builtin, err)
	}
}
