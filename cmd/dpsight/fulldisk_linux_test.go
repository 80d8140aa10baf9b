package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/schemas"
)

// filler is a script that allocates for some seconds without making a step. Each second the agent writes several MB of
// journal for it.
const filler = `
import sys, time, torch
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    for _ in range(1000):
        torch.empty(1000, device="cuda")
print("done")
`

// small runs dpsight collect with a store of mib MiB and returns the store's files. Something else fills the store
// after so many seconds (0 = never). Files may grow to limit KiB (0 = any size).
func small(t *testing.T, mib, limit int, fills, seconds float64) (r result, dirs []string) {
	t.Helper()
	interpreter, work := python(t), t.TempDir()
	needsSmallDisks(t)
	script := filepath.Join(work, "filler.py")
	disk, kept := filepath.Join(work, "disk"), filepath.Join(work, "kept")
	if err := errors.Join(os.WriteFile(script, []byte(filler), 0o600), os.Mkdir(disk, 0o755),
		os.Mkdir(kept, 0o755)); err != nil {
		t.Fatal(err)
	}
	fill, limited := "true", "true"
	if fills > 0 {
		fill = fmt.Sprintf(`(sleep %.2f; dd if=/dev/zero of="$DISK/filled" bs=64k 2>/dev/null) & filling=$!`, fills)
	}
	if limit > 0 {
		limited = fmt.Sprintf("ulimit -f %d", limit)
	}
	shell := fmt.Sprintf(`mount -t tmpfs -o size=%dm none "$DISK" || exit 99
%s
(%s; exec dpsight collect --device phantom --store "$DISK/store" -- "$PYTHON" "$SCRIPT" %.2f)
code=$?
[ -z "$filling" ] || wait $filling
rm -f "$DISK/filled"
[ ! -e "$DISK/store" ] || cp -a "$DISK/store/." "$KEPT"
exit $code`, mib, fill, limited, seconds)
	cmd := exec.Command("unshare", "--map-root-user", "--mount", "bash", "-c", shell)
	cmd.Env = append(os.Environ(), "DISK="+disk, "KEPT="+kept, "PYTHON="+interpreter, "SCRIPT="+script)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Run()
	dirs, _ = filepath.Glob(filepath.Join(kept, "*", schemas.ManifestFile))
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, dirs
}

// needsSmallDisks skips a test if no namespace, and so no small disk, can be made.
func needsSmallDisks(t *testing.T) {
	t.Helper()
	if err := exec.Command("unshare", "--map-root-user", "--mount", "true").Run(); err != nil {
		if os.Getenv("DPSIGHT_TEST_NO_NAMESPACES") == "" { // nobody would notice a skipped test
			t.Fatalf("no namespace can be made here, and so no small disk: %v; DPSIGHT_TEST_NO_NAMESPACES=1 goes without", err)
		}
		t.Skip("DPSIGHT_TEST_NO_NAMESPACES is set: small disks are not tested")
	}
}

