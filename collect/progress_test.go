package collect

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

func TestConsole(t *testing.T) {
	used := int64(3 << 29)
	script := func(c *Console) {
		child := c.Writer(c.err)
		p := Progress{RunID: "id", Name: "ghost", Steps: -1}
		c.Update(p)
		child.Write([]byte("loading\n"))
		p.Elapsed, p.Steps, p.UsedBytes = 1500*time.Millisecond, 3, &used
		c.Update(p)
		child.Write([]byte("10 %"))
		c.Update(p) // this update must not overwrite the experiment's unfinished line
		p.Status, p.Reason, p.Elapsed, p.Steps = "failed", "E: x", 61*time.Second, 4
		c.Update(p)
	}
	var plain, terminal bytes.Buffer
	script(&Console{err: &plain})
	script(&Console{err: &terminal, terminal: true})
	if want := "run id\nloading\n10 %\nghost: failed after 1:01, 4 steps: E: x\n"; plain.String() != want {
		t.Errorf("on a pipe: %q", plain.String())
	}
	const clear = "\r\x1b[K"
	want := "run id\nghost  0.0 s  starting" + clear + "loading\nghost  1.5 s  step 3  1.50 GiB in use" + clear +
		"10 %\nghost: failed after 1:01, 4 steps: E: x\n"
	if terminal.String() != want {
		t.Errorf("on a terminal: %q\nwant %q", terminal.String(), want)
	}
}

