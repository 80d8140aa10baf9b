// Package livetest_test runs whole experiments on the phantom GPU, as a user would. The tests compare the results of
// experiments with what the scripts print, with torch's counters, and with what was on the disk when a process was
// killed.
package livetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
)

// collectVariable is an environment variable with a collectRequest in JSON. collectVariable makes the test binary
// record and ingest the request's command, as dpsight collect does.
const collectVariable = "DPSIGHT_LIVETEST_COLLECT"

// hangLimit is longer than a run of these tests takes even on a busy machine.
const hangLimit = 2 * time.Minute

type collectRequest struct {
	Store, Scratch string
	Command        []string
}

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(collectVariable); ok {
		os.Unsetenv(collectVariable)
		if err := collectAndIngest(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func collectAndIngest(text string) error {
	var r collectRequest
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	every := 1 << 30 // otherwise recording ends after 100 steps
	result, err := collect.Run(context.Background(), collect.Experiment{Store: r.Store, Name: "killed",
		Command: r.Command,
		Device:  "phantom", Grace: 2 * time.Second, Stdout: os.Stdout, Environ: environment(), RecordSteps: &every})
	if err != nil {
		return err
	}
	_, err = ingest.Run(result.Dir, ingest.Options{Version: "test"})
	return err
}

func long() bool { return os.Getenv("DPSIGHT_TEST_LONG") != "" }

// environment returns this process's environment without the variables that would make runs differ between
// machines, and with more.
func environment(more ...string) []string {
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "DPSIGHT_") && !strings.HasPrefix(name, "PYTORCH_") &&
			name != "CUDA_VISIBLE_DEVICES" {
			env = append(env, e)
		}
	}
	return append(append(env, "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1"), more...)
}

func script(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// slots limits the experiments that run at the same time to two, since each takes a core and hundreds of MB.
var slots = make(chan struct{}, 2)

func takeSlot(t *testing.T) {
	t.Helper()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
}

// output keeps what an experiment prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// recorded is a recorded run: its folder, its manifest, its ingest report, and what the script printed.
type recorded struct {
	dir            string
	manifest       *schemas.Manifest
	report         *schemas.IngestReport
	stdout, stderr string
}

// record runs a command on the phantom GPU and ingests the run.
func record(t *testing.T, environ []string, command ...string) *recorded {
	t.Helper()
	return recordAs(t, environ, func(*collect.Experiment) {}, command...)
}

// recordAs records like record, with the settings that how changes.
func recordAs(t *testing.T, environ []string, how func(*collect.Experiment), command ...string) *recorded {
	t.Helper()
	return recordWithin(t, hangLimit, environ, how, command...)
}

// recordWithin records like recordAs, with a time limit other than hangLimit.
func recordWithin(t *testing.T, limit time.Duration, environ []string, how func(*collect.Experiment),
	command ...string) *recorded {
	t.Helper()
	var stdout, stderr output
	type outcome struct {
		result *collect.Result
		err    error
	}
	store := t.TempDir()
	done := make(chan outcome, 1)
	go func() {
		e := collect.Experiment{Store: store, Name: "live", Command: command, Device: "phantom",
			Grace: 2 * time.Second, Stdout: &stdout, Stderr: &stderr, Environ: environ,
			LikeAGPU: true}
		how(&e)
		r, err := collect.Run(t.Context(), e)
		done <- outcome{r, err}
	}()
	var o outcome
	select {
	case o = <-done:
	case <-time.After(limit):
		t.Fatalf("the run hangs\n%s", stderr.String())
	}
	if o.err != nil {
		t.Fatalf("collect: %v\n%s", o.err, stderr.String())
	}
	r := &recorded{dir: o.result.Dir, manifest: o.result.Manifest, stdout: stdout.String(), stderr: stderr.String()}
	var err error
	if r.report, err = ingest.Run(r.dir, ingest.Options{Version: "test"}); err != nil {
		t.Fatalf("ingest: %v", err)
	}
	testkit.ExpectGone(t, r.manifest.RunID)
	expectNoPartial(t, r.dir)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("status %s (%s), manifest warnings %q, ingest warnings %q\nstdout:\n%s\nstderr:\n%s",
				r.manifest.Status, r.manifest.Reason,
				r.manifest.Warnings, r.report.Warnings, tail(r.stdout), tail(r.stderr))
		}
	})
	return r
}

func tail(s string) string {
	const most = 3000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

func expectNoPartial(t *testing.T, dir string) {
	t.Helper()
	if left := files(t, dir, func(name string) bool {
		return strings.HasSuffix(name, schemas.PartialSuffix)
	}); len(left) > 0 {
		t.Errorf("half-written files are left: %q", left)
	}
}

// files lists the files below a folder whose names match, by relative path.
func files(t *testing.T, dir string, match func(name string) bool) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && match(d.Name()) {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}