// sound checks a store whose disk may have been full: the run's manifest says how the run ended, and ingest makes
// tables of what was recorded.
func sound(t *testing.T, r result, dirs []string) {
	t.Helper()
	if r.code == exitUsage {
		if len(dirs) != 0 || strings.Contains(r.stderr, "done\n") ||
			!strings.Contains(r.stderr, "and a run needs at least that") {
			t.Errorf("runs %v\n%s", dirs, r.stderr)
		}
		return
	}
	if len(dirs) != 1 || !strings.Contains(r.stderr, "done\n") {
		t.Fatalf("exit code %d, runs %v\n%s", r.code, dirs, r.stderr)
	}
	full := false
	for _, words := range []string{"no space left on device", "file too large"} {
		full = full || strings.Contains(r.stderr, words)
	}
	if want := map[bool]int{false: exitDone, true: exitFailed}[full]; r.code != want {
		t.Errorf("exit code %d, not %d\n%s", r.code, want, r.stderr)
	}
	m, err := schemas.ReadManifest(dirs[0])
	if err != nil || m.Status != schemas.StatusOK || m.End == nil {
		t.Errorf("%+v, %v", m, err)
	}
	again := dpsight(t, "", "ingest", "--again", dirs[0])
	if again.code != exitDone {
		t.Fatalf("with room: exit code %d\n%s", again.code, again.stderr)
	}
	report, err := schemas.ReadIngestReport(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Devices {
		if d.MissingEvents != 0 || d.Verdict == schemas.Lossy {
			t.Errorf("%s (%s), %d events are missing", d.Verdict, d.Reason, d.MissingEvents)
		}
	}
	if !full && (len(report.Devices) != 1 || report.Devices[0].Events == 0) {
		t.Errorf("nothing was recorded, and nothing said: %+v\n%s", report.Devices, r.stderr)
	}
}

func TestSmallStores(t *testing.T) {
	t.Parallel()
	sizes := map[int]bool{1: false, 2: true, 7: true, 9: true, 12: true, 16: true, 24: true, 32: true, 48: true, 64: true}
	for mib, rest := range sizes {
		t.Run(fmt.Sprintf("%d MiB", mib), func(t *testing.T) {
			testkit.Part(t, rest)
			r, dirs := small(t, mib, 0, 0, 2)
			if mib < 8 != (r.code == exitUsage) {
				t.Errorf("exit code %d\n%s", r.code, r.stderr)
			}
			sound(t, r, dirs)
		})
	}
}

func TestDiskFills(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		after := 0.1 + 11*random.Float64()
		t.Run(fmt.Sprintf("after %.2f s", after), func(t *testing.T) {
			testkit.Part(t, i > 0)
			r, dirs := small(t, 64, 0, after, 2)
			sound(t, r, dirs)
		})
	}
}

func TestFileLimit(t *testing.T) {
	t.Parallel()
	for i, kib := range []int{4 << 10, 12 << 10, 64, 32 << 10} {
		t.Run(fmt.Sprintf("%d KiB", kib), func(t *testing.T) {
			testkit.Part(t, i > 0)
			r, dirs := small(t, 512, kib, 0, 2)
			if kib < 8<<10 != (r.code == exitUsage) {
				t.Errorf("exit code %d\n%s", r.code, r.stderr)
			}
			sound(t, r, dirs)
		})
	}
}

// reportTwice reports on a store, fills the disk, and reports on it again: into the same folder and into a new one.
const reportTwice = `mount -t tmpfs -o size=24m none "$DISK" || exit 99
dpsight report "$STORE" -o "$DISK/out" >/dev/null 2>&1 || exit 98
cp -a "$DISK/out" "$KEPT/before"
dd if=/dev/zero of="$DISK/filled" bs=4k 2>/dev/null
for into in out new; do
  dpsight report "$STORE" -o "$DISK/$into" 2>&1 >/dev/null | tr '\n' ' '
  echo "exit ${PIPESTATUS[0]}"
done
cp -a "$DISK/out" "$KEPT/after"
ls -A "$DISK"`

// If a report cannot be written, an existing one stays as it was, and no new one appears.
func TestReportOnAFullDisk(t *testing.T) {
	t.Parallel()
	needsSmallDisks(t)
	disk, kept := t.TempDir(), t.TempDir()
	cmd := exec.Command("unshare", "--map-root-user", "--mount", "bash", "-c", reportTwice)
	cmd.Env = append(os.Environ(), "DISK="+disk, "KEPT="+kept,
		"STORE="+ingesttest.Store(t, filepath.Join("..", "..", "examples", "quick")))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 4 || lines[2] != "filled" || lines[3] != "out" {
		t.Fatalf("it printed and left:\n%s", out)
	}
	for _, said := range lines[:2] {
		if !strings.Contains(said, "no space left on device") || !strings.HasSuffix(said, fmt.Sprintf("exit %d", exitUsage)) {
			t.Errorf("it says %q", said)
		}
	}
	if out, err := exec.Command("diff", "-r", filepath.Join(kept, "before"), filepath.Join(kept, "after")).
		CombinedOutput(); err != nil {
		t.Errorf("the old report was changed: %v\n%s", err, out)
	}
}
