package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What tells of lines tells of exceptions, generators and coroutines in the order that the agent relies on: from Python
// 3.12 on sys.monitoring, before that the phantom GPU's tracer. Each Python that is found is tried, since the tests'
// own is of one kind only.
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

// leaveOut skips a test that cannot run here. CI has to say beforehand that it cannot, else nobody would notice.
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
