package report

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/units"
)

// CommentMarker is the beginning of a check's comment. By it, a program finds the comment that it wrote before.
const CommentMarker = "<!-- dpsight check -->"

// mostComment is the largest size of a comment in bytes. GitHub accepts 65,536 characters, and the program that posts
// the comment may put a line before it.
const mostComment = 65_000

// commentRoom limits how much of a check a comment shows.
type commentRoom struct {
	experiments, failures, places, figures, notes int
	text                                          int // bytes of one sentence
}

// WriteComment writes a check as Markdown for a pull request. The comment lists the experiments by state. For each
// experiment that fails, it says why, and in which categories, modules and lines the experiment grew. All figures and
// the notes are folded. If the comment would be too long, parts are left out, first the figures that passed, and the
// comment says that.
func WriteComment(w io.Writer, doc *CheckDocument) error {
	room := commentRoom{experiments: 100, failures: 50, places: 8, figures: 400, notes: 50, text: 2000}
	text := comment(doc, room)
	for len(text) > mostComment {
		was := room
		half := func(n int) int { return max(1, n/2) }
		switch {
		case room.figures > 20:
			room.figures = half(room.figures)
		case room.notes > 5:
			room.notes = half(room.notes)
		default:
			room = commentRoom{half(room.experiments), half(room.failures), half(room.places), half(room.figures),
				half(room.notes), max(100, half(room.text))}
		}
		if room == was { // the names alone are too long
			text = cutText(text, mostComment-len("…"))
			break
		}
		text = comment(doc, room)
	}
	_, err := io.WriteString(w, text)
	return err
}

func comment(doc *CheckDocument, room commentRoom) string {
	var b strings.Builder
	b.WriteString(CommentMarker + "\n")
	put := func(tables ...table.Table) {
		// Write cannot fail: a builder accepts all bytes, and Markdown is a known format.
		if err := table.Write(&b, "markdown", tables...); err != nil {
			panic(err)
		}
		b.WriteString("\n")
	}
	folded := func(title string, tables ...table.Table) {
		fmt.Fprintf(&b, "<details><summary>%s</summary>\n\n", title)
		put(tables...)
		b.WriteString("</details>\n\n")
	}
	put(statesTable(doc, room))
	failures := 0
	for i := range doc.Experiments {
		x := &doc.Experiments[i]
		for _, f := range x.failures(doc.FloorBytes) {
			if failures++; failures <= room.failures {
				fmt.Fprintf(&b, "- ❌ %s\n", markdownSentence(f.sentence, room.text))
			}
		}
		if failures <= room.failures && len(x.Places) > 0 {
			b.WriteString("\n")
			folded("Where "+html.EscapeString(cutText(x.Label, room.text))+" grew", placesTable(x, room))
		}
	}
	for _, sentence := range doc.Failures[failures:] { // failures that belong to no experiment
		fmt.Fprintf(&b, "- ❌ %s\n", markdownSentence(sentence, room.text))
	}
	for i := range doc.Experiments {
		for _, sentence := range doc.Experiments[i].acknowledged(doc.FloorBytes) {
			if failures++; failures <= room.failures {
				fmt.Fprintf(&b, "- ☑️ %s\n", markdownSentence(sentence, room.text))
			}
		}
	}
	if failures > room.failures {
		fmt.Fprintf(&b, "- %d more\n", failures-room.failures)
	}
	b.WriteString("\n")
	all := comparedTable(doc)
	all.Notes = nil
	if n := len(all.Rows) - room.figures; n > 0 {
		all.Rows = all.Rows[:room.figures]
		all.Notes = []string{units.Plural(n, "row", "rows") + " left out: a comment has no more room"}
	}
	folded("Every figure that was compared", all)
	if len(doc.Warnings) > 0 {
		b.WriteString("<details><summary>Notes</summary>\n\n")
		for i, note := range doc.Warnings {
			if i == room.notes {
				fmt.Fprintf(&b, "- %d more\n", len(doc.Warnings)-i)
				break
			}
			fmt.Fprintf(&b, "- %s\n", markdownSentence(note, room.text))
		}
		b.WriteString("\n</details>\n")
	}
	return b.String()
}

// acknowledged returns a sentence for each change that the baseline lets pass.
func (x *CheckExperiment) acknowledged(floor int64) (out []string) {
	for i := range x.Comparisons {
		if c := &x.Comparisons[i]; c.Acknowledged != nil {
			out = append(out, x.Label+": "+c.sentence(floor)+"; "+acknowledgedWords(c.Acknowledged, c.Unit))
		}
	}
	return out
}

