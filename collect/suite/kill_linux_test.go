package suite

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// suiteVariable is an environment variable with a suiteRequest in JSON. suiteVariable makes the test binary a program
// that runs or resumes the request's suite.
const suiteVariable = "DPSIGHT_TEST_SUITE"

type suiteRequest struct {
	Store, File, Device, Python string
	Jobs                        int
}

func TestMain(m *testing.M) {
	text, ok := os.LookupEnv(suiteVariable)
	if !ok {
		// All 17 subtests that kill suites run at the same time, since they sleep nearly all the time.
		flag.Parse()
		flag.Set("test.parallel", "17")
		os.Exit(m.Run())
	}
	os.Unsetenv(suiteVariable)
	var r suiteRequest
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		panic(err)
	}
	if err := r.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (r suiteRequest) machine() (*collect.Machine, error) {
	if r.Device == "" {
		return &collect.Machine{}, nil
	}
	return collect.OpenMachine(r.Device)
}

func (r suiteRequest) run() error {
	s, err := Load(r.File)
	if err != nil {
		return err
	}
	m, err := r.machine()
	if err != nil {
		return err
	}
	earlier, err := s.Resume(store.Open(r.Store), ResumeOptions{Machine: m})
	if err != nil {
		return err
	}
	signals, stop := collect.Interrupts()
	defer stop()
	o := Options{Template: collect.Experiment{Store: r.Store, Machine: m, Python: r.Python, Signals: signals,
		Grace: time.Second}, Resume: earlier, Jobs: r.Jobs}
	if r.Device == "" {
		o.split = func(n int) ([]*collect.Machine, error) {
			var parts []*collect.Machine
			for range n {
				parts = append(parts, &collect.Machine{})
			}
			return parts, nil
		}
	}
	out, err := s.Run(context.Background(), o)
	if err == nil && out.Err() != nil {
		err = fmt.Errorf("%d of %d runs, interrupted %t", len(out.Runs), out.Planned, out.Interrupted)
	}
	return err
}

// A moment says when a test kills a suite: a delay after the suite's start, or after the n-th experiment of this start
// began.
type moment struct {
	experiment int // n; 0 = the suite's start
	after      time.Duration
}

// killed starts the suite and sends it a signal at a moment. killed reports whether the suite was done before the
// signal.
func (r suiteRequest) killed(t *testing.T, at moment, signal syscall.Signal) (finished bool) {
	t.Helper()
	t.Logf("%s %s after the start of experiment %d", signal, at.after, at.experiment)
	before := r.begun()
	ended := make(chan struct{})
	return !r.start(t, ended, func(p *os.Process) (sent bool) {
		for at.experiment > 0 && r.begun()-before < at.experiment {
			select {
			case <-ended:
				return false
			case <-time.After(5 * time.Millisecond):
			}
		}
		select {
		case <-ended:
			return false
		case <-time.After(at.after):
			return p.Signal(signal) == nil
		}
	})
}

// runs continues the suite to its end.
func (r suiteRequest) runs(t *testing.T) {
	t.Helper()
	r.start(t, make(chan struct{}), nil)
}

// begun returns how many runs the store has, in any state.
func (r suiteRequest) begun() int {
	runs, _ := filepath.Glob(filepath.Join(r.Store, "*", schemas.ManifestFile))
	return len(runs)
}

// start runs the suite and reports whether kill ended it. kill returns whether it sent its signal. ended is closed
// when the suite has ended. If the suite fails before the signal, the test fails.
func (r suiteRequest) start(t *testing.T, ended chan struct{}, kill func(*os.Process) (sent bool)) (killed bool) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), suiteVariable+"="+string(text))
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sent := make(chan bool, 1)
	go func() { sent <- kill != nil && kill(cmd.Process) }()
	err = cmd.Wait()
	close(ended)
	killed = <-sent && err != nil
	if err != nil && !killed {
		t.Errorf("%v: %s", err, said.String())
	}
	return killed
}

