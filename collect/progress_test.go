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
		c.Update(p) // must not write over the experiment's own line
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

// Lines of experiments that run at the same time are whole, and carry their names; of a line that is written over and
// over the last state is shown.
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
