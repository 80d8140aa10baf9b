package main

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// shownOn runs dpsight on a terminal with so many columns and returns what it shows.
func shownOn(t *testing.T, columns uint16, environment []string, args ...string) string {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Fatal("no pseudoterminal can be opened: ", err)
	}
	defer ours.Close()
	if err := pty.Setsize(ours, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("dpsight", args...)
	cmd.Stdout, cmd.Stderr = theirs, theirs
	cmd.Env = append(cmd.Environ(), environment...)
	var shown bytes.Buffer
	done := make(chan struct{})
	go func() {
		io.Copy(&shown, ours) // the copy ends with an error once dpsight's side of the terminal is closed
		close(done)
	}()
	err = cmd.Run()
	theirs.Close()
	<-done
	if err != nil {
		t.Fatalf("dpsight %s: %v\n%s", strings.Join(args, " "), err, shown.String())
	}
	return strings.ReplaceAll(shown.String(), "\r\n", "\n")
}

// On a terminal of 80 columns the list of runs fits, and a note names the hidden columns. With --wide, or if stdout is
// no terminal, the table has all columns. Only a terminal gets colours, and none with NO_COLOR or TERM=dumb.
func TestFitsTheTerminal(t *testing.T) {
	store := filepath.Join("..", "..", "examples", "headline")
	plain := must(t, "", "runs", "--store", store)
	plainColours := shownOn(t, 80, []string{"TERM=xterm"}, "runs", "--store", store)
	narrow := shownOn(t, 80, []string{"NO_COLOR=1"}, "runs", "--store", store)
	fits80(t, "runs", narrow)
	if !strings.Contains(narrow, "more columns (") || strings.Contains(narrow, "\x1b") {
		t.Errorf("hidden columns are not named, or it is coloured:\n%s", narrow)
	}
	bare := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(plainColours)
	if bare != narrow || bare == plainColours {
		t.Errorf("in colours:\n%q\nwithout:\n%q", plainColours, narrow)
	}
	if got := shownOn(t, 80, []string{"NO_COLOR=1"}, "runs", "--store", store, "--wide"); got != plain.stdout {
		t.Errorf("--wide:\n%s\nwant\n%s", got, plain.stdout)
	}
	if got := shownOn(t, 300, []string{"TERM=dumb"}, "runs", "--store", store); got != plain.stdout {
		t.Errorf("a terminal of 300 columns:\n%s\nwant\n%s", got, plain.stdout)
	}
}

// The tables of the commands listed here fit 80 columns.
func TestTablesFit80Columns(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	example := func(name string) string { return filepath.Join("..", "..", "examples", name) }
	baseline := filepath.Join(t.TempDir(), "baseline.json")
	must(t, "", "check", "vanilla", "bk", "--store", example("headline"), "--write-baseline", baseline)
	for _, line := range []string{
		"runs", "breakdown fgc bk", "breakdown bk --known", "breakdown bk --by module,phase", "phases bk",
		"overhead vanilla bk --baseline vanilla", "time bk", "cost fgc bk", "findings bk", "ladder bk", "timeline bk",
		"explain fgc bk", "compare vanilla bk --rows name --cols method", "compare fgc bk",
		"check vanilla bk --baseline " + baseline, "collect --suite quick --dry-run --device phantom",
		"report vanilla bk --out " + filepath.Join(t.TempDir(), "report"),
		"accuracy --predicted ../../examples/accuracy/predicted-development.json " +
			"../../examples/accuracy/recorded-development.json",
	} {
		args := append(strings.Fields(line), "--store", example("headline"))
		r := must(t, "", args...)
		fits80(t, "dpsight "+line, r.stdout)
		fits80(t, "dpsight "+line+", stderr", r.stderr)
	}
}
