package paper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/schemas"
)

// The columns of the main table, by their names in paper.yaml.
const (
	colPeak     = "peak"
	colDelta    = "delta"
	colPercent  = "percent"
	colFreed    = "freed"
	colStep     = "step"
	colSlowdown = "slowdown"
	colRate     = "rate"
	colEnergy   = "energy"
)

// mainColumns are all columns of the main table, in order.
var mainColumns = []string{colPeak, colDelta, colPercent, colFreed, colStep, colSlowdown, colRate, colEnergy}

// mostNarrow is the most columns of a main table that is as wide as a text column.
const mostNarrow = 5

// A column is one figure of every entry of a table.
type column struct {
	name, over string
	head       Text
	key        string // key of the column in results.json
	unit       unit
	signed     bool
	highest    bool // the highest value is the best
	of         func(*exhibits.Entry) *float64
}

// compares reports whether a column compares entries with their baselines.
func (c *column) compares() bool {
	return slices.Contains([]string{colDelta, colPercent, colFreed, colSlowdown}, c.name)
}

// Words that replace the peak of a run that did not end well.
const (
	ranOut     = "OOM"
	endedEarly = "failed"
)

func floatOf(v *int64) *float64 {
	if v == nil {
		return nil
	}
	return new(float64(*v))
}

// values returns one figure of every entry.
func (b *builder) values(of func(*exhibits.Entry) *float64) (out []float64) {
	for _, g := range b.paper.Groups {
		for i := range g.Entries {
			if e := &g.Entries[i]; e.Status == schemas.StatusOK {
				if v := of(e); v != nil {
					out = append(out, *v)
				}
			}
		}
	}
	return out
}

// peakOf and the functions below it return a figure of an entry, or nil if the entry has no such figure. Deltas compare
// an entry with its baseline, which itself has no delta.
func peakOf(e *exhibits.Entry) *float64 { return floatOf(e.PeakBytes) }

func compared(e *exhibits.Entry) *compare.OverheadRun {
	if e.Overhead == nil || e.IsBaseline() || e.Status != schemas.StatusOK {
		return nil
	}
	return e.Overhead
}

func deltaOf(e *exhibits.Entry) *float64 {
	if o := compared(e); o != nil {
		return floatOf(o.PeakDeltaBytes)
	}
	return nil
}

func percentOf(e *exhibits.Entry) *float64 {
	if o := compared(e); o != nil && o.PeakRatio != nil {
		return new(100 * (*o.PeakRatio - 1))
	}
	return nil
}

func freedOf(e *exhibits.Entry) *float64 {
	if o := compared(e); o != nil {
		return floatOf(o.FreedDeltaBytes)
	}
	return nil
}

func stepOf(e *exhibits.Entry) *float64 {
	if e.StepMS == nil {
		return nil
	}
	return &e.StepMS.Median
}

func ratioOf(e *exhibits.Entry) *float64 {
	if e.Overhead == nil || e.Status != schemas.StatusOK {
		return nil
	}
	return e.Overhead.StepRatio
}

// spread returns the largest value of (high - low) / median among entries with repeats.
func (b *builder) spread() (most float64) {
	for _, g := range b.paper.Groups {
		for i := range g.Entries {
			if e := &g.Entries[i]; e.Good > 1 && e.StepMS != nil && e.StepMS.Median > 0 {
				most = max(most, (e.StepMS.High-e.StepMS.Low)/e.StepMS.Median)
			}
		}
	}
	return most
}

// Spreads of repeats from which on a further digit means nothing.
const (
	spreadOfValue = 0.01
	spreadOfRatio = 0.02
)

