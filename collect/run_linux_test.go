package collect

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dpsight/dpsight/collect/mask"
	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// The manifest states how many bytes the processes on a phantom device held together. If that is unknown, it has a
// warning.
func TestDeviceUsesAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices")
	shared, err := phantom.NewShared(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	page := binary.NativeEndian.AppendUint64(nil, 2) // processes
	page = binary.NativeEndian.AppendUint64(page, 5<<20)
	page = binary.NativeEndian.AppendUint64(page, 6<<20)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(page); err != nil {
		t.Fatal(err)
	}
	r := &recording{plan: &plan{}, secrets: mask.Gather(nil, nil, nil),
		manifest: &schemas.Manifest{Phantom: &schemas.Phantom{}}}
	r.keepUses(shared)
	if got := r.manifest.Phantom.Devices; !slices.Equal(got,
		[]schemas.DeviceUse{{Device: 0, Processes: 2, ReservedBytes: 5 << 20, TakenBytes: 6 << 20}}) ||
		len(r.manifest.Warnings) > 0 {
		t.Errorf("%+v, %q", got, r.manifest.Warnings)
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if r.keepUses(shared); len(r.manifest.Warnings) != 1 || !strings.Contains(r.manifest.Warnings[0],
		"together is unknown: ") {
		t.Errorf("%q", r.manifest.Warnings)
	}
}

func TestRunRecords(t *testing.T) {
	var out, errOut bytes.Buffer
	e := experiment(t,
		`echo one; echo two >&2; test -n "$DPSIGHT_SPOOL" && test -d "$DPSIGHT_SPOOL" &&
			echo "$DPSIGHT_MODE $DPSIGHT_SOURCE"; sleep 0.3`)
	e.Stdout, e.Stderr = &out, &errOut
	r := run(t, e)
	m := r.Manifest
	if m.Status != schemas.StatusOK || m.ExitCode == nil || *m.ExitCode != 0 || m.Reason != "" {
		t.Errorf("status %s, exit code %v, reason %q", m.Status, m.ExitCode, m.Reason)
	}
	const want = "one\nfull measured\n"
	log, _ := os.ReadFile(filepath.Join(r.Dir, StdoutFile))
	if string(log) != want || out.String() != want {
		t.Errorf("stdout: log %q, shown %q", log, out.String())
	}
	if errOut.String() != "two\n" {
		t.Errorf("stderr shown: %q", errOut.String())
	}
	samples, err := schemas.Samples.Read(r.Dir)
	if err != nil || int64(len(samples)) != m.Collector.Samples || len(samples) < 10 {
		t.Errorf("%d samples, the manifest says %d: %v", len(samples), m.Collector.Samples, err)
	}
	if b := m.Collector.Built; b == nil || *b != Built() {
		t.Errorf("recorded by %+v", b)
	}
	hosts, err := schemas.HostSamples.Read(r.Dir)
	if err != nil || len(hosts) == 0 || hosts[0].RSSBytes == 0 || hosts[0].Processes == 0 {
		t.Errorf("host samples %+v: %v", hosts, err)
	}
	if m.Isolation == nil || !m.Isolation.Verified || *m.Isolation.IdleBytes != 1<<30 {
		t.Errorf("isolation %+v", m.Isolation)
	}
	if len(m.GPUs) != 1 || m.GPUs[0].UUID != "GPU-fake" || *m.Driver != "580.1" {
		t.Errorf("GPUs %+v", m.GPUs)
	}
	if len(m.Warnings) != 1 || !strings.Contains(m.Warnings[0], "nothing was recorded") {
		t.Errorf("warnings %q: a run without torch must say so", m.Warnings)
	}
}

func TestRunFails(t *testing.T) {
	r := run(t, experiment(t, `echo "  " >&2; echo "the last word" >&2; echo >&2; exit 3`))
	if m := r.Manifest; m.Status != schemas.StatusFailed || *m.ExitCode != 3 || m.Reason != "the last word" {
		t.Errorf("status %s, exit code %v, reason %q", m.Status, m.ExitCode, m.Reason)
	}
}

func TestRunKilledBySignal(t *testing.T) {
	m := run(t, experiment(t, `kill -SEGV $$`)).Manifest
	if m.Status != schemas.StatusKilled || m.ExitCode != nil || m.Signal == nil || *m.Signal != "SIGSEGV" {
		t.Errorf("status %s, signal %v, exit code %v", m.Status, m.Signal, m.ExitCode)
	}
}

// escapes are shell scripts that start a process in a way in which its parent loses sight of it.
var escapes = map[string]string{
	"child":       `sleep 1000 & echo $! > "$1"`,
	"own session": `setsid sleep 1000 & sleep 0.2; pgrep -f "sleep 1000" >/dev/null; echo $! > "$1"`,
	"double fork": `(setsid sh -c 'sleep 1000 & echo $! > "$0"' "$1" &) ; sleep 0.3`,
	"deaf to TERM": `(trap "" TERM HUP INT
		exec setsid sh -c 'trap "" TERM; echo $$ > "$0"; while :; do sleep 0.1; done' "$1") & sleep 0.3`,
	"without environ":    `(env -i setsid sleep 1000 & echo $! > "$1")`,
	"stopped":            `sh -c 'echo $$ > "$0"; kill -STOP $$; sleep 1000' "$1" & sleep 0.3`,
	"holding the output": `setsid sh -c 'echo $$ > "$0"; while :; do echo noise; sleep 0.1; done' "$1" & sleep 0.3`,
}

func TestNoProcessOutlivesItsRun(t *testing.T) {
	for name, script := range escapes {
		t.Run(name, func(t *testing.T) {
			pidFile := filepath.Join(t.TempDir(), "pid")
			e := experiment(t, "")
			e.Command = []string{"sh", "-c", script, "sh", pidFile}
			begin := time.Now()
			m := run(t, e).Manifest
			pid := readPID(pidFile)
			if pid == 0 {
				t.Fatal("the script did not start its process")
			}
			if testkit.Alive(pid) {
				t.Errorf("process %d is alive", pid)
				syscall.Kill(pid, syscall.SIGKILL)
			}
			if m.Status != schemas.StatusOK || m.Collector.LeftRunning == 0 {
				t.Errorf("status %s (%s), %d left running", m.Status, m.Reason, m.Collector.LeftRunning)
			}
			if d := time.Since(begin); d > 10*time.Second {
				t.Errorf("it took %s", d)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	e := experiment(t, "")
	e.Command = []string{"sh", "-c",
		`trap "echo deaf" TERM; setsid sleep 1000 & echo $! > "$1"; while :; do sleep 0.05; done`, "sh", pidFile}
	e.Timeout, e.Grace = 300*time.Millisecond, 200*time.Millisecond
	r := run(t, e)
	m := r.Manifest
	if m.Status != schemas.StatusTimeout || !strings.Contains(m.Reason, "300ms") {
		t.Errorf("status %s, reason %q", m.Status, m.Reason)
	}
	if r.Interrupted {
		t.Error("a time limit is no interruption: the next run of a suite must follow")
	}
	if testkit.Alive(readPID(pidFile)) {
		t.Error("its child is alive")
	}
	log, _ := os.ReadFile(filepath.Join(r.Dir, StdoutFile))
	if !strings.Contains(string(log), "deaf") {
		t.Errorf("it was not asked to end before it was killed: %q", log)
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	for _, test := range []struct {
		name, script string
		signals      []os.Signal
		status       string
		log          string
	}{
		{"TERM ends it", `echo ready; exec sleep 1000`, []os.Signal{syscall.SIGTERM}, schemas.StatusKilled, "ready\n"},
		{"INT is handled", `trap "echo saved; exit 0" INT; echo ready; while :; do sleep 0.05; done`,
			[]os.Signal{os.Interrupt}, schemas.StatusOK, "ready\nsaved\n"},
		{"HUP is handled and fails", `trap "exit 9" HUP; echo ready; while :; do sleep 0.05; done`,
			[]os.Signal{syscall.SIGHUP}, schemas.StatusKilled, "ready\n"},
		{"the second INT kills", `trap "echo no" INT TERM; echo ready; while :; do sleep 0.05; done`,
			[]os.Signal{os.Interrupt, os.Interrupt}, schemas.StatusKilled, "ready\nno\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := experiment(t, test.script)
			signals := make(chan os.Signal)
			e.Signals = signals
			ready := make(writes, 16)
			e.Stdout = ready
			go func() {
				<-ready
				for _, s := range test.signals {
					signals <- s
					time.Sleep(300 * time.Millisecond)
				}
			}()
			r := run(t, e)
			if r.Manifest.Status != test.status || !r.Interrupted {
				t.Errorf("status %s (%s), interrupted %t", r.Manifest.Status, r.Manifest.Reason, r.Interrupted)
			}
			log, _ := os.ReadFile(filepath.Join(r.Dir, StdoutFile))
			if string(log) != test.log {
				t.Errorf("log %q, want %q", log, test.log)
			}
		})
	}
}

// writes is a writer that signals each write.
type writes chan struct{}

func (w writes) Write(b []byte) (int, error) {
	select {
	case w <- struct{}{}:
	default:
	}
	return len(b), nil
}

func TestCancelledContext(t *testing.T) {
	e := experiment(t, `echo ready; sleep 1000`)
	ready := make(writes, 16)
	e.Stdout = ready
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-ready; cancel() }()
	r, err := Run(ctx, e)
	if err != nil || r.Manifest.Status != schemas.StatusKilled || !r.Interrupted {
		t.Errorf("%+v, %v", r, err)
	}
}

// If the channel of signals is closed, the run is not interrupted, neither while it waits for the device nor later.
func TestClosedSignals(t *testing.T) {
	e := experiment(t, `sleep 0.1`)
	gpu := newFakeGPU()
	gpu.busyFor = 2
	e.Machine = &Machine{library: fakeLibrary{gpu}, idle: map[string]int64{}}
	signals := make(chan os.Signal)
	close(signals)
	e.Signals = signals
	r, err := Run(t.Context(), e)
	if err != nil || r.Manifest.Status != schemas.StatusOK || r.Interrupted {
		t.Errorf("%+v, %v", r, err)
	}
}

// A run that cannot begin leaves no folder in the store. In this test the path is so long that the folder can be made,
// but no file in it.
func TestNoFolderWithoutManifest(t *testing.T) {
	e := experiment(t, "true")
	const longest = unix.PathMax - 1 // the zero byte at the end does not count
	want := longest - len("/") - len(NewRunID(time.Now().UTC(), e.Name))
	store := t.TempDir()
	for len(store) < want {
		n := min(100, want-len(store)-1)
		if rest := want - len(store) - 1 - n; rest == 1 {
			n--
		}
		store += "/" + strings.Repeat("d", n)
	}
	if err := os.MkdirAll(store, 0o755); err != nil {
		t.Fatal(err)
	}
	e.Store = store
	_, err := Run(t.Context(), e)
	var usage *UsageError
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("got %v, want a usage error", err)
	}
	if left, err := os.ReadDir(store); err != nil || len(left) > 0 {
		t.Errorf("left in the store: %v, %v", left, err)
	}
}

func TestRefusals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	for _, test := range []struct {
		name string
		edit func(*Experiment)
		want string
	}{
		{"no such command", func(e *Experiment) {
			e.Command = []string{"no-such-command"}
		}, "no-such-command: no such command"},
		{"empty command", func(e *Experiment) { e.Command = []string{""} }, "the command's first word is empty"},
		{"a path to nothing", func(e *Experiment) {
			e.Command = []string{"./nothing"}
		}, "./nothing: no such file or directory"},
		{"no such script", func(e *Experiment) {
			e.Command = []string{program(t, t.TempDir(), "python3", "#!/bin/sh\n"), "-u", "-X", "dev", "train.py", "-c"}
		}, "train.py: no such script"},
		{"not executable", func(e *Experiment) { e.Command = []string{file} }, "permission denied"},
		{"nothing to run", func(e *Experiment) { e.Command, e.Params = nil, nil }, "no command to run"},
		{"store in a file", func(e *Experiment) { e.Store = file }, "cannot be written"},
		{"no such folder", func(e *Experiment) { e.Dir = "/no/such/folder" }, "is not a folder"},
		{"unknown device", func(e *Experiment) { e.Machine, e.Device = nil, "tpu" }, `unknown device "tpu"`},
		{"unknown profile", func(e *Experiment) { e.Machine, e.Device = nil, "phantom:abacus" }, `"abacus"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := experiment(t, "true")
			test.edit(&e)
			_, err := Run(t.Context(), e)
			var usage *UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want a usage error with %q", err, test.want)
			}
			if left, _ := os.ReadDir(e.Store); len(left) > 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
}
