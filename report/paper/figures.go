package paper

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/report/folder"
	"github.com/dpsight/dpsight/report/plates"
	"github.com/dpsight/dpsight/schemas"
)

// A Plate is a figure of a paper, with its caption and the data behind it.
type Plate struct {
	Name    string
	Finding Text
	Caption Text
	figure  plates.Figure
	data    [][]string // a header, then rows in bytes, in seconds or in the header's unit
	aside   bool       // the figure's files are written, but the document does not include it
}

// allFigures are the names of all kinds of figures, in the order of the document.
var allFigures = []string{"breakdown", "waterfall", "step", "steps", "time", "tradeoff", "lines", "heatmap", "roles",
	"ladder", "largest", "trend", "accuracy"}

// style returns the place that a figure is drawn for, by its name in paper.yaml.
func (b *builder) style(name string) (style plates.Style, known bool) {
	name, dark := strings.CutSuffix(name, "-dark")
	switch name {
	case "column":
		style = plates.Style{Width: plates.Centimetres(b.config.Widths.Column), Label: plates.Column.Label,
			Value: plates.Column.Value}
	case "page":
		style = plates.Style{Width: plates.Centimetres(b.config.Widths.Page), Label: plates.Page.Label,
			Value: plates.Page.Value, Wide: true}
	case "slide":
		style = plates.Slide
	default:
		return style, false
	}
	if dark {
		style = style.OnDark()
	}
	return style, true
}

// stylesOf returns the configured styles, or "column" without any.
func (c *Config) stylesOf() []string {
	if len(c.Styles) == 0 {
		return []string{"column"}
	}
	return c.Styles
}

// makeFigures makes the figures that the user wants and that have something to show.
func (b *builder) makeFigures() {
	makers := map[string]func() []Plate{"breakdown": b.breakdownPlate, "waterfall": b.waterfallPlate,
		"step": b.stepPlates, "time": b.timePlate, "tradeoff": b.tradeoffPlate, "lines": b.linesPlates,
		"heatmap": b.heatmapPlate, "accuracy": b.accuracyPlate, "steps": b.wholePlates, "roles": b.rolesPlate,
		"ladder": b.ladderPlate, "largest": b.largestPlate, "trend": b.trendPlate}
	for _, name := range allFigures {
		if !wants(b.config.Figures, name) {
			continue
		}
		made := makers[name]()
		if cause := nothingDrawn[name]; len(made) == 0 && cause != "" &&
			(slices.Contains(b.config.Figures, name) || !slices.Contains(rareFigures, name)) {
			b.left = append(b.left, fmt.Sprintf("figure %s: %s", name, cause))
		}
		b.plates = append(b.plates, made...)
	}
	b.plates = slices.DeleteFunc(b.plates, func(p Plate) bool {
		for _, s := range b.config.stylesOf() {
			style, _ := b.style(s)
			d, err := p.figure.Draw(style)
			if err != nil {
				if !errors.Is(err, plates.ErrEmpty) {
					b.left = append(b.left, fmt.Sprintf("figure %s: %v", p.Name, err))
				}
				return true
			}
			for _, what := range d.LeftOut {
				b.left = append(b.left, fmt.Sprintf("figure %s has no room for %s", fileName(p.Name, s), what))
			}
		}
		return false
	})
}

// nothingDrawn has, by figure, the reason why it is missing. Figures of steps give the reason for each run.
var nothingDrawn = map[string]string{"breakdown": "no peak is broken down",
	"waterfall": "no peak differs from a baseline's in more than one component",
	"time":      "no run has times of phases", "tradeoff": "too few runs have a peak and a time",
	"lines":   "no parameter varies while the method does not",
	"heatmap": "no parameter varies while the method does not", "roles": "no peak is broken down by module",
	"ladder": "no run has samples of the device's memory", "largest": "no run or trial ran out of memory",
	"trend":    "no experiment was run at two revisions",
	"accuracy": "no two predicted runs are of experiments that were measured too"}

