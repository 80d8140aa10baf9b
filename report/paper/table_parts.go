package paper

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/schemas"
)

// heads returns the columns of a table with a column for each entry.
func (b *builder) heads(entries []exhibits.Entry) (heads []head) {
	for i := range entries {
		l := b.labels[entries[i].Key]
		h := head{text: l.short()}
		first, second, two := strings.Cut(l.Head, "|")
		if len(entries) >= 6 && two {
			h.lines = []Text{l.said(first), l.said(second)}
		} else if len(entries) >= 6 && l.Head != "" {
			h.text = l.said(l.Head)
		}
		heads = append(heads, h)
	}
	return heads
}

// where returns the end of a sentence that names the values of the swept parameters, if a table shows only one
// combination.
func (b *builder) where() Text {
	if len(b.paper.Groups) < 2 {
		return nil
	}
	return join(Text{{kind: words, text: " at "}}, place(&b.paper, b.paper.Last()))
}

// componentsTable makes the table of the components of each peak.
func (b *builder) componentsTable() *Grid {
	c := exhibits.ComponentsOf(b.paper.Last())
	if len(c.Entries) == 0 {
		return nil
	}
	u := b.memoryUnit()
	g := &Grid{Name: "components", First: plain("Component"), Heads: b.heads(c.Entries)}
	none := false
	cells := func(bytes []int64) (out []Cell) {
		for i, n := range bytes {
			cell := absent()
			if n != 0 {
				cell = figure(float64(n), u, false)
			}
			none = none || n == 0
			cell.value, cell.known, cell.unit = float64(n), true, u
			cell.italic = c.Entries[i].Source == schemas.Predicted
			out = append(out, cell)
		}
		return out
	}
	largest := c.Largest()
	for _, part := range c.Parts {
		g.Lines = append(g.Lines, Line{label: plain(categoryNames[part.Category]), cells: cells(part.Bytes),
			run: part.Category})
		if part.Category == "activations" && any64(c.HeldToo) {
			g.Lines = append(g.Lines, Line{label: plain("of which held by hooks"), cells: cells(c.HeldToo), italic: true,
				indent: true, run: "held"})
		}
	}
	if any64(c.Rest) {
		var names []string
		for _, category := range c.Others {
			names = append(names, strings.ToLower(categoryNames[category]))
		}
		label := "Other"
		if len(names) == 2 {
			label = upper(names[0]) + ", " + names[1]
		}
		if len([]rune(label)) > mostOfName {
			label = "Other"
		}
		g.Lines = append(g.Lines, Line{label: plain(label), cells: cells(c.Rest), run: "rest"})
	}
	peaks := make([]int64, len(c.Entries))
	for i := range c.Entries {
		peaks[i] = *c.Entries[i].PeakBytes
	}
	g.Lines = append(g.Lines, Line{kind: ruled}, Line{label: plain("Peak"), cells: cells(peaks), run: "peak"})
	g.Finding = plain("What each peak is made of.")
	if largest != "" {
		g.Finding = plain(fmt.Sprintf("%s: the largest part of each peak.", categoryNames[largest]))
	}
	b.fit(g)
	g.Caption = format("Allocated memory at the peak by component ("+u.name+"){}. Components sum to the peak in bytes; "+
		"rounded here.", b.where())
	if none {
		g.Caption = append(g.Caption, span{kind: words, text: " –: 0 bytes."})
	}
	if kept := keptOf(c.Entries); kept != "" {
		g.Caption = append(g.Caption, parse(" Gradients are "+kept+"those that `.grad` keeps of the step before.")...)
	}
	b.rowNotes(g, b.paper.Groups[len(b.paper.Groups)-1:], false)
	g.legend()
	return g
}

// keptOf says which part of the gradients at the peaks is kept from the previous step.
func keptOf(entries []exhibits.Entry) string {
	all, some := true, false
	for i := range entries {
		e := &entries[i]
		n := e.Main().Category(schemas.Gradients).Bytes
		if n == 0 {
			continue
		}
		if e.Kept == nil || 2*e.Kept.AtPeakBytes < n {
			return ""
		}
		some, all = true, all && e.Kept.AtPeakBytes >= n
	}
	switch {
	case !some:
		return ""
	case all:
		return "all "
	}
	return "mostly "
}

