package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Read must also parse /proc for a process whose name has brackets and blanks.
func TestReadOddName(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("there is no sleep to run")
	}
	name := filepath.Join(t.TempDir(), "a) S 1 (b")
	b, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, "100")
	cmd.Args[0] = "sleep" // a multi-call binary needs this name to act as sleep
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	p, ok := Read(cmd.Process.Pid)
	if !ok || p.Parent != os.Getpid() || p.PID != cmd.Process.Pid {
		t.Errorf("%+v, %t", p, ok)
	}
}

func TestTree(t *testing.T) {
	cmd := exec.Command("sh", "-c", `setsid sh -c 'sleep 100 & wait' & wait`)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "MARK=of this test"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		for _, p := range append(Descendants(cmd.Process.Pid), Process{PID: cmd.Process.Pid}) {
			if q, err := os.FindProcess(p.PID); err == nil {
				q.Kill()
			}
		}
		cmd.Wait()
	}
	defer end()
	for deadline := time.Now().Add(10 * time.Second); len(Descendants(cmd.Process.Pid)) < 2; time.Sleep(
		5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("descendants %+v", Descendants(cmd.Process.Pid))
		}
	}
	var found []int
	tree := NewTree(cmd.Process.Pid, func(pid int) { found = append(found, pid) })
	u := tree.Read(time.Now())
	if u.Processes != 2 || u.RSSBytes < 100<<10 {
		t.Errorf("%+v", u)
	}
	for _, p := range Descendants(cmd.Process.Pid) {
		if !slices.Contains(found, p.PID) {
			t.Errorf("process %d was not found", p.PID)
		}
		if v, ok := Environ(p.PID, "MARK"); !ok || v != "of this test" {
			t.Errorf("environment: %q, %t", v, ok)
		}
		if _, ok := Environ(p.PID, "ARK"); ok {
			t.Error("found a variable by the end of its name")
		}
	}
	end()
	if u := tree.Read(time.Now().Add(time.Hour)); u.Processes != 0 {
		t.Errorf("after the end: %+v", u)
	}
}

func TestFacts(t *testing.T) {
	f := Facts()
	if f.OS != "linux" || f.Cores < 1 || f.MemoryBytes < 64<<20 || f.Name == "" {
		t.Errorf("%+v", f)
	}
}