// mainColumn returns the description of a column of the main table.
func (b *builder) mainColumn(name string) column {
	memory, step, ratio := b.memoryUnit(), b.stepUnit(), b.ratioUnit()
	share := percent
	share.digits = b.digits("percent", share.digits)
	switch name {
	case colPeak:
		return column{name, "Peak memory", plain(memory.name), "peak_bytes", memory, false, false, peakOf}
	case colDelta:
		return column{name, "Peak memory", plain("Δ " + memory.name), "peak_delta_bytes", memory, true, false, deltaOf}
	case colPercent:
		return column{name, "Peak memory", plain("Δ %"), "peak_ratio", share, true, false, percentOf}
	case colFreed:
		return column{name, "Peak memory", plain("Δ " + memory.name + ", freed"), "freed_delta_bytes", memory, true, false,
			freedOf}
	case colStep:
		return column{name, "Time", plain(step.name + "/step"), "step_ms", step, false, false, stepOf}
	case colSlowdown:
		return column{name, "Time", plain("slowdown (×)"), "step_ratio", ratio, false, false, ratioOf}
	case colRate:
		return b.rateColumn()
	}
	joule := func(e *exhibits.Entry) *float64 { return e.JoulesPerStep }
	energy := chosen(b.config.Units.Energy, b.values(joule), kilo, joules)
	energy.digits = b.digits("energy", energy.digits)
	return column{colEnergy, "Energy", plain(energy.name + "/step"), "joules_per_step", energy, false, false, joule}
}

// rateColumn counts tokens or, if some run has no tokens, samples.
func (b *builder) rateColumn() column {
	tokens := func(e *exhibits.Entry) *float64 { return e.TokensPerS }
	samples := func(e *exhibits.Entry) *float64 { return e.SamplesPerS }
	c := column{colRate, "Time", plain("tokens/s"), "tokens_per_s", rate, false, true, tokens}
	if len(b.values(tokens)) < len(b.values(samples)) {
		c.head, c.key, c.of = plain("samples/s"), "samples_per_s", samples
	}
	switch most := largest(b.values(c.of)); {
	case most < 10:
		c.unit.digits = 2
	case most < 100:
		c.unit.digits = 1
	}
	if n, asked := b.config.Digits["rate"]; asked {
		c.unit.digits, c.unit.most = n, 0
	}
	return c
}

// mainTable makes the table of each method's cost.
func (b *builder) mainTable() *Grid {
	g := &Grid{Name: "main", First: plain(b.first())}
	names := b.config.Columns["main"]
	if len(names) == 0 {
		for _, name := range mainColumns {
			if b.worthColumn(name) {
				names = append(names, name)
			} else if known := len(b.values(b.mainColumn(name).of)); known == 1 || known > 0 && name == colEnergy {
				have := map[bool]string{true: "has", false: "have"}[known == 1]
				b.left = append(b.left, fmt.Sprintf("column %s of table main: only %d of %d experiments %s a value", name,
					known, b.entries(), have))
			}
		}
	}
	g.Wide = len(names) > mostNarrow
	columns := make([]column, len(names))
	for i, name := range names {
		columns[i] = b.mainColumn(name)
		c := columns[i]
		g.Heads = append(g.Heads, head{text: c.head, key: c.key})
		if n := len(g.Groups) - 1; n >= 0 && g.Groups[n].text.text() == c.over {
			g.Groups[n].heads++
		} else {
			g.Groups = append(g.Groups, over{plain(c.over), 1})
		}
	}
	if len(columns) == 0 {
		return nil
	}
	for i := range b.paper.Groups {
		b.mainGroup(g, &b.paper.Groups[i], columns)
	}
	b.fit(g)
	b.mainCaption(g, columns[:len(g.Heads)])
	b.mainNotes(g)
	b.rowNotes(g, b.paper.Groups, false)
	g.legend()
	return g
}

// worthColumn reports whether a column has figures. A column that compares no entries must have more than one.
func (b *builder) worthColumn(name string) bool {
	switch name {
	case colPeak: // the column of peaks also shows that a run went out of memory
		return true
	case colFreed:
		return b.paper.Freed()
	}
	c := b.mainColumn(name)
	known := len(b.values(c.of))
	switch name {
	case colEnergy:
		return 2*known > b.entries() && (known > 1 || known == b.entries())
	case colStep, colRate:
		return known > 1 || known == b.entries()
	case colSlowdown:
		return known > 1 && b.comparedAny()
	}
	return known > 0
}

