package agent_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/collect/testkit"
)

// TestPython runs the agent's Python tests with the torch of DPSIGHT_TEST_PYTHON. Most of them use the phantom GPU.
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
	vars["DPSIGHT_PLUGIN"] = strings.Join(plugins[:2], string(os.PathListSeparator)) // the two that tests need
	text, err := json.Marshal(vars)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"test_recorder", "test_cases", "test_phantom", "test_extensions", "test_transforms", "test_torch_compat",
		"test_script_code", "test_labels", "test_adapters", "test_holders",
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

// TestStore compares the tables that Python's dpsight.open returns with what DuckDB reads from the same Parquet files.
func TestStore(t *testing.T) {
	testkit.Rest(t)
	python := os.Getenv("DPSIGHT_TEST_NOTEBOOKS_PYTHON")
	if python == "" {
		t.Skip("DPSIGHT_TEST_NOTEBOOKS_PYTHON is unset: it names a Python with what is in requirements/notebooks.txt")
	}
	store, err := filepath.Abs("../../examples/headline")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-m", "unittest", "-v", "test_store")
	cmd.Dir = "tests"
	cmd.Env = append(os.Environ(), "DPSIGHT_TEST_STORE="+store, "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestPredict runs the Python tests of dpsight.predict, which calls the dpsight program as in a user's own Python.
func TestPredict(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "../../cmd/dpsight").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(python, "-m", "unittest", "-v", "test_predict")
	cmd.Dir = "tests"
	cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"),
		"PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestNotebook executes a notebook that records its cells.
func TestNotebook(t *testing.T) {
	testkit.Rest(t)
	python := os.Getenv("DPSIGHT_TEST_NOTEBOOKS_PYTHON")
	if python == "" {
		t.Skip("DPSIGHT_TEST_NOTEBOOKS_PYTHON is unset: it names a Python with what is in requirements/notebooks.txt")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "../../cmd/dpsight").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(python, "-m", "unittest", "-v", "test_notebook")
	cmd.Dir = "tests"
	cmd.Env = append(os.Environ(), "DPSIGHT_TEST_TORCH_PYTHON="+testkit.Python(t),
		"PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestSources runs the Python tests that need neither torch nor the phantom GPU. Most of them read the agent's
// sources.
func TestSources(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	cmd := exec.Command(python, "-m", "unittest", "-v", "test_private_names", "test_sources", "test_flight")
	cmd.Dir = "tests"
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
