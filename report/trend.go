package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/trend"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/folder"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/units"
)

// nothingToSay is shown if no test can tell whether a value changed.
const nothingToSay = "~"

// TrendTables has a row for each level. A level is a stretch of points between which an experiment's value did not
// change. The row has the level's first and last point, and the change with which the level began. As records, for
// programs, there is a row for each point.
func TrendTables(doc trend.Document, records bool) []table.Table {
	if records {
		return []table.Table{trendRecords(doc)}
	}
	doc.Warnings = trendWarnings(&doc)
	t := table.Table{Title: metricTitle(doc.Value, doc.Unit) + " over " + overNames[doc.Over], Document: doc}
	badge := trendBadge(&doc)
	if badge != "" { // a common badge is shown once, since a narrow terminal has little room
		t.Title += " [" + badge + "]"
	}
	for _, c := range []table.Column{{Title: "Experiment", Names: true}, {Title: "From", Names: true, Priority: 9},
		{Title: "To", Priority: 3}, {Title: strings.ToUpper(pointNames[doc.Over][:1]) + pointNames[doc.Over][1:], Right: true,
			Priority: 1}, {Title: "Runs", Right: true}, {Title: metricTitle(doc.Value, doc.Unit), Right: true, Priority: 5},
		{Title: "Δ", Right: true, Priority: 8}, {Title: "%", Right: true, Priority: 4}, {Title: "p", Right: true},
		{Title: "Where", Priority: 7}} {
		if c.Title == "p" && doc.Unit == compare.UnitBytes {
			continue
		}
		c.For = table.People
		t.Columns = append(t.Columns, c)
	}
	for i := range doc.Experiments {
		t.Rows = append(t.Rows, levelRows(&doc, &doc.Experiments[i], badge == "")...)
	}
	t.Notes = append(trendNotes(&doc), doc.Warnings...)
	return []table.Table{t}
}

// trendBadge returns the badge that all experiments share, or "" if they differ.
func trendBadge(doc *trend.Document) (badge string) {
	for i := range doc.Experiments {
		own := doc.Experiments[i].Identity.Badge()
		if i > 0 && own != badge {
			return ""
		}
		badge = own
	}
	return badge
}

// overNames and pointNames are the words for the points of a trend.
var (
	overNames  = map[trend.Over]string{trend.Revision: "revisions", trend.Date: "days"}
	pointNames = map[trend.Over]string{trend.Revision: "revisions", trend.Date: "points"}
)

// levelRows returns the rows for the levels of one experiment. badged says whether they have its badge.
func levelRows(doc *trend.Document, e *trend.Experiment, badged bool) (rows [][]table.Cell) {
	value, delta := quantityCells(doc.Unit)
	for i, l := range e.Levels() {
		name := e.Label
		if badge := e.Identity.Badge(); badged && badge != "" {
			name += " [" + badge + "]"
		}
		if i > 0 {
			name = ""
		}
		v := value(l.Value)
		if l.Low != l.High {
			v.Text += fmt.Sprintf(" (%s to %s)", value(l.Low).Text, value(l.High).Text)
		}
		row := []table.Cell{table.Text(name), table.Text(pointName(&e.Points[l.First], doc.Over)),
			table.Text(pointName(&e.Points[l.Last], doc.Over)), table.Count(int64(l.Points)), table.Count(int64(l.Runs)), v}
		d, percent, p, where := table.Text(""), table.Text(""), table.Text(""), table.Text("")
		if s := l.Step; s != nil {
			d, percent = delta(s.Delta), table.Text(percentWords(s))
			if s.P != nil {
				p = table.Number(*s.P, 4)
			}
			where = table.Text(stepPlace(s))
		} else if e.Undecided {
			d, percent = table.Text(nothingToSay), table.Text(nothingToSay)
		}
		row = append(row, d, percent)
		if doc.Unit != compare.UnitBytes {
			row = append(row, p)
		}
		rows = append(rows, append(row, where))
	}
	return rows
}