// rareFigures are figures for which few stores have data. The paper notes that such a figure is missing only if the
// user named it.
var rareFigures = []string{"largest", "trend", "accuracy"}

// fileName returns a figure's file name in one style. The style "column" adds no suffix.
func fileName(name, style string) string {
	if style == "column" {
		return name
	}
	return name + "-" + style
}

// plateFiles returns a figure's files: LaTeX source, PDF, SVG, PNG, and the data behind it.
func (b *builder) plateFiles(p *Plate) (out []folder.File) {
	for _, name := range b.config.stylesOf() {
		style, _ := b.style(name)
		for _, format := range []struct {
			extension string
			write     func(*plates.Drawing, io.Writer) error
		}{{"tex", (*plates.Drawing).TeX}, {"pdf", (*plates.Drawing).PDF}, {"svg", (*plates.Drawing).SVG},
			{"png", (*plates.Drawing).PNG}} {
			out = append(out, folder.File{Name: "figures/" + fileName(p.Name, name) + "." + format.extension,
				Write: func(w io.Writer) error {
					d, err := p.figure.Draw(style)
					if err != nil {
						return fmt.Errorf("drawing %s: %w", p.Name, err)
					}
					return format.write(d, w)
				}})
		}
	}
	return append(out, folder.File{Name: "data/" + p.Name + ".csv", Write: func(w io.Writer) error {
		return csv.NewWriter(w).WriteAll(p.data)
	}})
}

// state returns how an entry's value is drawn.
func state(e *exhibits.Entry) plates.State {
	switch {
	case e.Status == schemas.StatusOOM:
		return plates.OOM
	case e.Status != schemas.StatusOK:
		return plates.Failed
	case e.PeakBytes == nil:
		return plates.NotRun
	case e.Source == schemas.Predicted:
		return plates.Predicted
	case e.Bounded():
		return plates.Bounded
	}
	return plates.Measured
}

// bar returns an entry's bar without segments.
func (b *builder) bar(e *exhibits.Entry, g *exhibits.Group) plates.Bar {
	return plates.Bar{Label: b.name(e), Group: b.placeName(g), State: state(e), NotPrivate: e.NormsOnly()}
}

// explainMark explains the mark of runs that are not private, if the figure has the mark.
func (p *Plate) explainMark(marked bool) {
	if marked {
		p.Caption = append(p.Caption, span{kind: words, text: " †: only norms, not private."})
	}
}

// normsOnly reports whether a method only computes norms and is not private.
func (b *builder) normsOnly(key string) bool {
	e := b.paper.Find(key)
	return e != nil && e.NormsOnly()
}

// markedLines reports whether a line's name has the mark.
func markedLines(p *Plate) bool {
	f, lines := p.figure.(plates.Lines)
	marked := func(s plates.Series) bool { return strings.HasSuffix(s.Label, plates.Mark) }
	return lines && slices.ContainsFunc(f.Panels, func(panel plates.LinesPanel) bool {
		return slices.ContainsFunc(panel.Series, marked)
	})
}

// marked reports whether a bar has the mark.
func marked(bar plates.Bar) bool { return bar.NotPrivate }

// beyond adds to the caption the names that lie outside the figure's axes.
func (p *Plate) beyond(axes string, names []Text) {
	if len(names) > 0 {
		p.Caption = append(append(append(p.Caption, span{kind: words, text: " Beyond the " + axes + ": "}),
			list(names)...), span{kind: words, text: "."})
	}
}

// far returns the names whose largest magnitude is so far above all others that a common scale would hide the others.
// far returns one or two names, or none. At least three other names must remain.
func far(largest map[string]float64) (names []string) {
	const times, most, rest = 4, 2, 3
	all := slices.SortedFunc(maps.Keys(largest), func(a, b string) int {
		return cmp.Or(cmp.Compare(largest[b], largest[a]), strings.Compare(a, b))
	})
	for n := most; n > 0; n-- {
		if len(all) >= n+rest && largest[all[n-1]] > times*largest[all[n]] {
			return all[:n]
		}
	}
	return nil
}

