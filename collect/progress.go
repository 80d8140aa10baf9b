package collect

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/screen"
	"github.com/dpsight/dpsight/schemas/units"
)

// Progress is the state of a running experiment.
type Progress struct {
	RunID, Name string
	Elapsed     time.Duration
	// Steps is the number of steps that have ended. Steps is -1 before the agent has begun to write.
	Steps int64
	// Planned is the number of steps that there will be, or 0 if unknown.
	Planned int64
	// UsedBytes is the memory in use on the visible devices by NVML, or nil without NVML.
	UsedBytes *int64
	// ReservedBytes is the highest reserved memory of the phantom GPU so far. ReservedBytes is nil before the first
	// allocation, and on a GPU.
	ReservedBytes *int64
	Predicted     bool
	// Waiting is true while the run waits for a free device.
	Waiting bool
	// Status is empty until the run has ended.
	Status string
	Reason string
}

// A Console shows the experiments' output and, below it, a line of progress that it keeps rewriting. If standard error
// is no terminal, it only prints the beginning and the end of each run.
type Console struct {
	mu        sync.Mutex
	err       io.Writer
	file      *os.File // the file behind err
	terminal  bool
	shown     bool // whether the progress line is on the screen
	midLine   bool // whether the experiment has written an unfinished line
	announced string
	// For concurrent experiments: the latest state of each, in the order in which they began.
	together bool
	running  []Progress
	plan     series
	brief    bool
}

// Brief turns off the lines at the beginning and end of each run. A run that does not end well keeps them.
func (c *Console) Brief() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.brief = true
}

// A series counts runs: how many are expected, how many have begun, and since when.
type series struct {
	runs, begun int
	began       time.Time
}

// Plan announces that run i of runs begins, counted from 0, so that progress can show how many remain. A repeated run
// has the same number again.
func (c *Console) Plan(i, runs int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plan.runs != runs || i < c.plan.begun {
		c.plan = series{runs: runs, began: time.Now()}
	}
	c.plan.begun = i + 1
}

// Together prepares the console for concurrent experiments: their lines have their names, and one line shows the
// progress of all.
func (c *Console) Together() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.together = true
}

// NewConsole returns a console on a program's standard error.
func NewConsole(stderr *os.File) *Console {
	return &Console{err: stderr, file: stderr, terminal: isTerminal(stderr)}
}

// Terminal returns the terminal to which the console writes, or nil if there is none.
func (c *Console) Terminal() *os.File {
	if !c.terminal {
		return nil
	}
	return c.file
}

// Writer returns a writer for output that may go to the same terminal.
func (c *Console) Writer(w io.Writer) io.Writer { return &consoleWriter{c, w} }

type consoleWriter struct {
	c *Console
	w io.Writer
}

// Prefixed returns a writer like [Console.Writer], for one of several concurrent experiments. Prefixed's writer writes
// whole lines, each after the experiment's name.
func (c *Console) Prefixed(w io.Writer, name string) io.Writer {
	return &prefixWriter{consoleWriter{c, w}, "[" + units.Printable(name) + "] ", nil}
}

type prefixWriter struct {
	to     consoleWriter
	prefix string
	begun  []byte // an unfinished line; if it stays unfinished, only the log has it
}

