package watch

import (
	"cmp"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/schemas/screen"
	"github.com/dpsight/dpsight/schemas/units"
)

// again is the time between two readings of the runs.
const again = 500 * time.Millisecond

// Reader returns the runs that are being recorded.
type Reader func() []*page.Live

// nothing returns the text that is shown if no run, or none of the named ones, is being recorded.
func nothing(names []string) string {
	if len(names) == 0 {
		return "Nothing is being recorded. A run appears here when it begins, in the same store."
	}
	return "Nothing of " + strings.Join(names, ", ") + " is being recorded. What has ended is shown by dpsight breakdown."
}

// keys is the last line of the screen.
const keys = "q quit   tab next run   p pause"

// Show shows runs on a terminal until the user ends it. With names, it shows only the runs with these names. If in or
// out is no terminal, it prints the present state once.
func Show(in *os.File, out io.Writer, names []string, read Reader) error {
	o := screen.Of(out)
	file, ok := o.Writer.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || !term.IsTerminal(int(in.Fd())) {
		return once(out, cmp.Or(o.Columns, 80), names, read)
	}
	m := model{read: read, names: names, screen: Screen{Columns: 80, Lines: 24, Colours: o.Colours}}
	_, err := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(file)).Run()
	if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) {
		return nil
	}
	return err
}

// once prints the present state of the runs that are being recorded.
func once(out io.Writer, columns int, names []string, read Reader) error {
	runs := read()
	text := nothing(names)
	for i, l := range runs {
		one := Screen{Columns: columns, Lines: 24}.Text(l)
		if i == 0 {
			text = one
		} else {
			text += "\n\n" + one
		}
	}
	_, err := io.WriteString(out, text+"\n")
	return err
}

type model struct {
	read   Reader
	names  []string
	screen Screen
	runs   []*page.Live
	known  bool   // something has been read
	chosen string // id of the chosen run; empty means the newest
	paused bool
}

type (
	tick time.Time
	seen []*page.Live
)

func (m model) Init() tea.Cmd { return m.look }

// look reads the runs on a separate goroutine, so that keys are handled meanwhile.
func (m model) look() tea.Msg { return seen(m.read()) }

func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.Columns, m.screen.Lines = msg.Width, msg.Height
	case seen:
		m.runs, m.known = msg, true
		return m, tea.Tick(again, func(t time.Time) tea.Msg { return tick(t) })
	case tick:
		if m.paused {
			return m, tea.Tick(again, func(t time.Time) tea.Msg { return tick(t) })
		}
		return m, m.look
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "esc", "ctrl+c":
			return m, tea.Quit
		case "p", "space":
			m.paused = !m.paused
		case "tab", "right", "n":
			m.next()
		}
	}
	return m, nil
}

// next shows the run after the one that is shown.
func (m *model) next() {
	if n := len(m.runs); n > 0 {
		m.chosen = m.runs[(m.shown()+1)%n].RunID
	}
}

// shown returns the index of the shown run: the newest, if the chosen run has ended.
func (m *model) shown() int {
	for i, l := range m.runs {
		if l.RunID == m.chosen {
			return i
		}
	}
	return len(m.runs) - 1
}

func (m model) View() tea.View {
	v := tea.NewView(m.text())
	v.AltScreen = true
	return v
}

func (m model) text() string {
	inner := m.screen
	inner.Lines = max(0, inner.Lines-1)
	foot := keys
	if m.paused {
		foot = "paused   " + foot
	}
	if n := len(m.runs); n > 1 {
		foot += "   " + units.Plural(n, "run", "runs")
	}
	body := nothing(m.names)
	switch {
	case len(m.runs) > 0:
		body = inner.Text(m.runs[m.shown()])
	case !m.known:
		body = ""
	}
	if m.screen.Lines < 2 {
		return body
	}
	return body + "\n" + screen.Cut(foot, m.screen.Columns)
}