// name returns an entry's label in figures.
func (b *builder) name(e *exhibits.Entry) string { return b.labels[e.Key].drawn() }

// drawn returns the short label for figures, which have no fonts for Chinese, Japanese and Korean.
func (l Label) drawn() string {
	if hasCJK(l.Short) {
		return l.plain
	}
	return l.Short
}

// placeName returns a group's name in figures, or "" if there is only one group.
func (b *builder) placeName(g *exhibits.Group) string {
	if len(b.paper.Groups) < 2 {
		return ""
	}
	return strings.ReplaceAll(place(&b.paper, g).text(), "\u202f", "\u2009")
}

// baseLabel returns the baseline's label, or "" without a baseline.
func (b *builder) baseLabel() string {
	for i := range b.paper.Groups {
		if e := b.paper.Groups[i].Baseline(); e != nil && b.comparedAny() {
			return b.name(e)
		}
	}
	return ""
}

// capacity returns the memory of the runs' largest GPU, or 0 if unknown.
func (b *builder) capacity() (bytes float64) {
	for _, m := range b.model.Manifests {
		for _, g := range m.GPUs {
			bytes = max(bytes, float64(g.TotalBytes))
		}
	}
	return bytes
}

func bytesText(n int64) string       { return strconv.FormatInt(n, 10) }
func floatText(v float64) string     { return strconv.FormatFloat(v, 'g', -1, 64) }
func (p *Plate) row(cells ...string) { p.data = append(p.data, cells) }

// breakdownPlate makes the figure of the categories of each peak.
func (b *builder) breakdownPlate() []Plate {
	p := Plate{Name: "breakdown", data: [][]string{{"method", "setting", "category", "bytes"}}}
	f := plates.Breakdown{Baseline: b.baseLabel(), Capacity: b.capacity()}
	known := false
	for i := range b.paper.Groups {
		g := &b.paper.Groups[i]
		for k := range g.Entries {
			e := &g.Entries[k]
			bar := b.bar(e, g)
			if e.Status == schemas.StatusOK && !e.BrokenDown() {
				continue
			}
			if e.Status == schemas.StatusOK {
				known = true
				for _, c := range e.Main().Categories {
					if c.Bytes > 0 {
						bar.Segments = append(bar.Segments, plates.Segment{Key: c.Category, Value: float64(c.Bytes)})
						p.row(bar.Label, bar.Group, c.Category, bytesText(c.Bytes))
					}
				}
			}
			f.Bars = append(f.Bars, bar)
		}
	}
	if !known {
		return nil
	}
	p.figure = f
	c := exhibits.ComponentsOf(b.paper.Last())
	p.Finding = plain("What each peak is made of.")
	if low, high, n := b.range2(percentOf, (*exhibits.Entry).Smaller); n > 0 && b.subject() != "" {
		p.Finding = plain(b.fairSubject() + " " + changed(low, high) + ".")
	} else if largest := c.Largest(); largest != "" {
		p.Finding = plain(categoryNames[largest] + ": the largest part of each peak.")
	}
	p.Caption = plain("Allocated memory at the peak by component, rounded.")
	if f.Baseline != "" {
		p.Caption = plain("Allocated memory at the peak by component, rounded; the dashed line is the peak of " +
			b.baselineName() + ".")
	}
	p.Caption = append(p.Caption, b.kept(b.paper.Groups)...)
	p.explainMark(slices.ContainsFunc(f.Bars, marked))
	return []Plate{p}
}

