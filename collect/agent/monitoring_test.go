package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The source of line events must report exceptions, generators and coroutines in the order that the agent relies
// on. It is sys.monitoring from Python 3.12 on, and the phantom GPU's tracer before that. The test tries each
// Python that it finds, since the tests' own has only one of the two.
func TestMonitoring(t *testing.T) {
	monitored, older := pythons(t)
	for _, python := range monitored {
		t.Run(python, func(t *testing.T) { expectOrder(t, python) })
	}
	if len(monitored) == 0 {
		t.Run("3.12", func(t *testing.T) { leaveOut(t, "no Python from 3.12 on is installed") })
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		leaveOut(t, "there is no gcc to compile the tracer of older Pythons")
	}
	tracer := filepath.Join(t.TempDir(), "lines.so")
	source := filepath.Join("..", "phantom", "csrc", "lines.c")
	compile := exec.Command(gcc, "-Wall", "-Werror", "-shared", "-fPIC", "-o", tracer, source, "-ldl")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, python := range older {
		t.Run(python, func(t *testing.T) { expectOrder(t, python, "LD_PRELOAD="+tracer) })
	}
}

// leaveOut skips a test that cannot run here. CI must declare this in advance, since a skipped test would go
// unnoticed.
func leaveOut(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" && os.Getenv("DPSIGHT_TEST_NO_MONITORING") == "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

func expectOrder(t *testing.T, python string, variables ...string) {
	t.Helper()
	cmd := exec.Command(python, filepath.Join("tests", "monitoring.py"))
	cmd.Env = append(os.Environ(), append(variables, "PYTHONPATH=python", "PYTHONDONTWRITEBYTECODE=1")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// pythons lists those on this machine that have sys.monitoring, and those that the agent runs under without.
func pythons(t *testing.T) (monitored, older []string) {
	t.Helper()
	home, _ := os.UserHomeDir()
	kept, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", "3.*", "bin", "python"))
	for _, name := range append(kept, "python3.14", "python3.13", "python3.12", "python3",
		os.Getenv("DPSIGHT_TEST_PYTHON")) {
		python, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out, err := exec.Command(python, "-c", "import sys; print(sys.version_info >= (3, 12), "+
			"sys.version_info >= (3, 10))").Output()
		switch {
		case err != nil:
		case string(out) == "True True\n":
			monitored = append(monitored, python)
		case string(out) == "False True\n":
			older = append(older, python)
		}
	}
	return monitored, older
}
