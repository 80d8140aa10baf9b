package watch

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/screen"
	"github.com/dpsight/dpsight/schemas/units"
)

// A Screen has the number of lines and columns that fit, and what the terminal can show.
type Screen struct {
	Columns, Lines int
	Colours        bool
}

// bold makes a text bold if the terminal can show it.
func (s Screen) bold(text string) string {
	if !s.Colours {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

const (
	fewestChart = 5 // fewest lines in which a curve shows anything
	labels      = 14
)

// Text describes the state of a run. The text fits into the lines and columns of the screen.
func (s Screen) Text(l *page.Live) string {
	p, d := highest(l)
	var top []string
	add := func(format string, a ...any) { top = append(top, fmt.Sprintf(format, a...)) }
	add("%s  %s", units.Printable(l.Name), standing(l, p))
	if d != nil {
		add("%s", s.share("reserved", d.Reserved, l.LimitBytes))
		peak := ""
		if d.PeakStep >= 0 {
			peak = fmt.Sprintf(" (step %d)", d.PeakStep)
		}
		add("allocated  %s, peak %s%s", units.MiB(d.Allocated), units.MiB(d.PeakAllocated), peak)
	}
	if n := len(l.Samples); n > 0 {
		ago := time.Duration(l.NowNS - l.Samples[n-1].TimeNS)
		add("device     %s in use, as NVML said %s ago", units.MiB(l.Samples[n-1].Bytes), ago.Round(time.Second))
	}
	if p != nil && p.MedianNS > 0 {
		add("step       %s, median %s", ms(p.LastNS), ms(p.MedianNS))
	}
	if p != nil && l.Planned > 0 && !l.Ended {
		done := min(1, float64(p.Steps)/float64(l.Planned))
		add("%s", screen.Bar("progress", done, screen.Left(done, time.Duration(l.NowNS-l.StartNS)), s.Columns))
	}
	var notes []string
	for _, f := range l.Findings {
		notes = append(notes, "! "+Finding(f))
	}
	if l.Trouble != "" {
		notes = append(notes, "! "+units.Printable(units.OneLine(l.Trouble)))
	}
	if room := s.Lines - len(top) - len(notes) - 1; d != nil && room >= fewestChart {
		top = append(top, "")
		top = append(top, s.chart(l, d, room-1)...)
	}
	lines := append(top, notes...)
	if len(lines) > s.Lines {
		lines = lines[:max(s.Lines, 0)]
	}
	for i := range lines {
		lines[i] = screen.Cut(lines[i], s.Columns)
	}
	if len(lines) > 0 {
		lines[0] = s.bold(lines[0])
	}
	return strings.Join(lines, "\n")
}

// standing says how far a run has come.
func standing(l *page.Live, p *page.LiveProcess) string {
	state := "running"
	switch {
	case l.Ended:
		state = "ended: " + l.Status
	case p == nil:
		state = "begins"
	}
	if l.Predicted {
		state += ", " + schemas.Predicted
	}
	elapsed := screen.Clock(time.Duration(l.NowNS - l.StartNS))
	if p == nil {
		return fmt.Sprintf("%s  %s", state, elapsed)
	}
	steps := units.Plural(int(p.Steps), "step", "steps")
	if l.Planned > 0 {
		steps = fmt.Sprintf("%d of %s", p.Steps, units.Plural(int(l.Planned), "step", "steps"))
	}
	text := fmt.Sprintf("%s  %s  %s", state, elapsed, steps)
	if p.Phase != "" && !l.Ended {
		text += "  in " + units.Printable(p.Phase)
	}
	if p.DrainNS > 0 && !l.Ended {
		text += fmt.Sprintf("  drained %.1f s ago", max(0, float64(l.NowNS-p.DrainNS)/1e9))
	}
	return text
}

// share formats the used part of a device's memory, with a bar if there is room.
func (s Screen) share(name string, bytes, limit int64) string {
	text := fmt.Sprintf("%-10s %s", name, units.MiB(bytes))
	if limit <= 0 {
		return text
	}
	text += fmt.Sprintf(" of %s", units.MiB(limit))
	part := min(1, float64(bytes)/float64(limit))
	if room := s.Columns - screen.Width(text) - 12; room >= 8 {
		full := int(math.Round(part * float64(room)))
		text += " [" + strings.Repeat("#", full) + strings.Repeat(" ", room-full) + "]"
	}
	return text + fmt.Sprintf(" %.1f %%", 100*part)
}

// chart draws the highest allocated in each column of time: with full blocks if every event was recorded, and with
// light blocks if only torch's counters are known. The time after now stays empty.
func (s Screen) chart(l *page.Live, d *page.LiveDevice, lines int) []string {
	width := s.Columns - labels - 1
	if width < 10 || len(d.Points) == 0 {
		return nil
	}
	height := lines - 1 // the last line has the axis
	span := max(1, l.NowNS-l.StartNS)
	if l.Planned > 0 && !l.Ended {
		if p, _ := highest(l); p != nil && p.Steps > 2 {
			span = max(span, int64(float64(span)*float64(l.Planned)/float64(p.Steps)))
		}
	}
	column := func(ns int64) int { return min(width-1, max(0, int((ns-l.StartNS)*int64(width)/span))) }
	bytes, counters := make([]int64, width), make([]bool, width)
	most := int64(1)
	for i := range d.Points {
		q := &d.Points[i]
		to := q.ToNS
		if i+1 < len(d.Points) && !d.Points[i+1].Counters {
			to = d.Points[i+1].FromNS
		}
		for x := column(q.FromNS); x <= column(min(to, l.NowNS)); x++ {
			if q.Allocated >= bytes[x] {
				bytes[x], counters[x] = q.Allocated, q.Counters
			}
		}
		most = max(most, q.Allocated)
	}
	eighths := []rune(" ▁▂▃▄▅▆▇█")
	out := make([]string, 0, lines)
	for row := range height {
		label := ""
		if row == 0 {
			label = units.MiB(most)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%*s ", labels, label)
		for x := range width {
			level := float64(bytes[x])/float64(most)*float64(height) - float64(height-1-row)
			switch {
			case level <= 0:
				b.WriteByte(' ')
			case counters[x]:
				b.WriteRune('░')
			default:
				b.WriteRune(eighths[min(8, max(1, int(math.Round(level*8))))])
			}
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	axis := fmt.Sprintf("%*s 0 s, to %s; light: torch's counters only", labels, "allocated",
		screen.Clock(time.Duration(span)))
	return append(out, axis)
}

func ms(ns int64) string { return fmt.Sprintf("%.1f ms", float64(ns)/1e6) }

// highest returns the device that is nearest to its memory limit, and its process.
func highest(l *page.Live) (p *page.LiveProcess, d *page.LiveDevice) {
	for i := range l.Processes {
		q := &l.Processes[i]
		if p == nil {
			p = q
		}
		for k := range q.Devices {
			if e := &q.Devices[k]; d == nil || e.PeakReserved > d.PeakReserved {
				p, d = q, e
			}
		}
	}
	return p, d
}

// Finding puts a finding of a running run into words.
func Finding(f page.LiveFinding) string {
	switch f.Kind {
	case page.LiveReservedGrows:
		return fmt.Sprintf("reserved grows each step, allocated does not: %s became %s (step %d)", units.MiB(f.From),
			units.MiB(f.To), f.Step)
	case page.LiveAllocatedGrows:
		return fmt.Sprintf("each step leaves more: %s became %s (step %d)", units.MiB(f.From),
			units.MiB(f.To), f.Step)
	case page.LiveSlower:
		return fmt.Sprintf("step %d took %s; the median is %s", f.Step, ms(f.To), ms(f.From))
	case page.LiveNearLimit:
		return fmt.Sprintf("%s of %s were reserved (step %d)", units.MiB(f.From), units.MiB(f.To), f.Step)
	}
	return fmt.Sprintf("a request for %s failed (step %d)", units.MiB(f.To), f.Step)
}
