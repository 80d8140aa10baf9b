package paper

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/schemas"
)

// legend adds a note that explains the special cells of a table.
func (g *Grid) legend() {
	var parts []string
	for _, special := range []struct {
		words string
		is    func(*Cell) bool
	}{
		{"OOM: out of memory.", func(c *Cell) bool { return c.text == ranOut }},
		{"Italic: predicted.", func(c *Cell) bool { return c.italic && c.known }},
		{"≥: at least, since the sizes of some blocks are not known.", func(c *Cell) bool { return c.atLeast }},
		{"failed: ended early.", func(c *Cell) bool { return c.text == endedEarly }},
		{"Empty: not known.", func(c *Cell) bool { return c.text == "" }},
	} {
		if slices.ContainsFunc(g.Lines, func(l Line) bool {
			return slices.ContainsFunc(l.cells, func(c Cell) bool { return special.is(&c) })
		}) {
			parts = append(parts, special.words)
		}
	}
	if len(parts) == 0 {
		return
	}
	legend := plain(strings.Join(parts, " "))
	if last := len(g.Notes) - 1; last >= 0 && g.Notes[last].letter == "" { // one line in place of two
		g.Notes[last].text = join(g.Notes[last].text, parse(" "), legend)
		return
	}
	g.Notes = append(g.Notes, note{text: legend})
}

// mainNotes adds notes that change how readers understand the main table, at most three, in the order of the columns.
// Further notes go to README.md.
func (b *builder) mainNotes(g *Grid) {
	if c := g.columnOf("freed_delta_bytes"); c >= 0 {
		keep, base := "the runs keep it", "the baseline frees it"
		if slices.ContainsFunc(b.paper.Groups, func(x exhibits.Group) bool {
			e := x.Baseline()
			return e != nil && e.Kept != nil
		}) {
			keep, base = "the baseline keeps it", "others free it"
		}
		if slices.ContainsFunc(b.values(freedOf), func(v float64) bool { return v == 0 }) {
			base += "; –: no difference"
		}
		g.Heads[c].note = g.note(parse("Δ if every loop freed `.grad` between steps: " + keep + ", and " + base + "."))
	}
	if text := b.timeNote(g); len(text) > 0 {
		letter := g.note(text)
		for _, key := range []string{"step_ms", b.rateColumn().key} {
			if c := g.columnOf(key); c >= 0 {
				g.Heads[c].note = letter
			}
		}
	}
	if c := g.columnOf("joules_per_step"); c >= 0 {
		if text := b.energyNote(); len(text) > 0 {
			g.Heads[c].note = g.note(text)
		}
	}
}

// timeNote says how the columns of step time and rate differ, and in how many steps the GPU was slowed down.
func (b *builder) timeNote(g *Grid) (text Text) {
	if g.columnOf("step_ms") < 0 {
		return nil
	}
	if c := g.columnOf(b.rateColumn().key); c >= 0 {
		text = plain("Median of the timed steps; " + g.Heads[c].text.text() + " of all of them together.")
	}
	slowed := b.slowed(b.paper.Groups)
	if len(text) > 0 && len(slowed) > 0 {
		text = append(text, span{kind: words, text: " "})
	}
	return append(text, slowed...)
}

// energyNote names the runs whose energy was measured in a separate run. energyNote returns nil if no run's energy was
// measured separately.
func (b *builder) energyNote() Text {
	var lent []Text
	var keys []string
	for _, x := range b.paper.Groups {
		for i := range x.Entries {
			e := &x.Entries[i]
			if !slices.Contains(keys, e.Key) && lentEnergy(e) {
				keys, lent = append(keys, e.Key), append(lent, b.labels[e.Key].inside())
			}
		}
	}
	const most = 3 // the most runs that are named
	switch {
	case len(lent) == 0:
		return nil
	case len(lent) == len(b.paper.Methods):
		return plain("Energy of the GPU by NVML, in separate runs without instrumentation.")
	case len(lent) <= most:
		return format("Energy of the GPU by NVML; for {} in a separate run without instrumentation, so none is in bold.",
			list(lent))
	}
	return plain(fmt.Sprintf("Energy of the GPU by NVML; for %d of %d in a separate run without instrumentation, so none "+
		"is in bold.", len(lent), len(b.paper.Methods)))
}

// lentEnergy reports whether an entry's energy comes from a bare run of the same experiment.
func lentEnergy(e *exhibits.Entry) bool {
	return slices.ContainsFunc(e.Remarks, func(r compare.Remark) bool { return r.Kind == compare.RemarkEnergyLent })
}

// energyMixed reports whether some energies come from bare runs and others from runs with instrumentation, which itself
// costs energy.
func (b *builder) energyMixed() bool {
	kinds := map[bool]bool{}
	for _, x := range b.paper.Groups {
		for i := range x.Entries {
			if e := &x.Entries[i]; e.JoulesPerStep != nil && e.Status == schemas.StatusOK {
				kinds[e.Bare() || lentEnergy(e)] = true
			}
		}
	}
	return len(kinds) > 1
}