// waterfallPlate makes the figure of what each method adds to the baseline's peak.
func (b *builder) waterfallPlate() []Plate {
	g := b.paper.Last()
	base := g.Baseline()
	if base == nil || base.PeakBytes == nil {
		return nil
	}
	const slight = 0.005 // share of the net difference below which a change has no bar
	p := Plate{Name: "waterfall", data: [][]string{{"method", "category", "delta_bytes"}}}
	f := plates.Waterfall{Baseline: b.name(base), Base: float64(*base.PeakBytes)}
	single := map[schemas.Category][]Text{}
	common, shown := map[schemas.Category]int{}, []exhibits.Entry(nil)
	nets, outside := map[string]float64{}, []Text(nil)
	for i := range g.Entries {
		if e := &g.Entries[i]; e.PeakBytes != nil && len(e.Changes()) > 0 && !e.NormsOnly() {
			nets[e.Key] = math.Abs(float64(*e.PeakBytes - *base.PeakBytes))
		}
	}
	distant := far(nets)
	for i := range g.Entries {
		e := &g.Entries[i]
		changes := e.Changes()
		if len(changes) == 0 || e.PeakBytes == nil || e.NormsOnly() {
			continue
		}
		net := float64(*e.PeakBytes - *base.PeakBytes)
		block := plates.Block{Label: b.name(e)}
		var most schemas.Category
		var mostBytes int64
		seen := 0
		for _, c := range changes {
			block.Changes = append(block.Changes, plates.Segment{Key: c.Category, Value: float64(c.DeltaBytes)})
			if e.Netted(c.Category) {
				block.Names = map[string]string{c.Category: "Activations and hooks (net)"}
			}
			p.row(block.Label, c.Category, bytesText(c.DeltaBytes))
			if c.DeltaBytes > mostBytes {
				most, mostBytes = c.Category, c.DeltaBytes
			}
			if max(float64(c.DeltaBytes), -float64(c.DeltaBytes)) >= slight*max(net, -net) {
				seen++
			}
		}
		if slices.Contains(distant, e.Key) {
			bytes, share := b.memoryUnit(), 100*net/float64(*base.PeakBytes)
			outside = append(outside, format("{} ({})", b.labels[e.Key].short(), plain(pretty(number(net, bytes, true))+
				"\u202f"+bytes.name+", "+pretty(number(share, percent, true))+"\u202f%")))
			continue
		}
		if seen == 1 && most != "" {
			single[most] = append(single[most], b.labels[e.Key].inside())
			continue
		}
		f.Blocks, shown = append(f.Blocks, block), append(shown, *e)
		common[most]++
	}
	if len(f.Blocks) == 0 {
		return nil
	}
	p.figure = f
	p.Finding = plain("What each method adds to the peak.")
	for category, n := range common {
		if n < len(shown) || category == "" || n < 2 {
			continue
		}
		kept := ""
		if category == schemas.Gradients && b.paper.Freed() {
			if kept = keptOf(shown); kept == "" {
				continue // zero_grad may explain some of the additions
			}
			kept = ", " + kept + "`.grad` of the step before"
		}
		p.Finding = parse(categoryNames[category] + kept + ": the largest addition of each method shown.")
	}
	p.Caption = format("Change of the peak over "+b.baselineName()+" by component{}, rounded.", b.where())
	p.Caption = append(p.Caption, b.kept(b.paper.Groups[len(b.paper.Groups)-1:])...)
	for _, category := range schemas.Categories {
		if names := single[category]; len(names) > 0 {
			p.Caption = join(p.Caption, parse(" For "), list(names),
				plain(", the whole change is "+strings.ToLower(categoryNames[category])+"."))
		}
	}
	p.beyond("axis", outside)
	return []Plate{p}
}

// fileWord converts a key for use in a file's name.
func fileWord(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, key)
}

// phaseKey returns the key under which figures know a phase.
func phaseKey(phase string) string {
	switch phase {
	case schemas.PhaseBackwardNorm:
		return "norm_pass"
	case schemas.PhaseBackwardGrad:
		return "gradient_pass"
	}
	return phase
}