func (w *prefixWriter) Write(b []byte) (int, error) {
	w.begun = append(w.begun, b...)
	end := bytes.LastIndexByte(w.begun, '\n') + 1
	var out []byte
	for line := range bytes.Lines(w.begun[:end]) {
		// A progress bar rewrites its line many times. Only its last state is shown.
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

// FakeValues prints, on a terminal and before a script on the phantom GPU writes there, that its losses are fake.
func (c *Console) FakeValues() {
	if c.terminal {
		c.Println("dpsight: note: losses and other values that the script prints are fake: the phantom GPU computes nothing")
	}
}

// Println prints a line of dpsight itself.
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
	screen.Println(c.err, units.Printable(text))
}

// Doing shows the current activity on a terminal until something else is shown or [Console.Done] is called. If of is
// not 0, it also shows the numbers done and of.
func (c *Console) Doing(text string, done, of int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.terminal || c.midLine {
		return
	}
	columns := cmp.Or(screen.Columns(c.file), 80)
	line := screen.Cut(units.Printable(text), columns-1)
	if of > 0 {
		line = screen.Bar(units.Printable(text), float64(done)/float64(of), 0, columns)
	}
	c.clear()
	fmt.Fprint(c.err, line)
	c.shown = true
}

// During does what [Console.Doing] does, and calls [Console.Done] once done equals of.
func (c *Console) During(text string, done, of int) {
	if done == of {
		c.Done()
	} else {
		c.Doing(text, done, of)
	}
}

// Reading shows that a file or a folder is being read, and how large it is.
func (c *Console) Reading(path string) {
	text := "reading " + path
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Size() >= 1<<20 {
		text += fmt.Sprintf(" (%.0f MiB)", float64(st.Size())/(1<<20))
	}
	c.Doing(text, 0, 0)
}

// Done removes what [Console.Doing] shows.
func (c *Console) Done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}

// Update shows a run's progress.
func (c *Console) Update(p Progress) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.together {
		c.updateTogether(p)
		return
	}
	if c.announced != p.RunID && !c.brief {
		c.announced = p.RunID
		c.println("run " + p.RunID)
	}
	if p.Status != "" {
		if c.clear(); !c.brief || p.Status != schemas.StatusOK {
			c.println(p.end())
		}
		return
	}
	c.show([]Progress{p})
}

// show draws the line of progress on a terminal, unless the experiment is drawing a progress bar.
func (c *Console) show(running []Progress) {
	if !c.terminal || c.midLine || len(running) == 0 {
		return
	}
	lines, done, took := make([]string, len(running)), 0.0, running[0].Elapsed
	for i := range running {
		lines[i], done = running[i].line(), done+running[i].share()
	}
	text := strings.Join(lines, " | ")
	known := running[0].Planned > 0
	if c.plan.runs > 1 {
		ended := max(c.plan.begun-len(running), 0)
		text = fmt.Sprintf("%d of %d: %s", ended+1, c.plan.runs, text)
		done, took, known = (float64(ended)+done)/float64(c.plan.runs), time.Since(c.plan.began), true
	}
	columns := cmp.Or(screen.Columns(c.file), 80)
	if known {
		text = screen.Bar(units.Printable(text), done, screen.Left(done, took), columns)
	} else {
		text = screen.Cut(units.Printable(text), columns-1)
	}
	c.clear()
	fmt.Fprint(c.err, text)
	c.shown = true
}

// share returns how much of a run is done, or 0 if unknown.
func (p Progress) share() float64 {
	if p.Planned <= 0 || p.Steps <= 0 {
		return 0
	}
	return min(1, float64(p.Steps)/float64(p.Planned))
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
	c.show(c.running)
}

func (p Progress) line() string {
	if p.Waiting {
		return fmt.Sprintf("%s  %s  waiting for the GPU to be free", p.Name, screen.Clock(p.Elapsed))
	}
	steps, memory := "starting", ""
	if p.Steps >= 0 {
		steps = fmt.Sprintf("step %d", p.Steps)
	}
	if p.Steps >= 0 && p.Planned > 0 {
		steps += fmt.Sprintf(" of %d", p.Planned)
	}
	switch {
	case p.Predicted && p.ReservedBytes != nil:
		memory = fmt.Sprintf("  predicted, %.2f GiB reserved", float64(*p.ReservedBytes)/(1<<30))
	case p.Predicted:
		memory = "  predicted"
	case p.UsedBytes != nil:
		memory = fmt.Sprintf("  %.2f GiB in use", float64(*p.UsedBytes)/(1<<30))
	}
	return fmt.Sprintf("%s  %s  %s%s", p.Name, screen.Clock(p.Elapsed), steps, memory)
}

func (p Progress) end() string {
	text := fmt.Sprintf("%s: %s after %s", p.Name, p.Status, screen.Clock(p.Elapsed))
	if p.Steps > 0 {
		text += fmt.Sprintf(", %s", units.Plural(int(p.Steps), "step", "steps"))
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
