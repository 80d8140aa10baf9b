package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/nvml"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// collectVariable is an environment variable with a collectRequest in JSON. collectVariable makes the test binary a
// collector that runs the request's command.
const collectVariable = "DPSIGHT_TEST_COLLECT"

type collectRequest struct {
	Store   string
	Device  string // "" = a fakeGPU
	Command []string
}

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(collectVariable); ok {
		var r collectRequest
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			panic(err)
		}
		os.Unsetenv(collectVariable)
		signals, stop := Interrupts()
		defer stop()
		machine := fakeMachine()
		if r.Device != "" {
			var err error
			if machine, err = OpenMachine(r.Device); err != nil {
				panic(err)
			}
		}
		_, err := Run(context.Background(), Experiment{Store: r.Store, Command: r.Command, Signals: signals,
			Stdout: os.Stdout, Grace: time.Second,
			Machine: machine})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fakeGPU stands for a device in NVML, whose figures a test chooses.
type fakeGPU struct {
	used      int64
	quiet     int // the first so many readings of the memory show a GiB less in use
	processes []nvml.Process
	busyFor   int // the first so many process lists have a foreign process
	energies  int
	delay     time.Duration // time that each reading of the gauges takes
	stall     time.Duration // additional time of the first reading of the gauges
	uuid      string
	throttle  *int64 // the gauges' throttle reasons
	// throttledFor is for how many further readings the gauges show a throttled device.
	throttledFor int
}

func newFakeGPU() *fakeGPU { return &fakeGPU{used: 1 << 30, uuid: "GPU-fake", throttle: new(int64)} }

func (f *fakeGPU) Info() nvml.Info {
	return nvml.Info{Name: "Fake GPU", UUID: f.uuid, TotalBytes: 80 << 30}
}

func (f *fakeGPU) Memory() (nvml.Memory, error) {
	if f.quiet > 0 {
		f.quiet--
		return nvml.Memory{Used: f.used - 1<<30, Free: 81<<30 - f.used, Reserved: 500 << 20, API: 2}, nil
	}
	return nvml.Memory{Used: f.used, Free: 80<<30 - f.used, Reserved: 500 << 20, API: 2}, nil
}

func (f *fakeGPU) Processes() ([]nvml.Process, error) {
	if f.busyFor > 0 {
		f.busyFor--
		return []nvml.Process{{PID: 1}}, nil
	}
	return f.processes, nil
}

func (f *fakeGPU) Gauges() nvml.Gauges {
	if d := f.delay + f.stall; d > 0 {
		f.stall = 0
		time.Sleep(d)
	}
	sm, power := int32(93), int64(512_000)
	if f.throttledFor > 0 {
		f.throttledFor--
		slow := int64(schemas.ThrottleHardware)
		return nvml.Gauges{SMPercent: &sm, PowerMW: &power, ThrottleReasons: &slow}
	}
	return nvml.Gauges{SMPercent: &sm, PowerMW: &power, ThrottleReasons: f.throttle}
}

func (f *fakeGPU) EnergyMJ() (int64, bool) {
	f.energies++
	return int64(f.energies) * 1000, true
}

type fakeLibrary struct{ gpu *fakeGPU }

func (l fakeLibrary) Devices() []nvml.Device { return []nvml.Device{l.gpu} }
func (l fakeLibrary) Driver() string         { return "580.1" }
func (l fakeLibrary) Close()                 {}

func fakeMachine() *Machine {
	return &Machine{library: fakeLibrary{newFakeGPU()}, idle: map[string]int64{}}
}

// experiment returns an experiment that runs a shell script on a machine with a fakeGPU.
func experiment(t *testing.T, script string) Experiment {
	t.Helper()
	return Experiment{Store: t.TempDir(), Name: "test", Command: []string{"sh", "-c", script},
		Params:  map[string]any{"n": 3},
		Machine: fakeMachine(), Grace: 2 * time.Second, Version: "test"}
}

// run runs an experiment and checks that no process, no goroutine and no temporary folder of it is left.
func run(t *testing.T, e Experiment) *Result {
	t.Helper()
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	before := runtime.NumGoroutine()
	r, err := Run(t.Context(), e)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	testkit.ExpectGone(t, r.Manifest.RunID)
	for deadline := time.Now().Add(2 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
	if left, _ := filepath.Glob(filepath.Join(scratch, "dpsight-*")); len(left) > 0 {
		t.Errorf("left in the temporary folder: %v", left)
	}
	if Running(r.Dir) {
		t.Error("the run still counts as running")
	}
	m, err := schemas.ReadManifest(r.Dir)
	if err != nil {
		t.Fatalf("the manifest: %v", err)
	}
	if m.Status != r.Manifest.Status || m.End == nil {
		t.Errorf("on disk: status %s, end %v; returned: %s", m.Status, m.End, r.Manifest.Status)
	}
	partial, _ := filepath.Glob(filepath.Join(r.Dir, "*"+schemas.PartialSuffix))
	if len(partial) > 0 {
		t.Errorf("left in the run: %v", partial)
	}
	return r
}

func readPID(path string) int {
	b, _ := os.ReadFile(path)
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}