// timePlate makes the figure of the phases of each step's time.
func (b *builder) timePlate() []Plate {
	p := Plate{Name: "time", data: [][]string{{"method", "setting", "phase", "s"}}}
	f := plates.Time{Baseline: b.baseLabel(), Digits: b.ratioUnit().digits}
	longest, entries := map[string]float64{}, map[string]*exhibits.Entry{}
	for i := range b.paper.Groups {
		g := &b.paper.Groups[i]
		phases := exhibits.PhasesOf(g)
		for k := range phases.Entries {
			e := &phases.Entries[k]
			if phases.Step[k] == nil {
				continue
			}
			bar := b.bar(e, g)
			for r, row := range phases.Rows {
				ms := row.MS[k]
				if ms == nil || !row.Pass && phases.Divided(r, k) {
					continue
				}
				bar.Segments = append(bar.Segments, plates.Segment{Key: phaseKey(row.Phase), Value: *ms / 1000})
				p.row(bar.Label, bar.Group, row.Phase, floatText(*ms/1000))
			}
			if rest := phases.Rest[k]; rest != nil {
				bar.Segments = append(bar.Segments, plates.Segment{Key: "rest", Value: *rest / 1000})
				p.row(bar.Label, bar.Group, "rest", floatText(*rest/1000))
			}
			if len(bar.Segments) > 1 {
				f.Bars = append(f.Bars, bar)
				if step := *phases.Step[k]; step > longest[e.Key] {
					longest[e.Key], entries[e.Key] = step, e
				}
			}
		}
	}
	distant := far(longest)
	f.Bars = slices.DeleteFunc(f.Bars, func(bar plates.Bar) bool {
		return slices.ContainsFunc(distant, func(key string) bool { return b.name(entries[key]) == bar.Label })
	})
	if len(f.Bars) == 0 {
		return nil
	}
	p.figure = f
	p.Finding = plain("Where the time of a step goes.")
	if slower := b.slower(); slower != "" && b.subject() != "" {
		p.Finding = plain(b.fairSubject() + " " + slower + ".")
	}
	p.Caption = plain("Time of a step by phase, rounded.")
	p.addSlowed(b)
	p.explainMark(slices.ContainsFunc(f.Bars, marked))
	var outside []Text
	for _, key := range distant {
		time := b.stepUnit()
		text := pretty(number(longest[key], time, false)) + "\u202f" + time.name
		if r := ratioOf(entries[key]); r != nil {
			text += ", " + pretty(number(*r, b.ratioUnit(), false)) + "×"
		}
		outside = append(outside, format("{} ({})", b.labels[key].short(), plain(text)))
	}
	p.beyond("axis", outside)
	return []Plate{p}
}

