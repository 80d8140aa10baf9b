package paper

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/schemas"
)

// pivotTable makes the table of how the cost changes with the swept parameters.
func (b *builder) pivotTable() *Grid {
	if len(b.paper.Swept) == 0 || len(b.paper.Groups) < 2 {
		return nil
	}
	g := &Grid{Name: "pivot", First: plain(b.first())}
	last := len(b.paper.Swept) - 1
	for i := range b.paper.Groups {
		group := &b.paper.Groups[i]
		outer := exhibits.Paper{Swept: b.paper.Swept[:last]}
		over1 := place(&outer, &exhibits.Group{Values: group.Values[:last]})
		inner := parameter(b.paper.Swept[last], group.Values[last])
		if group.Values[last] == "" {
			inner = plain("–")
		}
		g.Heads = append(g.Heads, head{text: inner, key: fmt.Sprint(i)})
		if n := len(g.Groups) - 1; n >= 0 && g.Groups[n].text.text() == over1.text() {
			g.Groups[n].heads++
		} else {
			g.Groups = append(g.Groups, over{over1, 1})
		}
	}
	if last == 0 {
		g.Groups = nil
	}
	least, alone := "", true
	for _, name := range []string{colPeak, colPercent, colSlowdown} {
		c := b.mainColumn(name)
		if len(b.values(c.of)) == 0 || name != colPeak && !b.comparedAny() {
			continue
		}
		if len(g.Lines) > 0 {
			g.Lines = append(g.Lines, Line{kind: space})
		}
		title := map[string]string{colPeak: "Peak (" + c.unit.name + ")", colSlowdown: "Slowdown (×)",
			colPercent: "Peak over " + b.baselineName() + " (%)"}[name]
		g.Lines = append(g.Lines, Line{kind: heading, label: plain(title)})
		from := len(g.Lines)
		for _, key := range b.paper.Methods {
			l := Line{label: b.labels[key].short(), run: name + " " + key}
			var of *exhibits.Entry
			base := false
			for i := range b.paper.Groups {
				e := b.paper.Groups[i].Find(key)
				cell := unmeasured()
				if e != nil {
					of, base = e, base || e.IsBaseline()
					cell = b.cellOf(e, c)
				}
				l.cells = append(l.cells, cell)
			}
			if of == nil || name != colPeak && base {
				continue
			}
			l.italic = of.NormsOnly()
			g.Lines = append(g.Lines, l)
		}
		for i := range g.Heads {
			lines := b.rivalsAt(g, from, i)
			b.markBest(lines, i, false)
			if name != colPeak {
				continue
			}
			best := slices.IndexFunc(lines, func(l *Line) bool { return l.cells[i].best })
			if best < 0 || least != "" && lines[best].run != least {
				alone = false
			} else {
				least = lines[best].run
			}
		}
	}
	b.fit(g)
	g.Finding = plain("How the cost changes with " + b.sweptWords() + ".")
	if alone && least != "" {
		start := ""
		if b.singles() {
			start = "At batch size 1, "
		}
		g.Finding = format(start+"{} has the lowest peak of the private methods in every setting.",
			b.labels[least[len(colPeak)+1:]].short())
		if !b.methods() {
			g.Finding = plain("How the cost changes with " + b.sweptWords() + ".")
		}
	}
	caption := "Peak memory"
	if len(b.values(ratioOf)) > 0 {
		caption += " and slowdown"
	}
	caption += " by " + b.sweptWords()
	if common := b.common(); common != "" {
		caption += "; " + common
	}
	g.Caption = plain(caption + ".")
	if bestOf(g) {
		g.Caption = append(g.Caption, span{kind: words, text: " Best private method of a column in bold."})
	}
	b.rowNotes(g, b.paper.Groups, len(b.values(ratioOf)) > 0)
	g.legend()
	return g
}

// rivalsAt returns the lines, from line from on, whose entries may be the best of a column.
func (b *builder) rivalsAt(g *Grid, from, column int) (lines []*Line) {
	for i := from; i < len(g.Lines); i++ {
		l := &g.Lines[i]
		if l.kind != row {
			continue
		}
		for _, key := range b.paper.Methods {
			if l.run == colPeak+" "+key || l.run == colPercent+" "+key || l.run == colSlowdown+" "+key {
				if e := b.paper.Groups[column].Find(key); e != nil && e.Rivals() {
					lines = append(lines, l)
				}
			}
		}
	}
	return lines
}

