package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/dpsight/dpsight/collect/host"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// A viewer is a dpsight view process to which a test sends requests.
type viewer struct {
	cmd    *exec.Cmd
	url    string
	client *http.Client
}

// view starts dpsight view for a store, and gets the cookie that its requests need.
func view(t *testing.T, store string) *viewer {
	t.Helper()
	v := &viewer{cmd: exec.Command("dpsight", "view", "--store", store, "--no-open")}
	said, err := v.cmd.StderrPipe()
	if err == nil {
		err = v.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.cmd.Process.Kill() })
	head := make([]byte, 256)
	n, err := said.Read(head)
	go io.Copy(io.Discard, said)
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(string(head[:n]))
	token := regexp.MustCompile(`\?token=[0-9a-f]{32}`).FindString(string(head[:n]))
	if err != nil || address == "" || token == "" {
		t.Fatalf("dpsight view says %q, %v", head[:n], err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v.url, v.client = address, &http.Client{Jar: jar, Timeout: 10 * time.Second}
	if b, err := v.ask(token); err != nil || !bytes.Contains(b, []byte("<!doctype html>")) {
		t.Fatalf("the address that was printed gives %.200q, %v", b, err)
	}
	return v
}

func (v *viewer) ask(path string) ([]byte, error) {
	answer, err := v.client.Get(v.url + path)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, b)
	}
	return b, err
}

// now returns what the viewer shows about its only run, or nil if it shows nothing.
func (v *viewer) now(t *testing.T) *page.Live {
	t.Helper()
	var list struct {
		Runs []struct {
			RunID string `json:"run_id"`
		}
	}
	b, err := v.ask("live/runs")
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Runs) == 0 {
		return nil
	}
	if b, err = v.ask("live/run/" + list.Runs[0].RunID); err != nil {
		t.Fatal(err)
	}
	stream, err := ipc.NewReader(bytes.NewReader(b[4:]))
	if err != nil || !stream.Next() {
		t.Fatal("no Arrow stream: ", err)
	}
	defer stream.Release()
	var l page.Live
	if err := json.Unmarshal([]byte(stream.Record().Column(0).(*array.String).Value(0)), &l); err != nil {
		t.Fatal(err)
	}
	return &l
}

// watchedTraining is a script that makes about ten steps a second. The script's argument is the number of steps.
const watchedTraining = `
import sys, time, torch
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(int(sys.argv[1])):
    model(torch.randn(8, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.1)
`

// recorder starts dpsight collect with that script.
func recorder(t *testing.T, store string, steps int, options ...string) *exec.Cmd {
	t.Helper()
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(watchedTraining), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"collect", "--device", "phantom", "--store", store, "--record-steps", "20"}, options...)
	cmd := exec.Command("dpsight", append(args, "--", testkit.Python(t), script, fmt.Sprint(steps))...)
	var said bytes.Buffer
	cmd.Stderr, cmd.Stdout = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return cmd
}

// dpsight view shows a run's new state at most a second after each drain, and takes at most 5 % of a core. Killing the
// collector does not harm the viewer, and killing the viewer does not harm the run.
func TestViewOfARunningRun(t *testing.T) {
	testkit.Python(t)
	store := t.TempDir()
	v := view(t, store)
	if l := v.now(t); l != nil {
		t.Fatalf("an empty store shows %+v", l)
	}
	run := recorder(t, store, 60)
	var lags []time.Duration
	var last int64
	var l *page.Live
	began, before := time.Now(), cpuOf(t, v.cmd.Process.Pid)
	testkit.Eventually(t, "forty steps", func() bool {
		time.Sleep(250 * time.Millisecond) // twice as often as the page requests it
		if l = v.now(t); l == nil || len(l.Processes) == 0 {
			return false
		}
		if p := l.Processes[0]; p.DrainNS > last {
			last = p.DrainNS
			lags = append(lags, time.Duration(time.Now().UnixNano()-last))
		}
		return l.Processes[0].Steps >= 40
	})
	share := float64(cpuOf(t, v.cmd.Process.Pid)-before) / float64(time.Since(began))
	p := l.Processes[0]
	t.Logf("%d drains, lags %v, %.1f %% of a core", len(lags), lags, 100*share)
	for _, lag := range lags {
		if lag > time.Second {
			t.Errorf("a drain was shown after %v", lag)
		}
	}
	if len(lags) < 3 || share > 0.05 {
		t.Errorf("%d drains were seen; the server took %.1f %% of a core", len(lags), 100*share)
	}
	if !l.Predicted || l.Ended || p.Recording || p.Events == 0 || len(p.Devices) != 1 || p.Devices[0].Allocated == 0 ||
		l.LimitBytes == 0 {
		t.Errorf("it shows %+v", l)
	}
	v.cmd.Process.Kill()
	v.cmd.Wait()
	if err := run.Wait(); err != nil {
		t.Errorf("the run, whose viewer was killed: %v", err)
	}

	v = view(t, store) // a view of a store whose run has ended
	if b, err := v.ask("data/documents"); err != nil || !bytes.Contains(b, []byte(`"breakdown"`)) {
		t.Errorf("the ended run is not in the documents: %v", err)
	}
	run = recorder(t, store, 1000, "--name", "killed")
	testkit.Eventually(t, "its first steps", func() bool {
		time.Sleep(100 * time.Millisecond)
		l = v.now(t)
		return l != nil && len(l.Processes) > 0 && l.Processes[0].Steps > 2
	})
	run.Process.Kill()
	run.Wait()
	testkit.Eventually(t, "that the viewer tells its end", func() bool {
		time.Sleep(100 * time.Millisecond)
		l = v.now(t)
		return l != nil && l.Ended
	})
	if l.Status != schemas.StatusPartial || l.Trouble != "" || l.Processes[0].Steps < 3 {
		t.Errorf("after the collector was killed it shows %+v", l)
	}
	v.cmd.Process.Signal(syscall.SIGINT)
	if err := v.cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
}