// pointName returns a point's revision, or its day with its revision.
func pointName(p *trend.Point, over trend.Over) string {
	revision := ""
	if p.Revision != nil {
		revision = *p.Revision
	}
	if over == trend.Revision {
		return revision
	}
	return strings.TrimSpace(p.Started.UTC().Format(time.DateOnly) + " " + revision)
}

// percentWords state a change in per cent of the level before it.
func percentWords(s *trend.Step) string {
	if s.Ratio == nil {
		return table.Absent().Text
	}
	return signed((*s.Ratio-1)*100, 1)
}

// signed formats a number with its sign and digits decimals.
func signed(v float64, digits int) string {
	text := units.Fixed(v, digits)
	if v > 0 {
		text = "+" + text
	}
	return text
}

// largestPercent is the growth above which a percentage is not shown, since the value before was almost nothing.
const largestPercent = 1000

// mostParts is the most categories or phases that are named for a change.
const mostParts = 2

// stepWhere names the categories or phases that changed most.
func stepWhere(s *trend.Step) string {
	var words []string
	for _, c := range s.Categories[:min(len(s.Categories), mostParts)] {
		text := string(c.Category) + " " + signedSize(c.DeltaBytes)
		if c.Percent != nil && *c.Percent < largestPercent {
			text += " (" + signed(*c.Percent, 1) + " %)"
		}
		words = append(words, text)
	}
	for _, c := range s.Phases[:min(len(s.Phases), mostParts)] {
		words = append(words, c.Phase+" "+table.DeltaMilliseconds(c.DeltaMS).Text+" ms")
	}
	if n := max(len(s.Categories), len(s.Phases)) - mostParts; n > 0 {
		words = append(words, others(n))
	}
	return strings.Join(words, ", ")
}

// stepModules names the module that changed most.
func stepModules(s *trend.Step) string {
	if len(s.Modules) == 0 {
		return ""
	}
	m := s.Modules[0]
	name := "no known module"
	if m.Module != nil {
		name = *m.Module
	}
	text := name + " " + signedSize(m.DeltaBytes)
	if n := len(s.Modules) - 1; n > 0 {
		text += ", " + others(n)
	}
	return text
}

// stepPlace names the categories or phases that changed most, and the module that changed most within the first of
// them.
func stepPlace(s *trend.Step) string {
	where, module := stepWhere(s), stepModules(s)
	if where != "" && module != "" {
		where += "; "
	}
	return where + module
}

// trendRecords has a row for each point, with the change at that point if there is one.
func trendRecords(doc trend.Document) table.Table {
	doc.Warnings = trendWarnings(&doc)
	t := table.Table{Document: doc}
	for _, key := range []string{"experiment", "point", "revision", "committed", "started", "metric", "unit", "value",
		"low", "high", "n", "failed", "step_delta", "step_ratio", "step_p", "step_part", "step_module"} {
		t.Columns = append(t.Columns, table.Column{Key: key})
	}
	number := func(v float64) table.Cell { return table.Cell{Value: v} }
	for i := range doc.Experiments {
		e := &doc.Experiments[i]
		steps := map[int]*trend.Step{}
		for k := range e.Steps {
			steps[e.Steps[k].To] = &e.Steps[k]
		}
		for k := range e.Points {
			p := &e.Points[k]
			s := steps[k]
			if s == nil {
				s = new(trend.Step)
			}
			moment := func(at time.Time) table.Cell { return table.Text(at.UTC().Format(time.RFC3339)) }
			row := []table.Cell{table.Text(e.Label), table.Count(int64(k)), table.Optional(p.Revision, table.Text),
				table.Optional(p.Committed, moment), moment(p.Started), table.Text(doc.Value), table.Text(string(doc.Unit)),
				table.Optional(p.Value, number), table.Optional(p.Low, number), table.Optional(p.High, number),
				table.Count(int64(p.N)), table.Count(int64(len(p.Failed)))}
			d, part, module := table.Absent(), table.Absent(), table.Absent()
			if steps[k] != nil {
				d = number(s.Delta)
			}
			if len(s.Categories) > 0 {
				part = table.Text(string(s.Categories[0].Category))
			} else if len(s.Phases) > 0 {
				part = table.Text(s.Phases[0].Phase)
			}
			if len(s.Modules) > 0 {
				module = table.Optional(s.Modules[0].Module, table.Text)
			}
			t.Rows = append(t.Rows, append(row, d, table.Optional(s.Ratio, number), table.Optional(s.P, number), part,
				module))
		}
	}
	return t
}

