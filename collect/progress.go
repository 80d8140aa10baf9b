package collect

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dpsight/dpsight/schemas/units"
)

// Progress is the state of a run while it lasts.
type Progress struct {
	RunID, Name string
	Elapsed     time.Duration
	// Steps is how many have ended; -1 before the agent has begun to write.
	Steps int64
	// UsedBytes is the memory in use on the visible devices as NVML counts it; nil without NVML.
	UsedBytes *int64
	Predicted bool
	// Waiting is set while the run waits for the device to be free.
	Waiting bool
	// Status is empty until the run has ended.
	Status string
	Reason string
}

// A Console shows the experiments' output and, below it, a line of progress that is written over and over. Where
// standard error is no terminal only the beginning and the end of each run are told.
type Console struct {
	mu        sync.Mutex
	err       io.Writer
	terminal  bool
	shown     bool // the progress line is on the screen
	midLine   bool // the experiment has begun a line and not ended it
	announced string
	// Of experiments that run at the same time: the newest state of each, in the order of their beginning.
	together bool
	running  []Progress
}

// Together prepares the console for experiments that run at the same time: their lines carry their names, and one line
// shows the progress of all.
func (c *Console) Together() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.together = true
}

// NewConsole returns a console on a program's standard error.
func NewConsole(stderr *os.File) *Console {
	return &Console{err: stderr, terminal: isTerminal(stderr)}
}

// Writer returns a writer for output that may go to the same terminal.
func (c *Console) Writer(w io.Writer) io.Writer { return &consoleWriter{c, w} }

type consoleWriter struct {
	c *Console
	w io.Writer
}

// Prefixed returns a writer like [Console.Writer] for one of several experiments that run at the same time. It writes
// whole lines, each behind the experiment's name.
func (c *Console) Prefixed(w io.Writer, name string) io.Writer {
	return &prefixWriter{consoleWriter{c, w}, "[" + name + "] ", nil}
}

type prefixWriter struct {
	to     consoleWriter
	prefix string
	begun  []byte // of a line; what an experiment leaves without a line's end is in its log
}

func (w *prefixWriter) Write(b []byte) (int, error) {
	w.begun = append(w.begun, b...)
	end := bytes.LastIndexByte(w.begun, '\n') + 1
	var out []byte
	for line := range bytes.Lines(w.begun[:end]) {
		// A progress bar writes its line over and over: the last state is the line.
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		line = line[bytes.LastIndexByte(line, '\r')+1:]
		out = append(append(append(out, w.prefix...), line...), '\n')
	}
	w.begun = append(w.begun[:0], w.begun[end:]...)
	if len(out) > 0 {
		if _, err := w.to.Write(out); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (w *consoleWriter) Write(b []byte) (int, error) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.c.clear()
	if len(b) > 0 {
		w.c.midLine = b[len(b)-1] != '\n'
	}
	return w.w.Write(b)
}

func (c *Console) clear() {
	if c.shown {
		fmt.Fprint(c.err, "\r\x1b[K")
		c.shown = false
	}
}

// Println writes a line of the program's own.
func (c *Console) Println(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.println(text)
}

func (c *Console) println(text string) {
	c.clear()
	if c.midLine {
		fmt.Fprintln(c.err)
		c.midLine = false
	}
	fmt.Fprintln(c.err, text)
}

// Update shows a run's progress.
func (c *Console) Update(p Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.together {
		c.updateTogether(p)
		return
	}
	if c.announced != p.RunID {
		c.announced = p.RunID
		c.println("run " + p.RunID)
	}
	switch {
	case p.Status != "":
		c.println(p.end())
	case c.terminal && !c.midLine: // a progress bar of the experiment's own is not written over
		c.clear()
		fmt.Fprint(c.err, p.line())
		c.shown = true
	}
}

func (c *Console) updateTogether(p Progress) {
	at := slices.IndexFunc(c.running, func(q Progress) bool { return q.RunID == p.RunID })
	switch {
	case p.Status != "":
		if at >= 0 {
			c.running = slices.Delete(c.running, at, at+1)
		}
		c.println(p.end())
	case at < 0:
		c.running = append(c.running, p)
		c.println("[" + p.Name + "] run " + p.RunID)
	default:
		c.running[at] = p
	}
	if c.terminal && !c.midLine && len(c.running) > 0 {
		c.clear()
		lines := make([]string, len(c.running))
		for i, q := range c.running {
			lines[i] = q.line()
		}
		fmt.Fprint(c.err, strings.Join(lines, " | "))
		c.shown = true
	}
}

func (p Progress) line() string {
	if p.Waiting {
		return fmt.Sprintf("%s  %s  waiting for the GPU to be free", p.Name, clock(p.Elapsed))
	}
	steps, memory := "starting", ""
	if p.Steps >= 0 {
		steps = fmt.Sprintf("step %d", p.Steps)
	}
	switch {
	case p.Predicted:
		memory = "  predicted"
	case p.UsedBytes != nil:
		memory = fmt.Sprintf("  %.2f GiB in use", float64(*p.UsedBytes)/(1<<30))
	}
	return fmt.Sprintf("%s  %s  %s%s", p.Name, clock(p.Elapsed), steps, memory)
}

func (p Progress) end() string {
	text := fmt.Sprintf("%s: %s after %s", p.Name, p.Status, clock(p.Elapsed))
	if p.Steps > 0 {
		text += fmt.Sprintf(", %s", units.Plural(int(p.Steps), "step", "steps"))
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

func clock(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	d = d.Round(time.Second)
	if d < time.Hour {
		return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}
