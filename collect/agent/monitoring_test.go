package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The source of line events must report exceptions, generators and coroutines in the order that the agent relies on.
// From Python 3.12 on the source is sys.monitoring, and before that the phantom GPU's tracer. The test tries each
// Python that it finds, since the interpreter of the other tests has only one of the two sources.
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

// leaveOut skips a test that cannot run on this machine. On CI it fails the test unless DPSIGHT_TEST_NO_MONITORING is
// set, since nobody would notice a skipped test.
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

// pythons lists this machine's Python interpreters: those with sys.monitoring, and older ones from 3.10 on, which the
// agent also supports.
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
