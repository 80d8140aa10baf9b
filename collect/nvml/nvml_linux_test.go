//go:build linux && cgo

package nvml

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stub is the C source of an NVML library as an older driver has it. stub lacks the second version of the call for
// memory, the clock event reasons and the energy counter.
const stub = `
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned gpu, mem; } utilization;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process;
static int dev;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int r) { return "stub error"; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { strncpy(s, "470.1", n); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = &dev; return i ? 2 : 0; }
int nvmlDeviceGetName(void *d, char *s, unsigned n) { strncpy(s, "Stub GPU", n); return 0; }
int nvmlDeviceGetUUID(void *d, char *s, unsigned n) { strncpy(s, "GPU-stub", n); return 0; }
int nvmlDeviceGetMemoryInfo(void *d, memory *m) { m->total = 1000; m->used = 300; m->free = 700; return 0; }
int nvmlDeviceGetUtilizationRates(void *d, utilization *u) { u->gpu = 50; u->mem = 20; return 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *v) { *v = 123456; return 0; }
int nvmlDeviceGetTemperature(void *d, int s, unsigned *v) { return 3; }
int nvmlDeviceGetClockInfo(void *d, int c, unsigned *v) { *v = c == 1 ? 1980 : 2619; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *v) { *v = 4; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, process *p) {
	unsigned room = *n; *n = 2;
	if (room < 2) return 7;
	p[0].pid = 11; p[0].used = 77; p[1].pid = 12; p[1].used = ~0ull;
	return 0;
}
`

const stubVariable = "DPSIGHT_TEST_NVML_STUB"

func TestOpenWithoutDriver(t *testing.T) {
	if files, _ := filepath.Glob("/dev/nvidia[0-9]*"); len(files) > 0 {
		t.Skip("this machine has a GPU")
	}
	_, err := Open()
	var unavailable *UnavailableError
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "no NVIDIA driver is installed") {
		t.Errorf("got %v", err)
	}
}

// The dynamic loader reads LD_LIBRARY_PATH only when a process begins, so the test runs itself in another process that
// finds the stub library.
func TestOldDriver(t *testing.T) {
	if os.Getenv(stubVariable) != "" {
		checkStub(t)
		return
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("there is no gcc to make a driver with")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "nvml.c")
	if err := os.WriteFile(source, []byte(stub), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, "-shared", "-fPIC", "-w", "-o", filepath.Join(dir, "libnvidia-ml.so.1"),
		source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestOldDriver$")
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir, stubVariable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func checkStub(t *testing.T) {
	l, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Driver() != "470.1" || len(l.Devices()) != 1 {
		t.Fatalf("driver %q, %d devices", l.Driver(), len(l.Devices()))
	}
	d := l.Devices()[0]
	if info := d.Info(); info != (Info{0, "Stub GPU", "GPU-stub", 1000}) {
		t.Errorf("info %+v", info)
	}
	if m, err := d.Memory(); err != nil || m != (Memory{Used: 300, Free: 700, API: 1}) {
		t.Errorf("memory %+v, %v", m, err)
	}
	p, err := d.Processes()
	if err != nil || len(p) != 2 || p[0].PID != 11 || *p[0].Bytes != 77 || p[1].PID != 12 || p[1].Bytes != nil {
		t.Errorf("processes %+v, %v", p, err)
	}
	g := d.Gauges()
	if *g.SMPercent != 50 || *g.MemoryPercent != 20 || *g.PowerMW != 123456 || g.TemperatureC != nil ||
		*g.SMClockMHz != 1980 || *g.MemoryClockMHz != 2619 || *g.ThrottleReasons != 4 {
		t.Errorf("gauges %+v", g)
	}
	if _, ok := d.EnergyMJ(); ok {
		t.Error("a driver without energy gave some")
	}
	w := NewWatch(l.Devices(), time.Millisecond)
	if w.native == nil {
		t.Fatal("a real library's memory is not read in C")
	}
	readings := w.Read(3)
	if len(readings) != 3 {
		t.Fatalf("%d readings in 3 ticks", len(readings))
	}
	for i, r := range readings {
		if !r.OK || r.Memory != (Memory{Used: 300, Free: 700, API: 1}) || i > 0 && r.TimeNS <= readings[i-1].TimeNS {
			t.Errorf("reading %d: %+v", i, r)
		}
	}
	time.AfterFunc(20*time.Millisecond, w.Stop)
	if n := len(w.Read(1 << 20)); n == 1<<20 {
		t.Error("a reading of 17 minutes was not stopped")
	}
	if n := len(w.Read(5)); n != 1 {
		t.Errorf("%d readings after the stop", n)
	}
}