// entries returns the number of experiments over all settings.
func (b *builder) entries() (n int) {
	for i := range b.paper.Groups {
		n += len(b.paper.Groups[i].Entries)
	}
	return n
}

// comparedAny reports whether some entry has a baseline.
func (b *builder) comparedAny() bool {
	return len(b.values(deltaOf)) > 0
}

// mainGroup adds the rows of one combination of the swept parameters.
func (b *builder) mainGroup(g *Grid, group *exhibits.Group, columns []column) {
	if len(b.paper.Groups) > 1 {
		if len(g.Lines) > 0 {
			g.Lines = append(g.Lines, Line{kind: space})
		}
		g.Lines = append(g.Lines, Line{kind: heading, label: place(&b.paper, group)})
	}
	var rivals []int
	for i := range group.Entries {
		e := &group.Entries[i]
		if last := len(g.Lines) - 1; e.NormsOnly() && last >= 0 && g.Lines[last].kind == row && !g.Lines[last].italic {
			g.Lines = append(g.Lines, Line{kind: thin})
		}
		l := Line{label: b.labels[e.Key].full(), run: e.RunID, italic: e.NormsOnly()}
		for _, c := range columns {
			l.cells = append(l.cells, b.cellOf(e, c))
		}
		if e.Rivals() {
			rivals = append(rivals, len(g.Lines))
		}
		g.Lines = append(g.Lines, l)
		if e.IsBaseline() && len(group.Entries) > 1 {
			g.Lines = append(g.Lines, Line{kind: map[bool]lineKind{true: ruled, false: thin}[len(b.paper.Groups) == 1]})
		}
	}
	for c := range columns {
		if columns[c].name != colEnergy || !b.energyMixed() {
			b.markBest(pick(g.Lines, rivals), c, columns[c].highest)
		}
	}
}

func pick(lines []Line, at []int) (out []*Line) {
	for _, i := range at {
		out = append(out, &lines[i])
	}
	return out
}

// cellOf returns an entry's cell in a column: its figure or, in place of a failed run's peak, how the run ended.
func (b *builder) cellOf(e *exhibits.Entry, c column) Cell {
	v := c.of(e)
	switch {
	case c.compares() && (e.IsBaseline() || e.Overhead == nil) && v == nil:
		return absent()
	case e.Status == schemas.StatusOOM && c.name == colPeak:
		return wordCell(ranOut)
	case e.Status != schemas.StatusOK && c.name == colPeak:
		return wordCell(endedEarly)
	case e.Status != schemas.StatusOK || v == nil:
		return unmeasured()
	}
	cell := figure(*v, c.unit, false)
	if c.signed {
		cell = difference(*v, c.unit)
	}
	cell.italic = e.Source == schemas.Predicted
	if e.Bounded() && strings.HasPrefix(c.key, "peak") {
		if c.name != colPeak {
			return unmeasured()
		}
		cell.atLeast = true
	}
	return cell
}

// first returns the heading above the rows' labels.
func (b *builder) first() string {
	if b.methods() {
		return "Method"
	}
	return "Run"
}

// mainCaption writes the caption of the main table, which says what each method costs.
func (b *builder) mainCaption(g *Grid, columns []column) {
	has := func(name string) bool {
		return slices.ContainsFunc(columns, func(c column) bool { return c.name == name })
	}
	g.Finding = b.mainFinding(has)
	what := []string{"Peak allocated memory"}
	if has(colStep) {
		what = append(what, "time")
	}
	if has(colEnergy) {
		what = append(what, "energy")
	}
	text := joinWords(what)
	if len(what) > 1 {
		text += " of a step"
	}
	if common := b.common(); common != "" {
		text += "; " + common
	}
	text += "."
	if slices.ContainsFunc(columns, func(c column) bool { return c.compares() && c.name != colSlowdown }) {
		text += " Δ: over " + strings.TrimSuffix(b.baselineName(), " training") + "."
	}
	if bestOf(g) {
		text += " Best private in bold."
	}
	g.Caption = plain(text)
}

