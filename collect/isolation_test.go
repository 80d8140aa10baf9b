//go:build linux

package collect

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpsight/dpsight/collect/nvml"
	"github.com/dpsight/dpsight/schemas"
)

func machineWith(gpus ...*fakeGPU) *Machine {
	var devices fakeDevices
	for _, g := range gpus {
		devices = append(devices, g)
	}
	return &Machine{library: devices, idle: map[string]int64{}}
}

// fakeDevices stands for the NVML library of a machine with several devices.
type fakeDevices []nvml.Device

func (l fakeDevices) Devices() []nvml.Device { return l }
func (l fakeDevices) Driver() string         { return "580.1" }
func (l fakeDevices) Close()                 {}

// waitIdle only waits: if it finds a device free after n polls, it has waited n polling intervals. It returns both
// figures.
func TestIsolationCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for looks := range 8 {
			gpu := newFakeGPU()
			gpu.busyFor = looks
			iso := machineWith(gpu).waitIdle(t.Context(), time.Minute, nil)
			if !iso.Verified || iso.Polls != looks || iso.WaitedNS != int64(looks)*int64(isolationPoll) {
				t.Errorf("free after %d looks: %+v", looks, iso)
			}
		}
	})
	// The CUDA context of the previous process is gone after a few tenths of a second, so seven polls must not take
	// much longer.
	if worst := 7 * isolationPoll; worst > 500*time.Millisecond {
		t.Errorf("seven polls take %s", worst)
	}
}