// intact checks a store after a suite was killed the given number of times and then run to its end. Each experiment
// has, for each repetition, one run that ended by itself. Each kill lost at most one run per job. The suite's document
// lists all these runs, and no process of a run is left.
func (r suiteRequest) intact(t *testing.T, kills int) {
	t.Helper()
	s, err := Load(r.File)
	if err != nil {
		t.Fatal(err)
	}
	runs, damaged, err := store.Open(r.Store).Runs()
	if err != nil || len(damaged) > 0 {
		t.Fatal(damaged, err)
	}
	ended, lost := map[slot]int{}, 0
	for _, run := range runs {
		if rank(run) == cutShort {
			lost++
			continue
		}
		ended[slotOf(run)]++
	}
	for _, task := range s.Tasks() {
		if n := ended[slot{task.Key, task.Repetition}]; n != 1 {
			t.Errorf("%s, repetition %d: %d runs ended by themselves", task.Name, task.Repetition, n)
		}
	}
	if len(ended) != len(s.Tasks()) || lost > kills*max(1, r.Jobs) {
		t.Errorf("%d experiments ended, of %d; %d runs were lost to %d kills", len(ended), len(s.Tasks()), lost, kills)
	}
	suites, _, err := store.Open(r.Store).Suites()
	if err != nil || len(suites) != 1 {
		t.Fatalf("%d suites, %v", len(suites), err)
	}
	superseded := 0
	for _, x := range suites[0].Experiments {
		superseded += len(x.Superseded)
		for i, id := range x.RunIDs {
			m, err := schemas.ReadManifest(filepath.Join(r.Store, id))
			if err != nil || m.Status != schemas.StatusOK || m.Suite.Repetition != i {
				t.Errorf("run %d of %s: %+v, %v", i, x.Name, m, err)
			}
		}
		if len(x.RunIDs) != x.Repeats {
			t.Errorf("%s has %d runs of %d", x.Name, len(x.RunIDs), x.Repeats)
		}
	}
	if superseded != lost {
		t.Errorf("%d runs were lost, and %d are superseded", lost, superseded)
	}
	for _, run := range runs {
		testkit.ExpectGone(t, run.ID)
	}
	partial, _ := filepath.Glob(filepath.Join(r.Store, "suites", "*"+schemas.PartialSuffix))
	if len(partial) > 0 {
		t.Errorf("half written: %v", partial)
	}
}

// If a suite is killed at any moment, by SIGKILL, SIGTERM or SIGINT, and then resumed, it loses at most the runs that
// were being made. The resumed suite repeats no finished run.
func TestKillAndResume(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs one-second scripts for a while")
	}
	for i := range 17 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(i), uint64(time.Now().UnixNano())))
			dir := t.TempDir()
			request := suiteRequest{Store: filepath.Join(dir, "store"), File: filepath.Join(dir, "suite.yaml"),
				Jobs: 1 + i%2}
			file := "name: seconds\nrepeats: 2\ncommand: [sh, -c, \"sleep 1; echo {n}\"]\nmatrix: {n: [1, 2]}\n"
			if err := os.WriteFile(request.File, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			any := []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT}
			// The first kill comes while an experiment runs, since the four runs take at least two seconds. The second
			// kill may come at any moment, even before the first experiment or after the last.
			if request.killed(t, moment{1, time.Duration(r.Int64N(int64(1200 * time.Millisecond)))}, any[r.IntN(4)]) {
				t.Fatal("the suite ended before it was killed")
			}
			kills := 1
			if !request.killed(t, moment{0, time.Duration(r.Int64N(int64(3 * time.Second)))}, any[r.IntN(4)]) {
				kills++
			}
			request.runs(t)
			request.intact(t, kills)
			// If a complete suite is resumed, it makes no run.
			before, _ := filepath.Glob(filepath.Join(request.Store, "*", schemas.ManifestFile))
			request.runs(t)
			if after, _ := filepath.Glob(filepath.Join(request.Store, "*", schemas.ManifestFile)); len(after) != len(
				before) {
				t.Errorf("%d runs, then %d", len(before), len(after))
			}
		})
	}
}

func TestKillAndResumeOnThePhantom(t *testing.T) {
	if os.Getenv("DPSIGHT_TEST_LONG") == "" {
		t.Skip("DPSIGHT_TEST_LONG is not set")
	}
	python := testkit.Python(t)
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), uint64(time.Now().UnixNano())))
			dir := t.TempDir()
			request := suiteRequest{Store: filepath.Join(dir, "store"), File: filepath.Join(dir, "suite.yaml"),
				Device: "phantom", Python: python}
			file := "name: phantom\ndefaults: {preset: tiny, seq_len: 64, batch_size: 2}\nmatrix: {method: [vanilla, " +
				"dpsgd]}\n"
			if err := os.WriteFile(request.File, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			// The kill comes before the experiment ends: it takes more than a second, since importing torch does.
			if request.killed(t, moment{1 + i%2, time.Duration(r.Int64N(int64(time.Second)))}, syscall.SIGKILL) {
				t.Fatal("the suite ended before it was killed")
			}
			request.runs(t)
			request.intact(t, 1)
		})
	}
}