// repeatsTable makes the table of how certain the times are.
func (b *builder) repeatsTable() *Grid {
	group := b.paper.Last()
	var entries []*exhibits.Entry
	fewest := 0
	for i := range group.Entries {
		if e := &group.Entries[i]; e.Good > 1 && e.StepMS != nil {
			entries = append(entries, e)
			if fewest == 0 || e.Good < fewest {
				fewest = e.Good
			}
		}
	}
	if len(entries) == 0 {
		return nil
	}
	peak, share, step, ratio := b.mainColumn(colPeak), b.mainColumn(colPercent), b.mainColumn(colStep),
		b.mainColumn(colSlowdown)
	g := &Grid{Name: "repeats", First: plain(b.first())}
	with := b.comparedAny()
	columns := []column{peak}
	if with {
		columns = append(columns, share)
	}
	for _, c := range columns {
		text := c.head
		g.Heads = append(g.Heads, head{text: text, key: c.key})
	}
	g.Groups = []over{{plain("Peak"), len(columns)}, {plain("Step time"), 2}}
	g.Heads = append(g.Heads, head{text: plain(step.unit.name), key: step.key}, head{text: plain("range"), key: "range"})
	if with {
		g.Heads = append(g.Heads, head{text: plain("×"), key: ratio.key})
		g.Groups[1].heads++
	}
	equal, bootstrapped := true, false
	var rivals []int
	for _, e := range entries {
		l := Line{label: b.labels[e.Key].short(), run: e.RunID, italic: e.NormsOnly()}
		for _, c := range columns {
			l.cells = append(l.cells, b.cellOf(e, c))
		}
		low, high := number(e.StepMS.Low, step.unit, false), number(e.StepMS.High, step.unit, false)
		l.cells = append(l.cells, b.cellOf(e, step), wordCell(pretty(low)+"–"+pretty(high)))
		if with {
			l.cells = append(l.cells, b.cellOf(e, ratio))
		}
		if e.NormsOnly() && len(g.Lines) > 0 {
			g.Lines = append(g.Lines, Line{kind: thin})
		}
		if e.Rivals() {
			rivals = append(rivals, len(g.Lines))
		}
		g.Lines = append(g.Lines, l)
		if e.IsBaseline() && len(entries) > 1 {
			g.Lines = append(g.Lines, Line{kind: ruled})
		}
		equal = equal && e.PeakLow != nil && *e.PeakLow == *e.PeakHigh
		bootstrapped = bootstrapped || e.StepMS.Of != "range"
	}
	for c := range g.Heads {
		if g.Heads[c].key != "range" {
			b.markBest(pick(g.Lines, rivals), c, false)
		}
	}
	b.fit(g)
	g.Finding = plain("How sure the times are.")
	without := func(e *exhibits.Entry) bool {
		return e.Smaller() || !slices.ContainsFunc(entries, func(o *exhibits.Entry) bool { return o.RunID == e.RunID })
	}
	if low, high, n := b.range2(ratioOf, without); n > 0 && b.subject() != "" {
		g.Finding = plain(b.fairSubject() + " makes a median step " + rangeWords(low, high, ratio.unit, false) +
			" times as long.")
	}
	caption := fmt.Sprintf("Medians of %d runs, with the fastest and the slowest", fewest)
	if bootstrapped {
		caption = fmt.Sprintf("Medians of %d runs, with what encloses the true median with 95\u202f%% confidence", fewest)
	}
	if slices.ContainsFunc(entries, func(e *exhibits.Entry) bool { return e.Good != fewest }) {
		caption = "Medians of at least " + caption[len("Medians of "):]
	}
	g.Caption = format(caption+"{}.", b.where())
	if equal {
		g.Caption = append(g.Caption, span{kind: words, text: " Peaks of the runs agree to the byte."})
	}
	if g.columnOf(share.key) >= 0 {
		g.Caption = append(g.Caption, span{kind: words, text: " Δ: over " + b.baselineName() + "."})
	}
	if g.columnOf(ratio.key) >= 0 {
		g.Caption = append(g.Caption, span{kind: words, text: " ×: ratios of medians."})
	}
	b.rowNotes(g, b.paper.Groups[len(b.paper.Groups)-1:], true)
	g.legend()
	return g
}