// cpuOf returns the CPU time that a process has used so far.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	p, ok := host.Read(pid)
	if !ok {
		t.Fatalf("process %d is gone", pid)
	}
	return time.Duration(p.CPUNS)
}

// A recorded script calls the agent's functions equally often whether or not dpsight view shows the run.
func TestViewCausesNoCalls(t *testing.T) {
	testkit.Rest(t)
	script := filepath.Join("..", "..", "collect", "livetest", "testdata", "calls.py")
	calls := func(watched bool) string {
		store := t.TempDir()
		if watched {
			v := view(t, store)
			stop := make(chan struct{})
			var asking sync.WaitGroup
			asking.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
						v.ask("live/runs")
					}
				}
			})
			defer asking.Wait()
			defer close(stop)
		}
		r := dpsight(t, "", "collect", "--device", "phantom", "--lines", "none", "--record-steps", "2", "--store",
			store, "--",
			testkit.Python(t), script)
		if r.code != 0 {
			t.Fatal(r.stderr)
		}
		logs, err := filepath.Glob(filepath.Join(store, "*", "stdout.log"))
		if err != nil || len(logs) != 1 {
			t.Fatal("no output of the run", err)
		}
		out, err := os.ReadFile(logs[0])
		if err != nil {
			t.Fatal(err)
		}
		lines := regexp.MustCompile(`(?m)^CALLS .*$`).FindAllString(string(out), -1)
		if len(lines) < 2 {
			t.Fatalf("no calls are told: %s", out)
		}
		return lines[len(lines)-1]
	}
	if alone, watched := calls(false), calls(true); alone != watched {
		t.Errorf("the calls of a step, alone:\n%s\nwatched:\n%s", alone, watched)
	}
}

// running puts a run into a store as if it were being recorded: it copies a recorded journal and holds the run's
// lock.
func running(t *testing.T, store string) {
	t.Helper()
	dirs, err := filepath.Glob("../../examples/headline/*-vanilla-*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no recording", err)
	}
	marks, frames, err := spool.Unpack(filepath.Join(dirs[0], spool.Dir, spool.SealedName(0)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := schemas.ReadManifest(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(store, m.RunID)
	m.Status, m.End = schemas.StatusPartial, nil
	err = errors.Join(os.MkdirAll(filepath.Join(dir, spool.Dir), 0o755), schemas.WriteManifest(dir, m),
		os.WriteFile(filepath.Join(dir, spool.Dir, "1-1.frames"), frames, 0o600),
		os.WriteFile(filepath.Join(dir, spool.Dir, "1-1.marks"), marks, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	lock, err := os.Open(filepath.Join(dir, spool.Dir))
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
}

// On a terminal, dpsight watch draws as much as fits, also after the terminal's size has changed. dpsight watch uses no
// colours if the user wants none, reacts to keys, and leaves the terminal as it was. If the output of dpsight watch is
// no terminal, it prints once.
func TestWatchOnATerminal(t *testing.T) {
	store := t.TempDir()
	if r := must(t, "", "watch", "--store", store); r.stdout != "Nothing is being recorded. A run appears here when "+
		"it begins, in the same store.\n" {
		t.Errorf("an empty store: %q", r.stdout)
	}
	running(t, store)
	if r := must(t, "", "watch", "--store", store); !strings.HasPrefix(r.stdout, "vanilla  running") {
		t.Errorf("no terminal: %q", r.stdout)
	}
	for _, environment := range []string{"NO_COLOR=1", "TERM=xterm"} {
		ours, theirs, err := pty.Open()
		if err != nil {
			t.Fatal("no pseudoterminal can be opened: ", err)
		}
		defer ours.Close()
		size := func(columns, lines uint16) {
			if err := pty.Setsize(ours, &pty.Winsize{Rows: lines, Cols: columns}); err != nil {
				t.Fatal(err)
			}
		}
		size(80, 24)
		before, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("dpsight", "watch", "--store", store)
		cmd.Env = append(cmd.Environ(), "TERM=xterm", environment)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var shown bytes.Buffer
		go func() {
			buf := make([]byte, 4096)
			for {
				n, err := ours.Read(buf)
				mu.Lock()
				shown.Write(buf[:n])
				mu.Unlock()
				if err != nil {
					return
				}
			}
		}()
		sees := func(what string) string {
			t.Helper()
			var text string
			testkit.Eventually(t, what, func() bool {
				mu.Lock()
				defer mu.Unlock()
				text = shown.String()
				return strings.Contains(text, what)
			})
			mu.Lock()
			shown.Reset()
			mu.Unlock()
			return text
		}
		text := sees("60,716.64 MiB")
		if !strings.Contains(text, "q quit") || !strings.Contains(text, "█") ||
			!strings.Contains(text, "42.6 %") {
			t.Errorf("%s: it shows %q", environment, text)
		}
		if bold := strings.Contains(text, "\x1b[1m"); bold != (environment == "TERM=xterm") {
			t.Errorf("%s: bold %t: %q", environment, bold, text)
		}
		size(40, 8)
		sees("…")
		size(200, 50)
		sees("q quit   tab next run   p pause")
		ours.Write([]byte("p"))
		sees("paused")
		ours.Write([]byte("q"))
		if err := cmd.Wait(); err != nil {
			t.Errorf("q ends it with %v", err)
		}
		after, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS)
		if err != nil || *after != *before {
			t.Errorf("the terminal is left otherwise: %+v, and was %+v, %v", after, before, err)
		}
		theirs.Close()
	}
}