// tradeoffPlate makes the figure of time against peak, by which a reader chooses a method.
func (b *builder) tradeoffPlate() []Plate {
	p := Plate{Name: "tradeoff", data: [][]string{{"method", "setting", "step_s", "low_s", "high_s", "peak_bytes"}}}
	f := plates.Tradeoff{Baseline: b.baseLabel()}
	var front []Text
	equal := true // all panels have the same front
	for i := range b.paper.Groups {
		g := &b.paper.Groups[i]
		panel := plates.TradeoffPanel{Title: b.placeName(g)}
		for k := range g.Entries {
			e := &g.Entries[k]
			if e.Status != schemas.StatusOK || e.StepMS == nil || e.PeakBytes == nil {
				continue
			}
			point := plates.Point{Label: b.name(e), Time: e.StepMS.Median / 1000, Peak: float64(*e.PeakBytes),
				State: state(e), NotPrivate: e.NormsOnly(),
				Base: !b.private() || e.Smaller() || e.IsBaseline() && b.methods(),
				Look: b.look(e.Key)}
			low, high := "", ""
			if e.Good > 1 {
				point.TimeLow, point.TimeHigh = e.StepMS.Low/1000, e.StepMS.High/1000
				low, high = floatText(point.TimeLow), floatText(point.TimeHigh)
			}
			panel.Points = append(panel.Points, point)
			p.row(point.Label, panel.Title, floatText(point.Time), low, high, bytesText(*e.PeakBytes))
		}
		least := 3 // the fewest points of a figure, with the baseline's
		if f.Baseline != "" && !b.private() {
			least++ // the main table already compares two settings of one training
		}
		if len(panel.Points) < least {
			continue
		}
		before := front
		front = nil
		if b.private() {
			for _, e := range g.Front() {
				front = append(front, b.labels[e.Key].short())
			}
		}
		equal = equal && (len(f.Panels) == 0 || list(before).text() == list(front).text())
		f.Panels = append(f.Panels, panel)
	}
	if len(f.Panels) == 0 {
		return nil
	}
	p.figure = f
	p.Finding = plain("Peak memory against the time of a step.")
	if equal && len(front) > 0 && len(front) <= 4 {
		where := ""
		switch {
		case b.singles():
			where = " at batch size 1"
		case b.smaller():
			where = " at equal physical batches"
		}
		if len(f.Panels) > 1 {
			where += " in every setting"
		}
		p.Finding = format("On the Pareto front"+where+": {}.", list(front))
		if len(front) == 1 {
			p.Finding = format("On the Pareto front"+where+": only {}.", front[0])
		}
	}
	p.Caption = plain("Time of a step and peak memory.")
	if f.Baseline != "" {
		p.Caption = plain("Time of a step and peak memory over " + b.baselineName() + ".")
	}
	if b.private() {
		p.Caption = append(p.Caption, span{kind: words, text: " Filled: on the front (line)."})
	}
	if f.HasRanges() {
		p.Caption = append(p.Caption, span{kind: words, text: " Bars: range of repeats."})
	}
	if f.OwnAxes() {
		p.Caption = append(p.Caption, span{kind: words, text: " Panels have axes of their own."})
	}
	p.explainMark(slices.ContainsFunc(f.Panels, func(panel plates.TradeoffPanel) bool {
		return slices.ContainsFunc(panel.Points, func(q plates.Point) bool { return q.NotPrivate })
	}))
	var outside []Text
	for _, text := range f.Outside() {
		outside = append(outside, plain(text))
	}
	p.beyond("axes", outside)
	return []Plate{p}
}

// look returns the number of a method's marker, which is the same in all figures.
func (b *builder) look(key string) int { return max(0, slices.Index(b.paper.Methods, key)) }

// linesPlates make the figures of how peak and time grow with the innermost swept parameter.
func (b *builder) linesPlates() (out []Plate) {
	if len(b.paper.Swept) == 0 || len(b.paper.Groups) < 2 {
		return nil
	}
	peak, axis, caption := peakOf, "Peak memory", "Peak allocated memory"
	if b.comparedAny() {
		axis = "Peak over " + strings.TrimSuffix(b.baselineName(), " training")
		peak, caption = deltaOf, "Peak allocated memory over "+b.baselineName()
	}
	what := parameterWords(b.paper.Swept[len(b.paper.Swept)-1])
	if p := b.lines("lines", peak, 1, "bytes", plates.Lines{Axis: axis, Quantity: plates.Bytes}); p != nil {
		switch rises := rising(p); {
		case rises && b.comparedAny():
			p.Finding = plain("How the overhead in memory grows with " + what + ".")
		case b.comparedAny():
			p.Finding = plain("Overhead in memory by " + what + ".")
		case rises:
			p.Finding = plain("How memory grows with " + what + ".")
		default:
			p.Finding = plain("Peak memory by " + what + ".")
		}
		b.growth(p, map[bool]string{true: "the overhead in memory", false: "the peak"}[b.comparedAny()])
		p.Caption = plain(caption + "; numbers are the right-hand values.")
		p.explainMark(markedLines(p))
		out = append(out, *p)
	}
	step := plates.Lines{Axis: "Time of a step", Quantity: plates.Seconds}
	if p := b.lines("lines-time", stepOf, 1000, "s", step); p != nil {
		p.Finding = plain("Time of a step by " + what + ".")
		if rising(p) {
			p.Finding = plain("How the time of a step grows with " + what + ".")
		}
		b.growth(p, "the time of a step")
		p.Caption = plain("Median time of a step; numbers are the right-hand values.")
		p.addSlowed(b)
		p.explainMark(markedLines(p))
		out = append(out, *p)
	}
	return out
}

