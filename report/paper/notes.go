package paper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/schemas"
)

// special remembers that a table has cells of a state that its legend explains.
func (b *builder) special(state string) {
	if !slices.Contains(b.states, state) {
		b.states = append(b.states, state)
	}
}

// legend explains the states that cells of a table are in, and forgets them.
func (b *builder) legend(g *Grid) {
	words := map[string]string{schemas.StatusOOM: "OOM: out of memory.", schemas.Predicted: "Italic: predicted.",
		"bounded": "≥: at least, since the sizes of some blocks are not known."}
	var parts []string
	failed := false
	for _, s := range []string{schemas.StatusOOM, schemas.Predicted, "bounded"} {
		if slices.Contains(b.states, s) {
			parts = append(parts, words[s])
		}
	}
	for _, s := range b.states {
		failed = failed || words[s] == ""
	}
	if failed {
		parts = append(parts, "failed: ended early.")
	}
	if len(parts) > 0 {
		g.Notes = append(g.Notes, note{text: plain(strings.Join(parts, " "))})
	}
	b.states = nil
}

// mainNotes adds what changes how the main table reads: at most two notes and the legend. The rest is in README.md.
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
	var lent []Text
	for _, x := range b.paper.Groups {
		for i := range x.Entries {
			e := &x.Entries[i]
			if slices.ContainsFunc(e.Remarks, func(r compare.Remark) bool { return r.Kind == compare.RemarkEnergyLent }) &&
				!slices.ContainsFunc(lent, func(t Text) bool { return t.text() == b.labels[e.Key].Short }) {
				lent = append(lent, b.labels[e.Key].short())
			}
		}
	}
	energy := g.columnOf("joules_per_step")
	slowed := b.throttled()
	if energy >= 0 && len(lent) > 0 {
		text := "GPU energy by NVML, of separate bare runs."
		if len(lent) < len(b.paper.Methods) && len(lent) <= 3 {
			text = "GPU energy by NVML; of a separate bare run for " + list(lent).text() + "."
		} else if len(lent) < len(b.paper.Methods) {
			text = "GPU energy by NVML; for most runs of a separate bare run."
		}
		if slowed != "" {
			text, slowed = text+" "+slowed, ""
		}
		g.Heads[energy].note = g.note(plain(text))
	}
	if c := g.columnOf("step_ms"); c >= 0 && slowed != "" {
		g.Heads[c].note = g.note(plain(slowed))
	}
	if c := g.columnOf(b.rateColumn().key); c >= 0 && g.columnOf("step_ms") >= 0 {
		g.Heads[c].note = g.note(plain("Of all timed steps together; the time of a step is their median."))
	}
	b.legend(g)
}

// throttled says in how many timed steps the GPU was slowed down; empty where in none, or in as many of all.
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
		if e.Throttled.Steps > 0 && !e.IsBaseline() && !slices.Contains(shares, share(e)) {
			shares = append(shares, share(e))
		}
	}
	if reasons&schemas.Throttled == 0 || base == nil || len(shares) == 0 || len(shares) == 1 && shares[0] == share(base) {
		return ""
	}
	if len(shares) == 1 {
		return fmt.Sprintf("The GPU was slowed down in %s timed steps of the others, in %s of %s.", shares[0], share(base),
			b.baselineName())
	}
	return "The GPU was slowed down in some timed steps, not as often in all runs (README.md)."
}