// statesTable has a row for each experiment, failures first.
func statesTable(doc *CheckDocument, room commentRoom) table.Table {
	title := "✅ "
	if !doc.OK {
		title = "❌ "
	}
	t := table.Table{Title: title + checkTitle(doc), Columns: []table.Column{{Title: "Experiment"}, {Title: "State"},
		{Title: "Peak MiB", Right: true}, {Title: "Now", Right: true}, {Title: "Δ", Right: true}, {Title: "%", Right: true},
		{Title: "Where"}}}
	order := make([]*CheckExperiment, len(doc.Experiments))
	for i := range order {
		order[i] = &doc.Experiments[i]
	}
	rank := func(x *CheckExperiment) int {
		if x.Fails {
			return slices.Index(gate.States, x.State)
		}
		return len(gate.States) + slices.Index(gate.States, x.State)
	}
	slices.SortStableFunc(order, func(a, b *CheckExperiment) int { return rank(a) - rank(b) })
	for i, x := range order {
		if i == room.experiments {
			t.Notes = append(t.Notes, units.Plural(len(order)-i, "experiment", "experiments")+" left out")
			break
		}
		was, now, delta, share := table.Absent(), table.Absent(), table.Absent(), table.Absent()
		if x.PeakBytes != nil {
			now = table.Bytes(*x.PeakBytes)
		}
		if x.BaselinePeakBytes != nil {
			was = table.Bytes(*x.BaselinePeakBytes)
		}
		if x.PeakBytes != nil && x.BaselinePeakBytes != nil {
			delta = table.DeltaBytes(*x.PeakBytes - *x.BaselinePeakBytes)
			share = percent(*x.PeakBytes-*x.BaselinePeakBytes, *x.BaselinePeakBytes)
		}
		where := table.Absent()
		if len(x.Places) > 0 {
			where = table.Text(placeWords(x.place("")))
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(cutText(x.Label, room.text)), table.Text(cutText(stateText(x),
			room.text)), was, now, delta, share, where})
	}
	return t
}

// placesTable has a row for each place in the code where the experiment's memory grew.
func placesTable(x *CheckExperiment, room commentRoom) table.Table {
	t := table.Table{Columns: []table.Column{{Title: "Category"}, {Title: "Module"}, {Title: "Line"},
		{Title: "Baseline MiB", Right: true}, {Title: "Now", Right: true}, {Title: "Δ", Right: true}}}
	for i := range x.Places {
		p := &x.Places[i]
		if i == room.places {
			t.Notes = append(t.Notes, units.Plural(len(x.Places)-i, "place", "places")+" with smaller growth left out")
			break
		}
		was, delta := table.Absent(), table.Absent()
		if p.BaselineBytes != nil {
			was, delta = table.Bytes(*p.BaselineBytes), table.DeltaBytes(p.Grew())
		}
		module, line := table.Absent(), table.Absent()
		if p.Module != "" {
			module = table.Text(p.Module)
		}
		if p.File != "" {
			line = table.Text(lineWords(p))
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(p.Category), module, line, was, table.Bytes(p.CurrentBytes),
			delta})
	}
	if x.Places[0].BaselineBytes == nil {
		t.Notes = append(t.Notes, "the baseline has no places, so this is where the run holds what it has")
	}
	return t
}

// place returns where in the code most of a metric's growth is. If the metric is a category, the place is within that
// category. For other metrics, the place is in the category that grew most, if known. place returns nil if no place is
// known.
func (x *CheckExperiment) place(metric string) *gate.Place {
	category := x.Grown
	if m, err := compare.ParseMetric(metric); err == nil {
		switch {
		case m.Name == compare.MetricCategory:
			category = m.Of
		case m.Unit() != compare.UnitBytes:
			return nil
		}
	}
	if i := slices.IndexFunc(x.Places, func(p gate.Place) bool { return p.Category == category }); i >= 0 {
		return &x.Places[i]
	}
	if metric == "" && len(x.Places) > 0 {
		return &x.Places[0]
	}
	return nil
}

// placeWords describe a place: "activations of blocks.*.mlp, train.py:46 in forward (+314 MiB)".
func placeWords(p *gate.Place) string {
	text := p.Category
	if p.Module != "" {
		text += " of " + p.Module
	}
	if p.File != "" {
		text += ", " + lineWords(p)
	}
	if p.BaselineBytes == nil {
		return text + " (" + units.MiB(p.CurrentBytes) + ")"
	}
	return text + " (+" + quantity(float64(p.Grew()), compare.UnitBytes) + ")"
}

func lineWords(p *gate.Place) string {
	text := fmt.Sprintf("%s:%d", p.File, p.Line)
	if p.Function != "" {
		text += " in " + p.Function
	}
	return text
}

// cutText shortens a text to at most most bytes, between two characters.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func markdownSentence(s string, most int) string { return table.Markdown(cutText(s, most)) }