func TestIsolation(t *testing.T) {
	gpu := newFakeGPU()
	gpu.busyFor = 3
	m := machineWith(gpu)
	synctest.Test(t, func(t *testing.T) {
		iso := m.waitIdle(t.Context(), time.Minute, nil)
		if !iso.Verified || *iso.IdleBytes != 1<<30 || *iso.OtherProcesses != 0 || *iso.ThrottleReasons != 0 ||
			iso.Reason != "" {
			t.Errorf("%+v", iso)
		}
		gpu.used += 2 * idleTolerance // memory that the previous run has left in use
		iso = m.waitIdle(t.Context(), time.Minute, nil)
		if iso.Verified || iso.WaitedNS < int64(time.Minute) ||
			iso.Reason != "device 0 has 1088 MiB in use, 1024 MiB when idle" {
			t.Errorf("%+v", iso)
		}
		gpu.used = 1<<30 + 5
		if iso = m.waitIdle(t.Context(), time.Minute, nil); !iso.Verified {
			t.Errorf("%+v", iso)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		gpu.busyFor = 1000
		if iso = m.waitIdle(ctx, time.Minute, nil); iso.Verified || iso.Reason != "1 compute process on device 0" ||
			*iso.OtherProcesses != 1 {
			t.Errorf("%+v", iso)
		}
	})
}

// waitIdle waits for throttled clocks to recover. If they are still throttled after the time limit, later runs do not
// wait again, but each reports the throttling.
func TestThrottledClocks(t *testing.T) {
	gpu := newFakeGPU()
	m := machineWith(gpu)
	mask := schemas.ThrottleThermal | schemas.ThrottlePowerCap | 1 // bit 0: the device is idle
	gpu.throttle = &mask
	synctest.Test(t, func(t *testing.T) {
		const reason = "the clocks are throttled: power cap, thermal slowdown"
		for i, waits := range []time.Duration{time.Minute, 0} {
			iso := m.waitIdle(t.Context(), time.Minute, nil)
			if waited := time.Duration(iso.WaitedNS); iso.Verified || iso.Reason != reason ||
				*iso.ThrottleReasons != mask || waited < waits || waited > waits+isolationPoll {
				t.Errorf("wait %d: %+v", i, iso)
			}
		}
		mask = 1
		if iso := m.waitIdle(t.Context(), time.Minute, nil); !iso.Verified || iso.WaitedNS != 0 {
			t.Errorf("%+v", iso)
		}
		gpu.throttledFor = 5
		if iso := m.waitIdle(t.Context(), time.Minute, nil); !iso.Verified || iso.WaitedNS < 5*int64(isolationPoll) {
			t.Errorf("after a pause it is waited for again: %+v", iso)
		}
	})
}

// If isolation cannot be checked, the result is not verified and states why.
func TestUnverifiedIsolation(t *testing.T) {
	mute := newFakeGPU()
	mute.throttle = nil
	for _, test := range []struct {
		name   string
		m      *Machine
		reason string
	}{
		{"phantom", &Machine{Predicted: true}, "each process has a phantom GPU of its own, which has no clocks"},
		{"no NVML", &Machine{nvmlReason: "the NVIDIA driver is not loaded"}, "the NVIDIA driver is not loaded"},
		{"no throttle reasons", machineWith(mute), "the driver does not report whether the clocks are " +
			"throttled"},
	} {
		iso := test.m.waitIdle(t.Context(), time.Minute, nil)
		if iso.Verified || iso.Reason != test.reason || iso.ThrottleReasons != nil || iso.Polls != 0 {
			t.Errorf("%s: %+v", test.name, iso)
		}
	}
}

func TestCooldown(t *testing.T) {
	e := experiment(t, "true")
	e.Cooldown = 30 * time.Millisecond
	if iso := run(t, e).Manifest.Isolation; !iso.Verified || iso.CooldownNS < int64(e.Cooldown) {
		t.Errorf("%+v", iso)
	}
}

func TestSplit(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	os.Unsetenv("CUDA_VISIBLE_DEVICES")
	a, b := newFakeGPU(), newFakeGPU()
	a.uuid, b.uuid = "GPU-a", "GPU-b"
	b.busyFor = 1000
	m := machineWith(a, b)
	parts, err := m.Split(2)
	if err != nil || len(parts) != 2 {
		t.Fatal(parts, err)
	}
	for i, want := range []string{"GPU-a", "GPU-b"} {
		env := parts[i].environ([]string{"A=1", "CUDA_VISIBLE_DEVICES=0,1", "B=2"})
		if !slices.Equal(env, []string{"A=1", "B=2", "CUDA_VISIBLE_DEVICES=" + want}) {
			t.Errorf("part %d: environment %q", i, env)
		}
		if g := parts[i].gpus(); len(g) != 1 || g[0].UUID != want {
			t.Errorf("part %d: GPUs %+v", i, g)
		}
	}
	if iso := parts[0].waitIdle(t.Context(), 0, nil); !iso.Verified {
		t.Errorf("another part's process is in the way: %+v", iso)
	}
	if iso := parts[1].waitIdle(t.Context(), 0, nil); iso.Verified {
		t.Error("a process on the part's own GPU is not seen")
	}
	// CUDA_VISIBLE_DEVICES, which is meant for the machine's own GPUs, does not hide a phantom GPU.
	if env := (&Machine{Predicted: true}).environ([]string{"A=1", "CUDA_VISIBLE_DEVICES=", "B=2"}); !slices.Equal(env,
		[]string{"A=1", "B=2"}) {
		t.Errorf("a phantom GPU's environment is %q", env)
	}
	// An experiment on a part of the machine sees only that part's GPU.
	e := experiment(t, `echo "$CUDA_VISIBLE_DEVICES"`)
	e.Machine = parts[0]
	r := run(t, e)
	if log, _ := os.ReadFile(r.Dir + "/" + StdoutFile); string(log) != "GPU-a\n" {
		t.Errorf("it saw %q", log)
	}
	for _, test := range []struct {
		m    *Machine
		want string
	}{
		{m, "3 experiments at the same time need 3 GPUs, and 2 GPUs are visible"},
		{machineWith(a), "and 1 GPU is visible"},
		{&Machine{nvmlReason: "no driver"}, "dpsight cannot tell the GPUs apart (no driver)"},
	} {
		var usage *UsageError
		if _, err := test.m.Split(3); !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) ||
			usage.Hint() == "" {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
	if parts, err := (&Machine{Predicted: true}).Split(7); err != nil || len(parts) != 7 ||
		parts[0].found != parts[6].found {
		t.Errorf("phantom GPUs: %d, %v", len(parts), err)
	}
	if parts, err := m.Split(1); err != nil || parts[0] != m {
		t.Errorf("one part is the whole: %v", err)
	}
}

// The benchmark measures what a run on a free GPU takes in addition to its experiment, for supervisor, folders, logs
// and manifest. The benchmark fails if the fastest run takes more than half a second. The benchmark ignores slower
// runs, which other work of the machine may slow down.
func BenchmarkIsolatedRun(b *testing.B) {
	m := fakeMachine()
	store := b.TempDir()
	fastest := time.Hour
	for b.Loop() {
		began := time.Now()
		r, err := Run(b.Context(), Experiment{Store: store, Name: "bench", Command: []string{"true"},
			Params: map[string]any{}, Machine: m})
		if err != nil || r.Manifest.Status != schemas.StatusOK || !r.Manifest.Isolation.Verified {
			b.Fatal(r, err)
		}
		fastest = min(fastest, time.Since(began))
	}
	b.ReportMetric(float64(fastest), "fastest-ns/op")
	if fastest > 500*time.Millisecond {
		b.Errorf("a run costs %s beside its experiment", fastest)
	}
}