// trendNotes explain how changes are found, and which experiments the trend follows.
func trendNotes(doc *trend.Document) (notes []string) {
	steps, single, undecided := 0, true, false
	for i := range doc.Experiments {
		e := &doc.Experiments[i]
		steps += len(e.Steps)
		single = single && e.Spread == nil
		undecided = undecided || e.Undecided
	}
	switch {
	case doc.Unit != compare.UnitBytes:
		notes = append(notes, "a level ends where the ranks of the times before and after differ (Mann and Whitney, "+
			"p < 0.05 over all places tried)")
		if undecided {
			notes = append(notes, nothingToSay+": too few runs for the test to find a difference, whatever their times are")
		}
	case single:
		notes = append(notes, "bytes are exact, and no point has repeats: any change is a step")
	default:
		notes = append(notes, "bytes are exact: a step is a change by more than repeats of one "+
			map[trend.Over]string{trend.Revision: "revision", trend.Date: "day"}[doc.Over]+" differ by")
	}
	if steps > 0 && doc.Over == trend.Revision {
		notes = append(notes, "a step came with the revision that its level begins at, or with one before it that "+
			"was not run")
	}
	if steps == 0 && !undecided {
		notes = append(notes, "no steps: each experiment has one level")
	}
	var said []string
	for i := range doc.Experiments {
		for _, n := range sourceNotes(&doc.Experiments[i].Identity) {
			if !slices.Contains(said, n) {
				said = append(said, n)
			}
		}
	}
	return append(notes, said...)
}

// trendWarnings name the runs that do not count, and what else changed where a value did.
func trendWarnings(doc *trend.Document) []string {
	out := []string{}
	if len(doc.Twins) > 0 {
		out = append(out, "bare runs of experiments that are here in full are left out: "+strings.Join(doc.Twins, ", "))
	}
	if n := len(doc.Unplaced); n > 0 {
		out = append(out, fmt.Sprintf("%s of no known revision left out", units.Plural(n, "run is", "runs are")))
	}
	failed, undated, together := 0, 0, false
	for i := range doc.Experiments {
		e := &doc.Experiments[i]
		if e.OtherClock > 0 {
			out = append(out, fmt.Sprintf("%s: GPU time and wall time have no median: %s with wall times only left out",
				e.Label, units.Plural(e.OtherClock, "run is", "runs are")))
		}
		for k := range e.Points {
			failed += len(e.Points[k].Failed)
			if doc.Over == trend.Revision && e.Points[k].Committed == nil {
				undated++
			}
			together = together || doc.Over == trend.Revision && k > 0 && committedTogether(&e.Points[k-1], &e.Points[k])
		}
		for k := range e.Steps {
			s := &e.Steps[k]
			at := fmt.Sprintf("%s, step at %s", e.Label, pointName(&e.Points[s.To], doc.Over))
			if missing := s.To - s.From - 1; missing > 0 {
				out = append(out, fmt.Sprintf("%s: %s before it without the value", at,
					units.Plural(missing, "point is", "points are")))
			}
			for _, w := range comparisonWords(s.Remarks) {
				out = append(out, at+": "+strings.ReplaceAll(w, "baseline", "before"))
			}
		}
	}
	if failed > 0 {
		out = append(out, fmt.Sprintf("runs that did not end well count at no point: %d", failed))
	}
	if together {
		out = append(out, "revisions that were committed in one second are in the order of their runs: which came first is "+
			"not known")
	}
	if undated > 0 {
		out = append(out, "revisions are in the order of their commits; where a run does not say when that was, its own "+
			"time counts")
	}
	return out
}