// growth makes it a figure's finding which line grows by the largest factor between the last two values of the swept
// parameter, if the figure has one panel with two lines or more, and all lines rise. what is what the lines show.
func (b *builder) growth(p *Plate, what string) {
	f, _ := p.figure.(plates.Lines)
	if len(f.Panels) != 1 || len(f.Panels[0].Series) < 2 || f.Panels[0].Names != nil || !rising(p) {
		return
	}
	panel := f.Panels[0]
	last := len(panel.At) - 1
	u := unit{size: 1, digits: 1}
	var most, next float64
	grows := -1
	for i, s := range panel.Series {
		if s.States[last] != plates.Measured || s.States[last-1] != plates.Measured || s.Values[last-1] <= 0 {
			return
		}
		switch by := s.Values[last] / s.Values[last-1]; {
		case strings.HasSuffix(s.Label, plates.Mark):
		case by > most:
			most, next, grows = by, most, i
		default:
			next = max(next, by)
		}
	}
	if grows < 0 || number(most, u, false) == number(next, u, false) {
		return
	}
	panel.Series[grows].Accent = true
	value := func(at int) string { return strconv.FormatFloat(panel.At[at], 'f', -1, 64) }
	p.Finding = format("From {} to "+grouped(value(last))+", "+what+" of {} grows the most, to "+
		pretty(number(most, u, false))+" times.", parameter(b.paper.Swept[len(b.paper.Swept)-1], value(last-1)),
		plain(panel.Series[grows].Label))
}

// rising reports whether all lines of a figure rise.
func rising(p *Plate) bool {
	f, lines := p.figure.(plates.Lines)
	for _, panel := range f.Panels {
		for _, s := range panel.Series {
			last := math.Inf(-1)
			for i, v := range s.Values {
				switch s.States[i] {
				case plates.Measured, plates.Predicted, plates.Bounded:
					if v <= last {
						return false
					}
					last = v
				}
			}
		}
	}
	return lines
}

// lines makes a figure of one value in its unit, with a panel for each combination of the outer parameters.
func (b *builder) lines(name string, of func(*exhibits.Entry) *float64, by float64, unit string,
	f plates.Lines) *Plate {
	p := &Plate{Name: name, data: [][]string{{"method", "setting", b.paper.Swept[len(b.paper.Swept)-1], unit}}}
	last := len(b.paper.Swept) - 1
	for i := 0; i < len(b.paper.Groups); {
		outer := b.paper.Groups[i].Values[:last]
		end := i
		for end < len(b.paper.Groups) && slices.Equal(b.paper.Groups[end].Values[:last], outer) {
			end++
		}
		groups := b.paper.Groups[i:end]
		i = end
		panel := plates.LinesPanel{X: upper(parameterWords(b.paper.Swept[last]))}
		sub := exhibits.Paper{Swept: b.paper.Swept[:last]}
		panel.Title = strings.ReplaceAll(place(&sub, &exhibits.Group{Values: outer}).text(), "\u202f", "\u2009")
		numeric := true
		for k := range groups {
			v, err := strconv.ParseFloat(groups[k].Values[last], 64)
			numeric = numeric && err == nil
			panel.At, panel.Names = append(panel.At, v), append(panel.Names, groups[k].Values[last])
		}
		if numeric {
			panel.Names = nil
		} else {
			for k := range panel.At {
				panel.At[k] = float64(k)
			}
		}
		for _, key := range b.paper.Methods {
			series := plates.Series{Label: b.labels[key].drawn(), Look: b.look(key)}
			name := series.Label // the series' name in the data
			if b.normsOnly(key) {
				series.Label += plates.Mark
			}
			known := 0
			for k := range groups {
				value, how := 0.0, plates.NotRun
				if e := groups[k].Find(key); e != nil {
					if how = state(e); how == plates.Measured || how == plates.Predicted || how == plates.Bounded {
						if v := of(e); v != nil {
							value = *v / by
							known++
							p.row(name, panel.Title, groups[k].Values[last], floatText(value))
						} else {
							how = plates.NotRun
						}
					}
				}
				series.Values, series.States = append(series.Values, value), append(series.States, how)
			}
			if known > 0 {
				panel.Series = append(panel.Series, series)
			}
		}
		if len(panel.At) > 1 && len(panel.Series) > 0 {
			f.Panels = append(f.Panels, panel)
		}
	}
	if len(f.Panels) == 0 {
		return nil
	}
	p.figure = f
	return p
}

