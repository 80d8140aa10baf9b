package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/phantom"
)

// TestPython runs the agent's own tests under the interpreter's torch: marks on the CPU, everything else on the phantom
// GPU.
func TestPython(t *testing.T) {
	python := os.Getenv("DPSIGHT_TEST_PYTHON")
	if python == "" {
		t.Skip("DPSIGHT_TEST_PYTHON is unset: it names a Python with a CUDA build of torch, and Opacus")
	}
	lib, err := phantom.Build(context.Background(), phantom.Options{Python: python})
	if err != nil {
		t.Fatal(err)
	}
	lib.ScratchDir = t.TempDir()
	vars := lib.Vars()
	plugins, err := phantom.Unpack(lib.ScratchDir)
	if err != nil {
		t.Fatal(err)
	}
	vars["DPSIGHT_PLUGIN"] = strings.Join(plugins[:2], string(os.PathListSeparator)) // values, and what that needs
	text, err := json.Marshal(vars)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"test_recorder", "test_cases", "test_phantom", "test_extensions", "test_transforms", "test_torch_compat",
		"test_script_code", "test_labels",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(python, "-m", "unittest", "-v", name)
			cmd.Dir = "tests"
			cmd.Env = append(os.Environ(), "DPSIGHT_TEST_PHANTOM_ENV="+string(text), "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// TestSources reads the agent's sources: it needs neither torch nor the phantom GPU.
func TestSources(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	cmd := exec.Command(python, "-m", "unittest", "-v", "test_private_names", "test_sources")
	cmd.Dir = "tests"
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
