package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

// planting is a shell script that runs a command in a mount namespace of its own. In its /dev every GPU device file
// is one regular file in the folder given as the first argument. The test can therefore see who opens a GPU.
const planting = `set -e
old=$1; shift
mkdir -p "$old/dev"
mount --rbind /dev "$old/dev"
mount -t tmpfs tmpfs /dev
for f in null zero full random urandom; do touch /dev/$f; mount --bind "$old/dev/$f" /dev/$f; done
mkdir /dev/shm
mount --bind "$old/dev/shm" /dev/shm
ln -s /proc/self/fd /dev/fd
for f in nvidia0 nvidiactl nvidia-uvm; do touch /dev/$f; mount --bind "$old/gpu" /dev/$f; done
exec "$@"
`

// apart runs commands without a network and with a planted GPU device file, and reports whether a command opened that
// file.
type apart struct {
	folder string
	watch  int // file descriptor of inotify
}

func newApart(t *testing.T) *apart {
	t.Helper()
	a := &apart{folder: t.TempDir()}
	file := filepath.Join(a.folder, "gpu")
	if err := os.WriteFile(file, []byte("a GPU\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, _ := a.run("true"); r.code != 0 {
		if os.Getenv("DPSIGHT_TEST_NO_NAMESPACES") == "" { // nobody would notice a skipped test
			t.Fatalf("no namespaces can be made here (%s): nothing says then that predictions touch nothing; "+
				"DPSIGHT_TEST_NO_NAMESPACES=1 goes without", strings.TrimSpace(r.stderr))
		}
		t.Skip("DPSIGHT_TEST_NO_NAMESPACES is set: that predictions touch nothing is not tested")
	}
	var err error
	if a.watch, err = syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(a.watch) })
	if _, err := syscall.InotifyAddWatch(a.watch, file, syscall.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *apart) run(command ...string) (r result, opened bool) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("unshare", append([]string{"--map-root-user", "--net", "--mount", "sh", "-c", planting, "sh",
		a.folder}, command...)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &stdout, &stderr, a.folder
	r.code = -1
	if err := cmd.Run(); cmd.ProcessState == nil {
		fmt.Fprintln(&stderr, err)
	} else {
		r.code = cmd.ProcessState.ExitCode()
	}
	r.stdout, r.stderr = stdout.String(), stderr.String()
	if a.watch == 0 {
		return r, false
	}
	n, _ := syscall.Read(a.watch, make([]byte, 4096))
	return r, n > 0
}

// A prediction needs no network and opens no device file of a GPU that the machine has. The prediction of a rank of a
// larger world needs no network and opens no device file either.
func TestPredictionsTouchNothing(t *testing.T) {
	interpreter, a := python(t), newApart(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	reaching := "import socket\ntry:\n    socket.create_connection(" + fmt.Sprintf("(%q, %d)", "127.0.0.1",
		listener.Addr().(*net.TCPAddr).Port) +
		", 10)\nexcept OSError:\n    pass\nelse:\n    raise SystemExit('there is a network')\n"
	// First the test shows that it would notice a process that opens the GPU's file, and that the network is really
	// missing.
	if r, opened := a.run("cat", "/dev/nvidiactl"); r.code != 0 || r.stdout != "a GPU\n" || !opened {
		t.Fatalf("exit code %d, opened %v: %s%s", r.code, opened, r.stdout, r.stderr)
	}
	if r, opened := a.run(interpreter, "-c", reaching); r.code != 0 || opened {
		t.Fatalf("exit code %d, opened %v: %s", r.code, opened, r.stderr)
	}
	store := t.TempDir()
	predictions := [][]string{{"--", interpreter, scriptFile(t, reaching+stepping), "8"}}
	if testkit.WithRest() {
		ranked := scriptFile(t, strings.Replace(meeting, "SIZE", "20", 1))
		predictions = append(predictions, []string{"--world-size", "16", "--ranks", "15", "--", interpreter, ranked})
	}
	for _, args := range predictions {
		r, opened := a.run(append([]string{"dpsight", "predict", "--store", store}, args...)...)
		if r.code != exitDone || !strings.Contains(r.stdout, "predicted (phantom h200, close)") {
			t.Errorf("%q: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
		if opened {
			t.Errorf("%q: the GPU was opened", args)
		}
	}
}