func bestOf(g *Grid) bool {
	return slices.ContainsFunc(g.Lines, func(l Line) bool {
		return slices.ContainsFunc(l.cells, func(c Cell) bool { return c.best })
	})
}

func joinWords(words []string) string {
	texts := make([]Text, len(words))
	for i, w := range words {
		texts[i] = plain(w)
	}
	return list(texts).text()
}

// mainFinding returns a sentence that the columns' figures prove: which entries are lowest and highest in both peak and
// step time, or else the ranges of both.
func (b *builder) mainFinding(has func(column string) bool) Text {
	if len(b.paper.Groups) == 1 && b.subject() != "" && has(colPeak) && has(colStep) {
		if best, worst := b.extremes(&b.paper.Groups[0]); best != nil && worst != nil {
			name := b.labels[best.Key].fullWords()
			if b.singles() {
				name = join(parse("At batch size 1, "), b.labels[best.Key].inside())
			}
			start := "{} need" + b.plural(best) + " the least time"
			if also := b.alike(&b.paper.Groups[0], best); len(also) > 0 {
				return format(start+" and, with {}, the least allocated memory; {} need"+b.plural(worst)+
					" the most of both.", name, list(also),
					b.labels[worst.Key].inside())
			}
			return format(start+" and allocated memory, {} the most.", name, b.labels[worst.Key].inside())
		}
	}
	low, high, n := b.range2(percentOf, (*exhibits.Entry).Smaller)
	slower := b.slower()
	switch {
	case !has(colPercent):
	case b.subject() == "":
		if text := b.dearest(has(colSlowdown)); len(text) > 0 {
			return text
		}
	case n > 0 && slower != "" && has(colSlowdown):
		return plain(b.fairSubject() + " " + changed(low, high) + ", and " + slower + ".")
	case n > 0:
		return plain(b.fairSubject() + " " + changed(low, high) + ".")
	}
	return plain("What each " + strings.ToLower(b.first()) + " needs.")
}

// dearest says what the entry with the highest peak costs over the baseline, and how many times as long its step takes
// if it also has the longest step. dearest returns nil if the paper has several settings, or if no peak is higher than
// the baseline's.
func (b *builder) dearest(times bool) Text {
	if len(b.paper.Groups) > 1 {
		return nil
	}
	none := func(*exhibits.Entry) bool { return false }
	_, high, n := b.range2(percentOf, none)
	_, slowest, m := b.range2(ratioOf, none)
	if n == 0 || high <= 0 {
		return nil
	}
	entries := b.paper.Groups[0].Entries
	most := &entries[slices.IndexFunc(entries, func(e exhibits.Entry) bool {
		v := percentOf(&e)
		return v != nil && *v == high && !e.NormsOnly()
	})]
	end := "."
	if v := ratioOf(most); times && m > 0 && v != nil && *v == slowest && *v > 1 {
		end = ", and makes a step " + pretty(number(*v, b.ratioUnit(), false)) + " times as long."
	}
	return append(b.labels[most.Key].fullWords(), span{kind: words, text: " adds " +
		pretty(number(high, percent, false)) + "\u202f% to the peak of " + b.baselineName() + end})
}

// alike names the entries whose peaks print like an entry's. The table shows their peaks in bold too.
func (b *builder) alike(g *exhibits.Group, of *exhibits.Entry) (names []Text) {
	u := b.memoryUnit()
	printed := number(float64(*of.PeakBytes), u, false)
	for i := range g.Entries {
		e := &g.Entries[i]
		if e.RunID != of.RunID && e.Rivals() && e.PeakBytes != nil && number(float64(*e.PeakBytes), u, false) == printed {
			names = append(names, b.labels[e.Key].inside())
		}
	}
	return names
}

// plural returns the ending of a verb after an entry's label, since some of dpsight's labels are plural.
func (b *builder) plural(e *exhibits.Entry) string {
	if strings.HasSuffix(b.labels[e.Key].Full, "s") {
		return ""
	}
	return "s"
}

func (l Label) fullWords() Text { return l.said(l.Full) }