// upper capitalises the first letter of s.
func upper(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

func any64(values []int64) bool {
	for _, v := range values {
		if v != 0 {
			return true
		}
	}
	return false
}

// phasesTable makes the table of each phase's memory and time.
func (b *builder) phasesTable() *Grid {
	p := exhibits.PhasesOf(b.paper.Last())
	if len(p.Entries) == 0 || len(p.Rows) == 0 {
		return nil
	}
	memory, time := b.memoryUnit(), b.stepUnit()
	g := &Grid{Name: "phases", First: plain("Phase"), Heads: b.heads(p.Entries)}
	add := func(r *exhibits.PhaseRow, cells []Cell) {
		g.Lines = append(g.Lines, Line{label: phaseName(r.Phase), cells: cells, indent: r.Pass, run: r.Phase})
	}
	highest, longest := make([]int, len(p.Entries)), make([]int, len(p.Entries))
	for i := range p.Entries {
		highest[i], longest[i] = p.Highest(i), p.Longest(i)
	}
	if p.Sized {
		g.Lines = append(g.Lines, Line{kind: heading, label: plain("Peak in the phase (" + memory.name + ")")})
		for k := range p.Rows {
			var cells []Cell
			for i := range p.Entries {
				c := optional(p.Rows[k].Peaks[i], memory, missing(p.Rows[k].MS[i] != nil || highest[i] < 0))
				c.marked = highest[i] == k
				c.italic = p.Entries[i].Source == schemas.Predicted
				cells = append(cells, c)
			}
			add(&p.Rows[k], cells)
		}
	}
	if p.Timed {
		if _, asked := b.config.Digits["time"]; !asked && blurred(&p, longest, time) {
			time.digits++
		}
		if p.Sized {
			g.Lines = append(g.Lines, Line{kind: space})
		}
		g.Lines = append(g.Lines, Line{kind: heading, label: plain("GPU time (" + time.name + "/step)")})
		for k := range p.Rows {
			var cells []Cell
			for i := range p.Entries {
				c := optional(p.Rows[k].MS[i], time, missing(p.Rows[k].Peaks[i] != nil || longest[i] < 0))
				c.marked = longest[i] == k
				cells = append(cells, c)
			}
			add(&p.Rows[k], cells)
		}
		rest, step := []Cell{}, []Cell{}
		for i := range p.Entries {
			left := unmeasured()
			if longest[i] >= 0 && p.Step[i] != nil { // medians of the phases sum to the step's median or more
				left = Cell{text: number(math.SmallestNonzeroFloat64, time, false)}
			}
			rest = append(rest, optional(p.Rest[i], time, left))
			step = append(step, optional(p.Step[i], time, unmeasured()))
		}
		g.Lines = append(g.Lines, Line{label: plain("Rest"), cells: rest, run: "rest"}, Line{kind: ruled},
			Line{label: plain("Step"), cells: step, run: "step"})
	}
	g.Finding = phasesFinding(&p, highest, longest)
	what := "Highest memory and GPU time"
	if !p.Timed {
		what = "Highest memory"
	} else if !p.Sized {
		what = "GPU time"
	}
	b.fit(g)
	g.Caption = format(what+" of each phase of a step{}, rounded; grey: the highest of each "+
		strings.ToLower(b.first())+".", b.where())
	if slices.ContainsFunc(g.Lines, func(l Line) bool {
		return slices.ContainsFunc(l.cells, func(c Cell) bool { return c.text == absent().text })
	}) {
		g.Caption = append(g.Caption, span{kind: words, text: " –: no such phase."})
	}
	b.rowNotes(g, b.paper.Groups[len(b.paper.Groups)-1:], p.Timed)
	g.legend()
	return g
}

// blurred reports whether some entry's longest phase prints like another phase that is shorter.
func blurred(p *exhibits.Phases, longest []int, u unit) bool {
	for i, most := range longest {
		for k := range p.Rows {
			ms := p.Rows[k].MS[i]
			if k == most || most < 0 || ms == nil || p.Divided(k, i) {
				continue
			}
			top := *p.Rows[most].MS[i]
			if *ms < top && number(*ms, u, false) == number(top, u, false) {
				return true
			}
		}
	}
	return false
}

// missing returns the cell of a phase without a value. has says whether the entry has the phase.
func missing(has bool) Cell {
	if has {
		return unmeasured()
	}
	return absent()
}

// phasesFinding says which phase sets the peaks and which phase takes longest, if all entries agree.
func phasesFinding(p *exhibits.Phases, highest, longest []int) Text {
	family := func(rows []int) string {
		name := ""
		for _, k := range rows {
			if k < 0 {
				return ""
			}
			for p.Rows[k].Pass {
				k--
			}
			if name != "" && name != p.Rows[k].Phase {
				return ""
			}
			name = p.Rows[k].Phase
		}
		return name
	}
	peak, time := family(highest), family(longest)
	switch {
	case peak != "" && peak == time:
		return format("{} sets every peak and takes the most time.", phaseName(peak))
	case peak != "" && p.Sized:
		return format("{} sets every peak.", phaseName(peak))
	case time != "" && p.Timed:
		return format("{} takes the most time.", phaseName(time))
	}
	return plain(upper(phasesShow(*p)) + ".")
}

// phasesShow says what a table of phases shows.
func phasesShow(p exhibits.Phases) string {
	switch {
	case p.Timed && p.Sized:
		return "which phase of a step sets the peak, and which takes the time"
	case p.Sized:
		return "which phase of a step sets the peak"
	}
	return "which phase of a step takes the time"
}