// accuracyTable compares predicted peaks with measured ones, the largest error first.
func (b *builder) accuracyTable() *Grid {
	rows := b.model.Accuracy
	if len(rows) == 0 {
		return nil
	}
	var values []float64
	for _, r := range rows {
		values = append(values, float64(*r.Allocated.Measured))
	}
	u := chosen(b.config.Units.Memory, values, gib, mib)
	u.digits = b.digits("memory", u.digits)
	errors := percent
	errors.digits = b.digits("percent", 2)
	g := &Grid{Name: "accuracy", First: plain("Script"), Groups: []over{{plain("Peak (" + u.name + ")"), 2}, {nil, 1}},
		Heads: []head{{text: plain("predicted"), key: "predicted"}, {text: plain("measured"), key: "measured"},
			{text: plain("error (%)"), key: "error"}}}
	exact := 0
	for _, r := range rows {
		difference := figure(100**r.Allocated.Error, errors, true)
		if *r.Allocated.Predicted == *r.Allocated.Measured {
			exact++
			difference = Cell{text: "exact", word: true, known: true, unit: errors}
		}
		predicted := figure(float64(*r.Allocated.Predicted), u, false)
		predicted.italic = true
		g.Lines = append(g.Lines, Line{label: plain(cut(r.Label, mostOfName)), run: r.Name, cells: []Cell{predicted,
			figure(float64(*r.Allocated.Measured), u, false), difference}})
	}
	b.fit(g)
	g.Finding = plain(fmt.Sprintf("%d of %d predicted peaks equal the measured one to the byte.", exact, len(rows)))
	g.Caption = plain("Peak allocated memory, predicted without a GPU and measured.")
	return g
}

// ablationTable makes the table of what each of several successive changes saves.
func (b *builder) ablationTable() *Grid {
	var entries []*exhibits.Entry
	for _, name := range b.config.Ablation {
		for i := range b.paper.Groups {
			for k := range b.paper.Groups[i].Entries {
				e := &b.paper.Groups[i].Entries[k]
				if (e.Name == name || e.Label == name || e.Key == name || e.RunID == name) && e.PeakBytes != nil &&
					e.Status == schemas.StatusOK && !slices.Contains(entries, e) {
					entries = append(entries, e)
				}
			}
		}
	}
	if len(entries) < 2 {
		return nil
	}
	u := b.memoryUnit()
	g := &Grid{Name: "ablation", First: plain("Change"), Groups: []over{{plain("Peak memory"), 3}},
		Heads: []head{{text: plain(u.name), key: "peak_bytes"}, {text: plain("Δ " + u.name), key: "step"},
			{text: plain("Δ in all"), key: "sum"}}}
	for i, e := range entries {
		l := Line{label: plain(b.config.name(e.Name, b.labels[e.Key].Full)), run: e.RunID,
			cells: []Cell{figure(float64(*e.PeakBytes), u, false), absent(), absent()}}
		if i > 0 {
			l.cells[1] = difference(float64(*e.PeakBytes-*entries[i-1].PeakBytes), u)
			l.cells[2] = difference(float64(*e.PeakBytes-*entries[0].PeakBytes), u)
		}
		for k := range l.cells {
			l.cells[k].italic = e.Source == schemas.Predicted
		}
		g.Lines = append(g.Lines, l)
	}
	b.fit(g)
	saved := *entries[0].PeakBytes - *entries[len(entries)-1].PeakBytes
	g.Finding = plain("What each change saves.")
	if saved > 0 {
		g.Finding = plain(fmt.Sprintf("All changes together save %s\u202f%s of the peak.",
			pretty(number(float64(saved), u, false)), u.name))
	}
	g.Caption = plain("Peak allocated memory after each change; Δ: to the row above, and to the first.")
	g.legend()
	return g
}
