package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// A tty is a pseudoterminal on which dpsight collect runs.
type tty struct {
	keys  *os.File
	cmd   *exec.Cmd
	store string
	mu    sync.Mutex
	shown bytes.Buffer
}

// onTerminal starts dpsight collect of a shell script on a terminal of 30 lines and 100 columns.
func onTerminal(t *testing.T, script string, change func(*exec.Cmd)) *tty {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Fatal("no pseudoterminal can be opened: ", err)
	}
	if err := pty.Setsize(ours, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	s := &tty{keys: ours, store: filepath.Join(t.TempDir(), "store")}
	s.cmd = exec.Command("dpsight", "collect", "--device", "phantom", "--store", s.store, "--", "sh", "-c", script)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = theirs, theirs, theirs
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if change != nil {
		change(s.cmd)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		ours.Close()
	})
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := ours.Read(buf)
			s.mu.Lock()
			s.shown.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *tty) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

func (s *tty) expect(t *testing.T, text string) {
	t.Helper()
	for range 600 {
		if strings.Contains(s.text(), text) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the terminal never shows %q:\n%s", text, s.text())
}

func (s *tty) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// log returns the contents of one of the run's files with the script's output.
func (s *tty) log(t *testing.T, name string) string {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(s.store, "*", name))
	if len(paths) != 1 {
		t.Fatalf("%s: %v", name, paths)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// If dpsight's streams are a terminal, the script's are too. The script can ask the user and learns the terminal's
// size, also after a change. The script's logs have exactly what the script wrote and what the terminal echoed.
func TestScriptHasATerminal(t *testing.T) {
	t.Parallel()
	s := onTerminal(t, `[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo three; stty size; printf 'name? '; read name
echo "hello $name" >&2
until [ "$(stty size)" = "40 120" ]; do sleep 0.1; done; echo resized; : < /dev/tty && echo own; cat; echo over`, nil)
	s.expect(t, "three")
	s.expect(t, "30 100")
	s.expect(t, "name? ")
	if err := pty.Setsize(s.keys, &pty.Winsize{Rows: 40, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	s.press(t, "ada\r")
	s.expect(t, "hello ada")
	s.expect(t, "resized")
	s.expect(t, "own")
	s.press(t, "\x04") // Ctrl-D ends the script's input
	s.expect(t, "over")
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, s.text())
	}
	if got, want := s.log(t, schemas.StdoutFile), "three\n30 100\nname? ada\nresized\nown\nover\n"; got != want {
		t.Errorf("the log has %q", got)
	}
	if got := s.log(t, schemas.StderrFile); got != "hello ada\n" {
		t.Errorf("the log of errors has %q", got)
	}
}

// If one of dpsight's streams is redirected, no stream of the script is a terminal.
func TestRedirectedStreamsAreNone(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "err"))
	if err != nil {
		t.Fatal(err)
	}
	s := onTerminal(t, `for i in 0 1 2; do [ -t $i ] && echo "$i is one"; done; echo end`,
		func(cmd *exec.Cmd) { cmd.Stderr = file })
	if err := s.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := s.log(t, schemas.StdoutFile); got != "end\n" {
		t.Errorf("%q", got)
	}
}

func TestControlC(t *testing.T) {
	t.Parallel()
	s := onTerminal(t, `trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done`, nil)
	s.expect(t, "ready")
	s.press(t, "\x03")
	s.expect(t, "caught")
	s.cmd.Wait()
	if code := s.cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(s.text(), "interrupted by SIGINT") {
		t.Errorf("exit code %d\n%s", code, s.text())
	}
}

// Even if a signal ends dpsight, the terminal then echoes again what the user types. The shell that started dpsight
// does not restore that.
func TestTerminalIsRestored(t *testing.T) {
	t.Parallel()
	for _, end := range []unix.Signal{unix.SIGQUIT, unix.SIGKILL, unix.SIGABRT} {
		file := filepath.Join(t.TempDir(), "pid")
		s := onTerminal(t, `echo ready; exec sleep 60`, func(cmd *exec.Cmd) {
			shell := exec.Command("sh", "-c", `sh -c 'echo $$ > "$0"; exec "$@"' "$@"; echo over; exec sleep 60`, "sh", file)
			cmd.Path, cmd.Args = shell.Path, append(shell.Args, cmd.Args...)
		})
		echoes := func() bool {
			mode, err := unix.IoctlGetTermios(int(s.keys.Fd()), unix.TCGETS)
			const lines = unix.ICANON | unix.ECHO | unix.IEXTEN
			return err == nil && mode.Lflag&lines == lines && mode.Iflag&unix.ICRNL != 0
		}
		s.expect(t, "ready")
		testkit.Eventually(t, "the mode that passes on what is typed", func() bool { return !echoes() })
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		unix.Kill(pid, end)
		s.expect(t, "over")
		testkit.Eventually(t, "the echo after "+end.String(), echoes)
	}
}

// With --quiet the script has a terminal too, but its output does not appear on it.
func TestQuietScriptHasATerminal(t *testing.T) {
	t.Parallel()
	s := onTerminal(t, `[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo three; echo 'name?'; read name; echo "hello $name" >&2`,
		func(cmd *exec.Cmd) { cmd.Args = slices.Insert(cmd.Args, 2, "--quiet") })
	// The test waits for the question: the terminal would echo an earlier answer before the question.
	testkit.Eventually(t, "the question", func() bool {
		paths, _ := filepath.Glob(filepath.Join(s.store, "*", schemas.StdoutFile))
		if len(paths) != 1 {
			return false
		}
		text, err := os.ReadFile(paths[0])
		return err == nil && strings.HasSuffix(string(text), "name?\n")
	})
	s.press(t, "ada\r")
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, s.text())
	}
	if got, want := s.log(t, schemas.StdoutFile), "three\nname?\nada\n"; got != want {
		t.Errorf("the log has %q", got)
	}
	if text := s.text(); strings.Contains(text, "three") || strings.Contains(text, "hello") {
		t.Errorf("the terminal shows %q", text)
	}
}

// Ctrl-Z stops dpsight and the script, and both continue together.
func TestControlZ(t *testing.T) {
	t.Parallel()
	s := onTerminal(t, `echo "pid $$."; n=0; while [ $n -lt 40 ]; do sleep 0.05; n=$((n+1)); done; echo gone on`, nil)
	s.expect(t, ".")
	s.expect(t, "pid ")
	time.Sleep(100 * time.Millisecond)
	s.press(t, "\x1a")
	testkit.Eventually(t, "the stop", func() bool {
		var status unix.WaitStatus
		pid, err := unix.Wait4(s.cmd.Process.Pid, &status, unix.WUNTRACED|unix.WNOHANG, nil)
		return err == nil && pid == s.cmd.Process.Pid && status.Stopped()
	})
	time.Sleep(3 * time.Second) // a script that is not stopped would end in this time
	if strings.Contains(s.text(), "gone on") {
		t.Error("the script went on")
	}
	s.cmd.Process.Signal(unix.SIGCONT)
	s.expect(t, "gone on")
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, s.text())
	}
}