// The console prints only whole lines of experiments that run at the same time, each with the experiment's name. Of a
// line that an experiment overwrites with \r, it prints the last state.
func TestTogether(t *testing.T) {
	var shown bytes.Buffer
	c := &Console{err: &shown}
	c.Together()
	a, b := c.Prefixed(&shown, "a"), c.Prefixed(&shown, "b")
	for _, w := range []struct {
		to   io.Writer
		text string
	}{{a, "begin"}, {b, "one\ntwo\n"}, {a, "ning\nhalf"}, {b, "10 %\r20 %\r\n"}, {a, " and half\r\n\n"},
		{b, "unended"}} {
		if n, err := w.to.Write([]byte(w.text)); n != len(w.text) || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, p := range []Progress{{RunID: "r1", Name: "a"}, {RunID: "r2", Name: "b"}, {RunID: "r1", Name: "a", Steps: 1},
		{RunID: "r2", Name: "b", Status: "ok"}, {RunID: "r1", Name: "a", Status: "failed", Reason: "no luck"}} {
		c.Update(p)
	}
	const want = "[b] one\n[b] two\n[a] beginning\n[b] 20 %\n[a] half and half\n[a] \n[a] run r1\n[b] run r2\nb: ok " +
		"after 0.0 s\na: failed after 0.0 s: no luck\n"
	if shown.String() != want {
		t.Errorf("got\n%s\nwant\n%s", shown.String(), want)
	}
}

func TestTogetherOnATerminal(t *testing.T) {
	var shown bytes.Buffer
	c := &Console{err: &shown, terminal: true}
	c.Together()
	c.Update(Progress{RunID: "r1", Name: "a", Steps: -1})
	c.Update(Progress{RunID: "r2", Name: "b", Steps: 3, Predicted: true})
	c.Update(Progress{RunID: "r1", Name: "a", Status: "ok"})
	lines := strings.Split(strings.ReplaceAll(shown.String(), "\r\x1b[K", "\n"), "\n")
	if last := lines[len(lines)-1]; last != "b  0.0 s  step 3  predicted" ||
		!strings.Contains(shown.String(), "a  0.0 s  starting | b  0.0 s  step 3  predicted") {
		t.Errorf("%q", shown.String())
	}
}

// On a terminal, the progress line of a predicted run states the bytes reserved so far, and a line before the script's
// output says that the values in it are fake. If stderr is no terminal, the latter is left out.
func TestProgressOfAPrediction(t *testing.T) {
	var shown bytes.Buffer
	c := &Console{err: &shown, terminal: true}
	c.FakeValues()
	c.Update(Progress{RunID: "r", Name: "a", Steps: 3, Predicted: true, ReservedBytes: new(int64(3 << 29))})
	said := strings.ReplaceAll(shown.String(), "\n  ", " ")
	if !strings.Contains(said, "losses and other values that the script prints are fake") ||
		!strings.Contains(shown.String(), "a  0.0 s  step 3  predicted, 1.50 GiB reserved") {
		t.Errorf("%q", shown.String())
	}
	shown.Reset()
	c.terminal = false
	if c.FakeValues(); shown.Len() > 0 {
		t.Errorf("%q", shown.String())
	}
}

// A suite's progress line has the number of the current run, the number of all runs, and the progress of the suite.
func TestProgressOfASuite(t *testing.T) {
	var shown bytes.Buffer
	c := &Console{err: &shown, terminal: true}
	c.Plan(0, 4)
	last := func() string {
		text := strings.ReplaceAll(shown.String(), "\n", "\r\x1b[K")
		lines := strings.Split(text, "\r\x1b[K")
		return lines[len(lines)-1]
	}
	c.Update(Progress{RunID: "r1", Name: "a", Steps: 3, Planned: 6, Predicted: true})
	if want := "1 of 4: a  0.0 s  step 3 of 6  predicted  12% |█         |"; last() != want {
		t.Errorf("%q, want %q", last(), want)
	}
	c.Update(Progress{RunID: "r1", Name: "a", Status: "ok", Steps: 6})
	c.Update(Progress{RunID: "again", Name: "a", Steps: -1, Planned: 6}) // with another answer to a read
	if want := "1 of 4: a  0.0 s  starting   0% |          |"; last() != want {
		t.Errorf("%q, want %q", last(), want)
	}
	c.Update(Progress{RunID: "again", Name: "a", Status: "ok", Steps: 6})
	c.Plan(1, 4)
	c.plan.began = time.Now().Add(-10 * time.Second)
	c.Update(Progress{RunID: "r2", Name: "b", Steps: -1, Planned: 6})
	if want := "2 of 4: b  0.0 s  starting  25% |██        |  30.0 s left"; last() != want {
		t.Errorf("%q, want %q", last(), want)
	}
	c.Update(Progress{RunID: "r2", Name: strings.Repeat("long ", 40), Steps: 1})
	if n := len([]rune(last())); n > 79 {
		t.Errorf("%d columns: %q", n, last())
	}
}

// plannedSteps is known for built-in experiments, and for predictions that --steps ends after a number of steps.
func TestPlannedSteps(t *testing.T) {
	params := map[string]any{"num_iter": int64(3), "warmup_iter": 2.0}
	for _, test := range []struct {
		e    Experiment
		want int64
	}{{Experiment{Params: params}, 8}, {Experiment{Params: params, Bare: true}, 5},
		{Experiment{Params: params, Command: []string{"python"}}, 0}, {Experiment{Steps: "auto"}, 0},
		{Experiment{Steps: "7", Command: []string{"python"}}, 7}} {
		if got := test.e.plannedSteps(); got != test.want {
			t.Errorf("%v: %d, want %d", test.e.Params, got, test.want)
		}
	}
}

// The console shows the current activity only on a terminal, and removes it when it is done.
func TestDoing(t *testing.T) {
	var plain, terminal bytes.Buffer
	for _, c := range []*Console{{err: &plain}, {err: &terminal, terminal: true}} {
		c.Reading("progress_test.go")
		c.Doing("drawing the report", 3, 6)
		c.Done()
		c.Done()
	}
	if plain.Len() > 0 {
		t.Errorf("on a pipe: %q", plain.String())
	}
	const clear = "\r\x1b[K"
	want := "reading progress_test.go" + clear + "drawing the report  50% |█████     |" + clear
	if terminal.String() != want {
		t.Errorf("on a terminal: %q, want %q", terminal.String(), want)
	}
}