// heatmapPlate makes the figure of which swept values fit, by method.
func (b *builder) heatmapPlate() []Plate {
	if len(b.paper.Groups) < 2 {
		return nil
	}
	p := Plate{Name: "heatmap", data: [][]string{{"method", "setting", "state", "peak_bytes"}}}
	f := plates.Heatmap{Quantity: plates.Bytes, Most: largest(b.values(peakOf))}
	failed, of := 0, 0
	for i := range b.paper.Groups {
		f.Columns = append(f.Columns, b.placeName(&b.paper.Groups[i]))
	}
	for _, key := range b.paper.Methods {
		var cells []plates.Cell
		for i := range b.paper.Groups {
			cell := plates.Cell{State: plates.NotRun}
			if e := b.paper.Groups[i].Find(key); e != nil {
				cell.State = state(e)
				of++
				if cell.State == plates.OOM {
					failed++
				}
				bytes := ""
				if e.PeakBytes != nil && e.Status == schemas.StatusOK {
					cell.Value, bytes = float64(*e.PeakBytes), bytesText(*e.PeakBytes)
				}
				p.row(b.name(e), f.Columns[i], e.Status, bytes)
			}
			cells = append(cells, cell)
		}
		name := b.labels[key].drawn()
		if b.normsOnly(key) {
			name += plates.Mark
		}
		f.Rows, f.Cells = append(f.Rows, name), append(f.Cells, cells)
	}
	p.figure = f
	p.Finding = plain("Peak memory by setting.")
	// Without a run out of memory the figure has the numbers of the table.
	p.aside = failed == 0 && !slices.Contains(b.config.Figures, p.Name) && b.has("pivot")
	caption := "Peak allocated memory (" + f.Unit() + ")."
	p.Caption = plain(caption)
	if failed > 0 {
		p.Finding = plain(fmt.Sprintf("%d of %d settings ran out of memory.", failed, of))
		p.Caption = plain(caption + " Hatched: out of memory.")
	}
	p.explainMark(slices.ContainsFunc(b.paper.Methods, b.normsOnly))
	return []Plate{p}
}

// accuracyPlate makes the figure of predictions against measurements.
func (b *builder) accuracyPlate() []Plate {
	rows := b.model.Accuracy
	if len(rows) < 2 {
		return nil
	}
	p := Plate{Name: "accuracy", data: [][]string{{"script", "predicted_bytes", "measured_bytes"}}}
	f := plates.Accuracy{}
	exact := 0
	for _, r := range rows {
		predicted, measured := *r.Allocated.Predicted, *r.Allocated.Measured
		if predicted == measured {
			exact++
		}
		f.Points = append(f.Points, plates.Prediction{Label: cut(r.Label, mostOfName), Predicted: float64(predicted),
			Measured: float64(measured)})
		p.row(r.Label, bytesText(predicted), bytesText(measured))
	}
	p.figure = f
	p.Finding = plain(fmt.Sprintf("%d of %d predicted peaks equal the measured one to the byte.", exact, len(rows)))
	p.Caption = plain("Peak allocated memory, predicted without a GPU and measured.")
	return []Plate{p}
}
