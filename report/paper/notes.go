package paper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/schemas"
)

// legend explains the special cells that a table has.
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
	if len(parts) > 0 {
		g.Notes = append(g.Notes, note{text: plain(strings.Join(parts, " "))})
	}
}

// mainNotes adds what changes how the main table reads, at most three notes in the order of their columns. The other
// notes are in README.md.
func (b *builder) mainNotes(g *Grid) {
	if c := g.columnOf("freed_delta_bytes"); c >= 0 {
		keep, base := "the runs keep it", "the baseline frees it"
		if slices.ContainsFunc(b.paper.Groups, func(x exhibits.Group) bool {
			e := x.Baseline()
			return e != nil && e.Kept != nil
		}) {
			keep, base = "the baseline keeps it", "others free it"
		}
		g.Heads[c].note = g.note(parse("Δ if every loop freed `.grad` between steps: " + keep + ", and " + base + "."))
	}
	if text := b.timeNote(g); text != "" {
		letter := g.note(plain(text))
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

// timeNote says how the time of a step and the rate differ, and in how many steps the GPU was slowed down.
func (b *builder) timeNote(g *Grid) string {
	var parts []string
	if g.columnOf("step_ms") < 0 {
		return ""
	}
	if c := g.columnOf(b.rateColumn().key); c >= 0 {
		parts = append(parts, "Step time is the median of the timed steps; "+g.Heads[c].text.text()+
			" is of all of them together.")
	}
	if slowed := b.throttled(); slowed != "" {
		parts = append(parts, slowed)
	}
	return strings.Join(parts, " ")
}

// energyNote says which runs' energy was measured in a run of its own; nil if no run's energy was.
func (b *builder) energyNote() Text {
	var lent []Text
	var keys []string
	for _, x := range b.paper.Groups {
		for i := range x.Entries {
			e := &x.Entries[i]
			if !slices.Contains(keys, e.Key) && slices.ContainsFunc(e.Remarks, func(r compare.Remark) bool {
				return r.Kind == compare.RemarkEnergyLent
			}) {
				keys, lent = append(keys, e.Key), append(lent, b.labels[e.Key].inside())
			}
		}
	}
	const most = 3 // that are named
	switch {
	case len(lent) == 0:
		return nil
	case len(lent) == len(b.paper.Methods):
		return plain("Energy of the GPU by NVML, in separate runs without instrumentation.")
	case len(lent) <= most:
		return format("Energy of the GPU by NVML; for {} in a separate run without instrumentation.", list(lent))
	}
	return plain(fmt.Sprintf("Energy of the GPU by NVML; for %d of %d in a separate run without instrumentation.",
		len(lent), len(b.paper.Methods)))
}

// throttled says in how many timed steps the GPU was slowed down; empty if no step was slowed down, or every run as
// often as the baseline.
func (b *builder) throttled() string {
	if len(b.paper.Groups) != 1 {
		return ""
	}
	g := &b.paper.Groups[0]
	base := g.Baseline()
	share := func(e *exhibits.Entry) string {
		return fmt.Sprintf("%d of %d", e.Throttled.Slowed, e.Throttled.Steps)
	}
	var shares []string
	reasons := int64(0)
	for i := range g.Entries {
		e := &g.Entries[i]
		reasons |= e.Throttled.Reasons
		if !e.IsBaseline() && e.StepMS != nil && !slices.Contains(shares, share(e)) {
			shares = append(shares, share(e))
		}
	}
	if reasons&schemas.Throttled == 0 || base == nil || len(shares) == 0 || len(shares) == 1 && shares[0] == share(base) {
		return ""
	}
	why := strings.Join(schemas.ThrottleNames(reasons), ", ")
	if len(shares) == 1 && shares[0] != "0 of 0" {
		return fmt.Sprintf("The GPU was slowed down (%s) in %s timed steps of %s, and in %s of every other run.", why,
			share(base), b.baselineName(), shares[0])
	}
	return "The GPU was slowed down (" + why + ") in some timed steps, not as often in all runs (README.md)."
}
