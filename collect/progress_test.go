package collect

import (
	"bytes"
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
	want := "run id\nghost  0.0 s  starting" + clear + "loading\nghost  1.5 s  step 3  1.50 GiB in use" + clear + "10 %\nghost: failed after 1:01, 4 steps: E: x\n"
	if terminal.String() != want {
		t.Errorf("on a terminal: %q\nwant %q", terminal.String(), want)
	}
}