// committedTogether reports whether two points are different commits within the same second, the resolution of Git's
// times.
func committedTogether(a, b *trend.Point) bool {
	if a.Committed == nil || b.Committed == nil || !a.Committed.Equal(*b.Committed) {
		return false
	}
	commit := func(p *trend.Point) string {
		if p.Revision == nil {
			return ""
		}
		return strings.TrimSuffix(*p.Revision, "+")
	}
	return commit(a) != commit(b)
}

// TrendFigure returns the picture of the experiments' points and changes.
func TrendFigure(doc trend.Document) figure.Figure {
	all := of(len(doc.Experiments), func(i int) *identity.Identity { return &doc.Experiments[i].Identity })
	title := metricName(doc.Value) + " over " + overNames[doc.Over]
	t := &figure.Trend{Title: strings.ToUpper(title[:1]) + title[1:], Bytes: doc.Unit == compare.UnitBytes,
		Notes: append(all.notes(), trendNotes(&doc)...)}
	if !t.Bytes {
		t.Unit = unitNames[doc.Unit]
	}
	for i := range doc.Experiments {
		e := &doc.Experiments[i]
		panel := figure.TrendPanel{Label: e.Label}
		if string(all) == "" {
			panel.Badge = e.Identity.Badge()
		}
		for k := range e.Points {
			p := &e.Points[k]
			point := figure.TrendPoint{Name: pointName(p, doc.Over)}
			if p.Value != nil {
				point.Value, point.Low, point.High, point.Has = *p.Value, *p.Low, *p.High, true
			}
			panel.Points = append(panel.Points, point)
		}
		for k := range e.Steps {
			s := &e.Steps[k]
			_, delta := quantityCells(doc.Unit)
			text := percentWords(s) + " %"
			if where := stepPlace(s); where != "" {
				text += ": " + where
			} else if doc.Unit != compare.UnitBytes {
				text += ": " + delta(s.Delta).Text + " " + unitNames[doc.Unit]
			}
			panel.Steps = append(panel.Steps, figure.TrendStep{At: s.To, Delta: s.Delta, Text: text})
		}
		t.Panels = append(t.Panels, panel)
	}
	return figure.Figure{Name: "trend", Title: "What changed, and when", Picture: t, Badge: string(all)}
}

// unitNames are the units on axes.
var unitNames = map[compare.Unit]string{compare.UnitMS: "ms", compare.UnitPerSecond: "a second",
	compare.UnitJoules: "J"}

// WriteTrend draws the picture of a trend into the folder dir, as [WriteExplanation] does.
func WriteTrend(dir string, doc trend.Document, force bool) ([]string, error) {
	return writeFigure(dir, TrendFigure(doc), force)
}

// writeFigure draws one picture into the folder dir, which it creates, and returns the written paths. Without force it
// overwrites only pictures with its own title, and otherwise returns a *folder.ForeignError.
func writeFigure(dir string, f figure.Figure, force bool) (written []string, err error) {
	defer func() { err = folder.Unwritable(err) }()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the figure's folder: %w", err)
	}
	files := []folder.File{{Name: f.Name + ".png", Write: f.WritePNG}, {Name: f.Name + ".svg", Write: f.WriteSVG}}
	svg, err := os.ReadFile(filepath.Join(dir, f.Name+".svg"))
	if drawn := err == nil && bytes.Contains(svg, []byte("<title>"+f.Title+"</title>")); !drawn && !force {
		for _, file := range files {
			if _, err := os.Lstat(filepath.Join(dir, file.Name)); err == nil {
				return nil, &folder.ForeignError{Path: filepath.Join(dir, file.Name)}
			}
		}
	}
	return folder.WriteAll(dir, files, nil)
}
