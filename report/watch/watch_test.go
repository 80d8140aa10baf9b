package watch

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/screen"
)

// sample returns a live run. The first half of its points comes from events, and the second half from counters.
func sample(name string) *page.Live {
	const second, gib = int64(1e9), int64(1) << 30
	l := &page.Live{RunID: "20261129T000000Z-" + name, Name: name, StartNS: 1000 * second, NowNS: 1040 * second,
		Status: schemas.StatusRunning, Planned: 20, LimitBytes: 80 * gib, Predicted: true,
		Samples: []page.LiveSample{{TimeNS: 1039 * second, Bytes: 70 * gib}},
		Findings: []page.LiveFinding{{Kind: page.LiveAllocatedGrows, Step: 9, From: 1 * gib, To: 2 * gib},
			{Kind: page.LiveNearLimit, Step: 8, From: 75 * gib, To: 80 * gib}}}
	d := page.LiveDevice{Allocated: 30 * gib, Reserved: 75 * gib, PeakAllocated: 60 * gib, PeakReserved: 75 * gib,
		PeakStep: 3}
	for i := range int64(40) {
		at := l.StartNS + i*second
		d.Points = append(d.Points, page.LivePoint{FromNS: at, TimeNS: at, ToNS: at + second, Step: i / 4,
			Allocated: (20 + i) * gib, Reserved: 75 * gib, Low: gib, Counters: i >= 20})
	}
	l.Processes = []page.LiveProcess{{Steps: 10, Phase: "forward", DrainNS: 1039*second + second/2, MedianNS: second,
		LastNS: 2 * second, Devices: []page.LiveDevice{d}}}
	return l
}

func TestText(t *testing.T) {
	text := Screen{Columns: 80, Lines: 23}.Text(sample("ghost"))
	for _, want := range []string{"ghost  running, predicted  40.0 s  10 of 20 steps  in forward  drained 0.5 s ago",
		"reserved   76,800.00 MiB of 81,920.00 MiB [", "] 93.8 %", "allocated  30,720.00 MiB, peak 61,440.00 MiB (step 3)",
		"device     71,680.00 MiB in use, as NVML said 1s ago", "step       2000.0 ms, median 1000.0 ms",
		"progress", "50%", "40.0 s left", "60,416.00 MiB", "░", "█",
		"! each step leaves more: 1,024.00 MiB became 2,048.00 MiB (step 9)",
		"! 76,800.00 MiB of 81,920.00 MiB were reserved (step 8)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) { // the planned second half of the run is empty
		if chart := []rune(strings.TrimRight(line, "\n")); strings.ContainsAny(line, "░█▄") && len(chart) > labels+2+33 {
			t.Errorf("something is drawn right of now: %q", line)
		}
	}
	if strings.Contains(text, "\x1b") || !strings.HasPrefix(Screen{Columns: 80, Lines: 3, Colours: true}.Text(
		sample("ghost")), "\x1b[1mghost") {
		t.Error("colours stand where none are, or none where they are wanted")
	}
}

// For every terminal size and state of the runs, no line is too long, and there are not too many lines.
func TestTextFits(t *testing.T) {
	r := rand.New(rand.NewPCG(30, 3))
	for range 200 {
		l := sample(strings.Repeat("a long name \x1b[31m", r.IntN(12)))
		switch r.IntN(5) {
		case 0:
			l.Processes = nil
		case 1:
			l.Processes[0].Devices = nil
		case 2:
			l.Planned, l.LimitBytes, l.Ended = 0, 0, true
		case 3:
			l.Trouble = "the journal\ncannot be read"
		}
		s := Screen{Columns: 1 + r.IntN(200), Lines: r.IntN(60)}
		text := s.Text(l)
		if strings.Contains(text, "\x1b") {
			t.Fatalf("a name reaches the terminal as it is: %q", text)
		}
		lines := strings.Split(text, "\n")
		if len(lines) > max(1, s.Lines) {
			t.Fatalf("%+v: %d lines", s, len(lines))
		}
		for _, line := range lines {
			if screen.Width(line) > s.Columns {
				t.Fatalf("%+v: %d columns: %q", s, screen.Width(line), line)
			}
		}
	}
}

func TestKeys(t *testing.T) {
	read := 0
	runs := []*page.Live{sample("one"), sample("two"), sample("three")}
	m := model{read: func() []*page.Live { read++; return runs }, screen: Screen{Columns: 80, Lines: 24}}
	step := func(msg tea.Msg) tea.Cmd {
		next, cmd := m.Update(msg)
		m = next.(model)
		return cmd
	}
	if m.text() != "\n"+keys {
		t.Errorf("before anything is known: %q", m.text())
	}
	step(m.Init()())
	shows := func(name string) {
		t.Helper()
		if !strings.HasPrefix(m.text(), name+"  ") || !strings.Contains(m.text(), keys) {
			t.Errorf("it does not show %s:\n%s", name, m.text())
		}
	}
	shows("three")
	step(tea.KeyPressMsg{Code: tea.KeyTab})
	shows("one")
	step(tea.KeyPressMsg{Code: tea.KeyTab})
	shows("two")
	runs = runs[:1] // only the first run is left
	step(m.look())
	shows("one")
	step(tea.KeyPressMsg{Code: 'p', Text: "p"})
	before := read
	if cmd := step(tick{}); cmd == nil || !strings.Contains(m.text(), "paused") {
		t.Error("a pause ends it, or is not said")
	}
	step(tea.KeyPressMsg{Code: 'p', Text: "p"})
	if step(tick{})(); read != before+1 {
		t.Errorf("%d readings, want %d", read, before+1)
	}
	step(tea.WindowSizeMsg{Width: 40, Height: 5})
	if n := strings.Count(m.text(), "\n"); n > 4 {
		t.Errorf("%d lines on a terminal of 5", n+1)
	}
	runs = nil
	step(m.look())
	if !strings.Contains(m.text(), "Nothing is being recorded") {
		t.Errorf("with no runs:\n%s", m.text())
	}
	if cmd := step(tea.KeyPressMsg{Code: 'q', Text: "q"}); fmt.Sprint(cmd()) != fmt.Sprint(tea.Quit()) {
		t.Error("q does not end it")
	}
}

func TestOnce(t *testing.T) {
	var b strings.Builder
	if err := once(&b, 80, nil, func() []*page.Live { return []*page.Live{sample("one"), sample("two")} }); err != nil ||
		!strings.HasPrefix(b.String(), "one  ") || !strings.Contains(b.String(), "\n\ntwo  ") {
		t.Errorf("%v: %s", err, b.String())
	}
	b.Reset()
	if err := once(&b, 80, nil, func() []*page.Live { return nil }); err != nil || b.String() != nothing(nil)+"\n" {
		t.Errorf("%v: %s", err, b.String())
	}
	if text := nothing([]string{"one", "two"}); !strings.HasPrefix(text, "Nothing of one, two is being recorded") {
		t.Errorf("of what was named: %s", text)
	}
}