// inside returns the full label for use within a sentence.
func (l Label) inside() Text {
	if len(l.Full) > 1 && l.Full[1] >= 'a' && l.Full[1] <= 'z' {
		return l.said(strings.ToLower(l.Full[:1]) + l.Full[1:])
	}
	return l.said(l.Full)
}

// extremes returns the entry that is lowest in both peak and step time, and the entry that is highest in both. Each is
// nil if there is no such entry, or if fewer than two entries have both figures.
func (b *builder) extremes(g *exhibits.Group) (best, worst *exhibits.Entry) {
	var all []*exhibits.Entry
	for i := range g.Entries {
		if e := &g.Entries[i]; e.Rivals() && e.PeakBytes != nil && e.StepMS != nil {
			all = append(all, e)
		}
	}
	if len(all) < 2 {
		return nil, nil
	}
	best, worst = all[0], all[0]
	for _, e := range all[1:] {
		if e.StepMS.Median < best.StepMS.Median {
			best = e
		}
		if e.StepMS.Median > worst.StepMS.Median {
			worst = e
		}
	}
	for _, e := range all {
		if *e.PeakBytes < *best.PeakBytes {
			best = nil
			break
		}
	}
	for _, e := range all {
		if *e.PeakBytes > *worst.PeakBytes {
			worst = nil
			break
		}
	}
	return best, worst
}

// singles reports whether every run has a batch of one sample. A method that is cheapest there may not be cheapest with
// larger batches.
func (b *builder) singles() bool {
	return !slices.ContainsFunc(b.paper.Groups, func(g exhibits.Group) bool {
		return slices.ContainsFunc(g.Entries, func(e exhibits.Entry) bool { return e.Fact("batch_size") != "1" })
	})
}

// fairSubject returns the subject of a finding about entries that are not [exhibits.Entry.Smaller]. If there are
// smaller ones too, the subject states that it leaves them out.
func (b *builder) fairSubject() string {
	subject := b.subject()
	if subject != "" && b.smaller() {
		return "At equal physical batches, " + strings.ToLower(subject)
	}
	return subject
}

// smaller reports whether some entry has smaller physical batches than its baseline.
func (b *builder) smaller() bool {
	return slices.ContainsFunc(b.paper.Groups, func(g exhibits.Group) bool {
		return slices.ContainsFunc(g.Entries, func(e exhibits.Entry) bool { return e.Smaller() })
	})
}

// slower says how many times as long private training makes a step, with the range of the entries that
// [builder.fairSubject] speaks of. slower returns "" if no step times are compared.
func (b *builder) slower() string {
	low, high, n := b.range2(ratioOf, (*exhibits.Entry).Smaller)
	if n == 0 {
		return ""
	}
	return "makes a step " + rangeWords(low, high, b.ratioUnit(), false) + " times as long"
}

// range2 returns the lowest and the highest value over all groups, and the number of values. range2 leaves out
// baselines, methods that only compute norms, failed entries, and entries for which without is true.
func (b *builder) range2(of func(*exhibits.Entry) *float64, without func(*exhibits.Entry) bool) (low, high float64,
	n int) {
	for _, g := range b.paper.Groups {
		for i := range g.Entries {
			e := &g.Entries[i]
			v := of(e)
			if e.IsBaseline() || e.NormsOnly() || e.Status != schemas.StatusOK || v == nil || without(e) {
				continue
			}
			if n == 0 {
				low, high = *v, *v
			}
			low, high, n = min(low, *v), max(high, *v), n+1
		}
	}
	return low, high, n
}

// rangeWords return "7.4 to 10.9", or a single number.
func rangeWords(low, high float64, u unit, signed bool) string {
	a, z := pretty(number(low, u, signed)), pretty(number(high, u, signed))
	if a == z {
		return a
	}
	return a + " to " + z
}

// changed says by how many per cent a peak changes.
func changed(low, high float64) string {
	if low > 0 {
		return "adds " + rangeWords(low, high, percent, false) + "\u202f% to the peak"
	}
	return "changes the peak by " + rangeWords(low, high, percent, true) + "\u202f%"
}
