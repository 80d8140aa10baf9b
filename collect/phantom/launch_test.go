package phantom

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// If several ranks fail, the launcher's exit code is the exit code of the rank that failed first, whatever the rank's
// number.
func TestExitCodeOfRanks(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil || runtime.GOOS != "linux" || runtime.NumCPU() < 2 {
		t.Skip("two ranks run at a time, in Python on Linux")
	}
	dir := t.TempDir()
	if _, err := Unpack(dir); err != nil {
		t.Fatal(err)
	}
	launcher := filepath.Join(dir, RanksLauncher)
	// The rank whose code is not 3 exits only after the launcher has noticed the end of the rank with code 3.
	const rank = `
import os, sys, time
file, code = sys.argv[1], int(os.environ["CODE"])
if code == 3:
    with open(file + ".new", "w") as f: f.write(str(os.getpid()))
    os.rename(file + ".new", file)
else:
    while not os.path.exists(file): time.sleep(0.01)
    while os.path.exists("/proc/" + open(file).read()): time.sleep(0.01)
    time.sleep(0.5)
sys.exit(code)
`
	for i, ranks := range []string{"RANK=0,CODE=4;RANK=1,CODE=3", "RANK=0,CODE=3;RANK=1,CODE=4",
		"RANK=0,CODE=0;RANK=1,CODE=3"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		output, err := exec.CommandContext(ctx, python, launcher, ranks, python, "-c", rank,
			filepath.Join(dir, string(rune('a'+i)))).CombinedOutput()
		cancel()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 {
			t.Errorf("%s: %v, want 3\n%s", ranks, err, output)
		}
	}
}