// rowNotes adds notes that change how readers understand the rows of some groups: that the GPU was slowed down, if the
// table has times, and that a run has smaller physical batches.
func (b *builder) rowNotes(g *Grid, groups []exhibits.Group, times bool) {
	if text := b.slowed(groups); times && len(text) > 0 {
		g.Notes = append(g.Notes, note{text: text})
	}
	var keys []string
	for i := range groups {
		for k := range groups[i].Entries {
			e := &groups[i].Entries[k]
			if !e.Smaller() || slices.Contains(keys, e.Key) {
				continue
			}
			keys = append(keys, e.Key)
			batch := func(c *compare.Cell) string {
				return grouped(cmp.Or(c.Fact("physical_batch_size"), c.Fact("batch_size")))
			}
			text := format("{} has physical batches of "+batch(e.Cell)+", not of "+batch(e.Baseline), b.labels[e.Key].short())
			if bestOf(g) {
				text = append(text, span{kind: words, text: ", and is never in bold"})
			}
			g.Notes = append(g.Notes, note{text: append(text, span{kind: words, text: "."})})
		}
	}
}

// slowed says for which runs, and in how many timed steps, the GPU was slowed down. slowed returns nil if no run was
// slowed in half of its steps.
func (b *builder) slowed(groups []exhibits.Group) Text {
	var shares []string          // the shares in order
	names := map[string][]Text{} // the runs' names, by share
	reasons, many, runs, hit := int64(0), 0, 0, []*exhibits.Group(nil)
	for i := range groups {
		for k := range groups[i].Entries {
			e := &groups[i].Entries[k]
			t := e.Throttled
			if e.StepMS == nil || t.Steps == 0 {
				continue
			}
			if runs++; t.Reasons&schemas.Throttled == 0 || 2*t.Slowed < t.Steps {
				continue
			}
			many, reasons = many+1, reasons|t.Reasons
			if len(hit) == 0 || hit[len(hit)-1] != &groups[i] {
				hit = append(hit, &groups[i])
			}
		}
	}
	if many == 0 {
		return nil
	}
	start := "lowed by " + strings.Join(schemas.ThrottleNames(reasons), ", ")
	const mostShares = 3
	if len(hit) == 1 {
		timed := 0
		for k := range hit[0].Entries {
			e := &hit[0].Entries[k]
			if e.StepMS == nil || e.Throttled.Steps == 0 {
				continue
			}
			if timed++; e.Throttled.Slowed == 0 {
				continue
			}
			share := fmt.Sprintf("%d of %d", e.Throttled.Slowed, e.Throttled.Steps)
			if names[share] == nil {
				shares = append(shares, share)
			}
			names[share] = append(names[share], b.labels[e.Key].short())
		}
		at := plain("S")
		if len(groups) > 1 {
			at = join(parse("At "), place(&b.paper, hit[0]), parse(", s"))
		}
		var parts []Text
		for i, share := range shares {
			of := list(names[share])
			switch {
			case len(names[share]) == timed && timed > 1:
				of = plain("every run")
			case len(shares) == 2 && i == 1 && len(names[shares[0]]) == 1 && len(names[share]) == timed-1 && timed > 2:
				of = plain("every other run")
			}
			what := share + " timed steps of "
			if i > 0 {
				what = share + " of "
			}
			parts = append(parts, join(parse(what), of))
		}
		if len(shares) <= mostShares {
			return join(at, parse(start+": "), list(parts), plain("."))
		}
	}
	return plain(fmt.Sprintf("S%s: at least half of the timed steps of %d of %d runs (README.md).", start, many, runs))
}

// addSlowed adds to the caption in which runs the GPU was slowed down.
func (p *Plate) addSlowed(b *builder) {
	if text := b.slowed(b.paper.Groups); len(text) > 0 {
		p.Caption = join(p.Caption, parse(" "), text)
	}
}

// kept says which training loops keep .grad from the previous step, and returns nil if all loops do or none does.
func (b *builder) kept(groups []exhibits.Group) Text {
	if shown := (exhibits.Paper{Groups: groups}); !shown.Freed() {
		return nil
	}
	keep, all, gone := 0, 0, false
	for i := range groups {
		if base := groups[i].Baseline(); base != nil && base.Kept != nil {
			return parse(" " + upper(b.baselineName()) + " keeps `.grad` of the step before.")
		}
		for k := range groups[i].Entries {
			e := &groups[i].Entries[k]
			if e.IsBaseline() || e.NormsOnly() || e.Status != schemas.StatusOK {
				continue
			}
			if all++; e.KeptGradientBytes != nil && *e.KeptGradientBytes > 0 {
				keep++
				gone = gone || e.Kept != nil && e.Kept.AtPeakBytes == 0
			}
		}
	}
	loops := "private loops"
	if b.subject() == "" {
		loops = "other loops"
	}
	if keep < all {
		loops = "some " + loops
	}
	until := ""
	if gone {
		until = "; some free it before the peak"
	}
	return parse(" " + upper(loops) + " keep `.grad` of the step before" + until + ".")
}
