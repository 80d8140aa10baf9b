package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// TestMain puts this test binary on PATH as dpsight: scripts and tests start the real program, with processes, signals
// and exit codes. The supervisor that dpsight starts is this test binary too.
func TestMain(m *testing.M) {
	testscript.Main(clean{m}, map[string]func(){"dpsight": main})
}

// clean runs the tests without the user's settings, and then removes the fixtures that the tests share.
type clean struct{ m *testing.M }

func (c clean) Run() int {
	for _, name := range []string{"DPSIGHT_STORE", "DPSIGHT_PYTHON", "COLUMNS"} {
		os.Unsetenv(name)
	}
	code := c.m.Run()
	ingesttest.Remove()
	if fixtures.dir != "" {
		os.RemoveAll(fixtures.dir)
	}
	return code
}

// A result has the output and the exit code of one call of dpsight.
type result struct {
	code           int
	stdout, stderr string
}

// dpsight runs the program in a folder.
func dpsight(t *testing.T, dir string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("dpsight", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// limited runs dpsight with a size limit of kib KiB for every file, as if the disk were full.
func limited(t *testing.T, kib int, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	limit := fmt.Sprintf(`ulimit -f %d && exec dpsight "$@"`, kib)
	cmd := exec.Command("bash", append([]string{"-c", limit, "dpsight"}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Run()
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// must runs dpsight and fails the test if the call fails.
func must(t *testing.T, dir string, args ...string) result {
	t.Helper()
	r := dpsight(t, dir, args...)
	if r.code != exitDone {
		t.Fatalf("dpsight %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r
}

// python is an interpreter with a CUDA build of torch and Opacus.
func python(t *testing.T) string {
	t.Helper()
	p := os.Getenv("DPSIGHT_TEST_PYTHON")
	if p == "" {
		t.Skip("SKIPPED: DPSIGHT_TEST_PYTHON names no Python with a CUDA build of torch, so nothing is recorded here")
	}
	return p
}

// fixtures is the folder of the stores that several tests read and none writes. Each store is made once.
var fixtures struct {
	sync.Mutex
	dir string
}

func fixture(t testing.TB, name string, fill func(dir string) error) string {
	t.Helper()
	fixtures.Lock()
	defer fixtures.Unlock()
	if fixtures.dir == "" {
		dir, err := os.MkdirTemp("", "dpsight-fixtures-")
		if err != nil {
			t.Fatal(err)
		}
		fixtures.dir = dir
	}
	dir := filepath.Join(fixtures.dir, name)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := fill(dir); err != nil {
		os.RemoveAll(dir)
		t.Fatalf("fixture %s: %v", name, err)
	}
	return dir
}

// recorded lists journals of ingest/testdata/journals, which the agent wrote on the phantom GPU.
var recorded = []struct{ name, status, reason string }{
	{"vanilla", schemas.StatusOK, ""},
	{"dpsgd", schemas.StatusOK, ""},
	{"ghost", schemas.StatusOK, ""},
	{"oom", schemas.StatusOOM, "OutOfMemoryError: CUDA out of memory"},
	{"killed", schemas.StatusKilled, "killed by SIGKILL"},
	{"bare", schemas.StatusOK, ""},
}

// journalID returns the id of the run that the fixture store has for the i-th recorded journal.
func journalID(i int) string {
	return time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC).Format("20060102T150405Z") + "-" + recorded[i].name + "-00000" +
		string(rune('0'+i))
}

// rawStore makes a store of runs from the recorded journals. The runs are not ingested, so they have no tables.
func rawStore(dir string) error {
	for i, r := range recorded {
		b, err := os.ReadFile(filepath.Join("..", "..", "ingest", "testdata", "journals", r.name+".dps.zst"))
		if err != nil {
			return err
		}
		run := filepath.Join(dir, journalID(i))
		if err := os.MkdirAll(filepath.Join(run, spool.Dir), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(run, spool.Dir, spool.SealedName(0)), b, 0o644); err != nil {
			return err
		}
		profile := "h200"
		start := time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC)
		m := &schemas.Manifest{RunID: journalID(i), Name: r.name, Source: schemas.Predicted, Profile: &profile,
			Status: r.status, Reason: r.reason,
			Command: []string{"python", "train.py"}, Params: map[string]any{"method": r.name, "batch_size": 8},
			Bare:  r.name == "bare",
			Start: start, GPUs: []schemas.GPU{{Name: "NVIDIA H200", TotalBytes: 150109880320}}, Warnings: []string{}}
		if err := schemas.WriteManifest(run, m); err != nil {
			return err
		}
	}
	return nil
}

// journalStore returns a store of runs that are made from the recorded journals and ingested.
func journalStore(t testing.TB) string {
	return fixture(t, "journals", func(dir string) error {
		if err := rawStore(dir); err != nil {
			return err
		}
		return program("ingest", dir, "--store", dir)
	})
}

// snapshots are memory snapshots that torch wrote on a real GPU.
var snapshots = filepath.Join("..", "..", "ingest", "torchsnap", "testdata")

// importedStore returns a store of imported snapshots.
func importedStore(t testing.TB) string {
	return fixture(t, "imported", func(dir string) error {
		args := []string{"ingest", "--store", dir}
		for _, name := range []string{"vanilla", "dpsgd", "fgc"} {
			args = append(args, filepath.Join(snapshots, name+".pickle.zst"))
		}
		return program(args...)
	})
}

// phantomStore returns a store of two runs, which it records on the phantom GPU when a test first needs them.
func phantomStore(t *testing.T) string {
	interpreter := python(t)
	return fixture(t, "phantom", func(dir string) error {
		for _, method := range []string{"vanilla", "dpsgd"} {
			if err := program("collect", "--device", "phantom", "--python", interpreter, "--store", dir, "--method",
				method, "--preset", "tiny",
				"--seq-len", "64", "--num-iter", "2", "--warmup-iter", "1"); err != nil {
				return err
			}
		}
		return nil
	})
}

// program runs dpsight. If dpsight fails, the returned error is its message.
func program(args ...string) error {
	out, err := exec.Command("dpsight", args...).CombinedOutput()
	if err != nil {
		return errors.New(err.Error() + "\n" + string(out))
	}
	return nil
}
