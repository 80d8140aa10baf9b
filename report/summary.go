package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/screen"
	"github.com/dpsight/dpsight/schemas/units"
)

// Limits of a summary, in lines. A narrow terminal wraps lines.
const (
	summaryLines    = 60
	summaryNotes    = 12
	summaryFailures = 6
)

// writeSummary writes summary.txt: the main table, failures, notes, and a list of the other files. The summary has at
// most summaryLines lines, for any runs. The tables have the rest. The tables have the rest.
func (m *Model) writeSummary(w io.Writer) error {
	s := &m.Study
	title := cmp.Or(m.Title, "dpsight report")
	failures := failuresInShort(s)
	notes := limited(slices.Concat(verdictsInShort(s), failedInShort(s), m.figureNotes(), studyNotes(s), digestsOf(s),
		m.Notes, m.undrawn()), summaryNotes,
		"the tables and the page have them")
	contents := m.contents()
	taken := 3 + len(notes) + 1 + len(contents) // lines of the title, and blank lines around the tables
	for _, t := range failures {
		taken += 4 + len(t.Rows) + len(t.Notes)
	}
	const head = 5 // lines beside the main table's rows: title, columns, rule, rows left out, a column's meaning
	main := mainTable(s, summaryLines-taken-head)
	if _, err := io.WriteString(w, screen.Wrap(title+"\n\n", screen.Of(w).Columns, "")); err != nil {
		return err
	}
	if err := table.Write(w, "table", append([]table.Table{main}, failures...)...); err != nil {
		return err
	}
	var b strings.Builder
	b.WriteByte('\n')
	for _, n := range notes {
		b.WriteString("note: " + n + "\n")
	}
	b.WriteString("\n" + strings.Join(contents, "\n") + "\n")
	_, err := io.WriteString(w, screen.Wrap(b.String(), screen.Of(w).Columns, "      "))
	return err
}

// limited keeps at most most sentences. If it leaves out some, the last one states how many, and where to find them.
func limited(all []string, most int, where string) []string {
	if len(all) <= most {
		return all
	}
	return append(slices.Clone(all[:most-1]), fmt.Sprintf("%d more: %s", len(all)-most+1, where))
}

// mainTable has the peak and the step time of each experiment, both compared with its baseline, which is in a row above
// it. If there are more than most experiments, it has those with the highest peaks and their baselines.
func mainTable(s *compare.Study, most int) table.Table {
	t := table.Table{Title: "Peak and step", Columns: []table.Column{
		{Title: "Run", Key: "run"},
		{Title: "Repeats", Key: "repeats", Right: true, Priority: 1},
		{Title: "Peak MiB", Key: "peak_bytes", Right: true, Priority: 6},
		{Title: "Overhead MiB", Key: "peak_delta_bytes", Right: true, Priority: 5},
		{Title: "%", Key: "peak_delta_percent", Right: true, Priority: 4},
		{Title: "If freed MiB", Key: "freed_delta_bytes", Right: true},
		{Title: "Step ms", Key: "step_ms", Right: true, Priority: 3},
		{Title: "Slowdown", Key: "step_ratio", Right: true, Priority: 2},
		{Title: "Reserved MiB", Key: "peak_reserved_bytes", Right: true},
		{Title: "J/step", Key: "joules_per_step", Right: true},
	}}
	compared := slices.ContainsFunc(s.Cells, func(c compare.Cell) bool { return c.Overhead != nil && !c.IsBaseline() })
	if compared {
		t.Title += ", compared with " + overWhat(s)
	}
	cells, left := foremost(besideBaselines(s), most)
	all, freed := ofStudy(s), false
	for _, c := range cells {
		repeats := table.Absent()
		if n := len(c.RunIDs); n > 1 {
			repeats = table.Count(int64(n))
		}
		step, _, _, _, _ := intervalCells(c.StepMS)
		row := []table.Cell{all.cell(c.Label, &c.Identity), repeats, table.Optional(c.PeakBytes, table.Bytes)}
		delta, percent, free, slowdown := table.Absent(), table.Absent(), table.Absent(), table.Absent()
		switch o := c.Overhead; {
		case o == nil || !compared:
		case c.IsBaseline():
			delta.Text, percent.Text, free.Text, slowdown.Text = "baseline", "", "", ""
		default:
			delta, slowdown = table.Optional(o.PeakDeltaBytes, table.DeltaBytes), table.Optional(o.StepRatio, table.Ratio)
			free = table.Optional(o.FreedDeltaBytes, table.DeltaBytes)
			freed = freed || o.FreedDeltaBytes != nil
			if r := o.PeakRatio; r != nil {
				percent = deltaPercent(100 * (*r - 1))
			}
		}
		t.Rows = append(t.Rows, append(row, delta, percent, free, step, slowdown,
			table.Optional(c.PeakReservedBytes, table.Bytes), table.Optional(c.JoulesPerStep, rate)))
	}
	hideEmpty(&t)
	if left > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("the highest peaks; %d other experiments: tables/methods.md", left))
	}
	if freed {
		t.Notes = append(t.Notes, "if freed: the overhead if every loop freed .grad between steps, see tables/overhead.md")
	}
	return t
}

// besideBaselines returns the cells of a study in order, except that each baseline is just before the cells that are
// compared with it.
func besideBaselines(s *compare.Study) (out []*compare.Cell) {
	first := map[string]int{} // index of each baseline's first cell
	place := func(c *compare.Cell) int {
		if c.Baseline == nil {
			return len(s.Cells)
		}
		return first[c.Baseline.RunID]
	}
	for i := range s.Cells {
		c := &s.Cells[i]
		out = append(out, c)
		if c.Baseline != nil {
			if _, known := first[c.Baseline.RunID]; !known {
				first[c.Baseline.RunID] = i
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *compare.Cell) int {
		if d := cmp.Compare(place(a), place(b)); d != 0 {
			return d
		}
		switch {
		case a.IsBaseline() && !b.IsBaseline():
			return -1
		case b.IsBaseline() && !a.IsBaseline():
			return 1
		}
		return 0
	})
	return out
}

// foremost keeps, in order, at most most cells: those with the highest peaks, and their baselines. foremost also
// returns the number of other cells.
func foremost(cells []*compare.Cell, most int) (kept []*compare.Cell, left int) {
	if len(cells) <= most {
		return cells, 0
	}
	ranked, places := slices.Clone(cells), map[string]*compare.Cell{}
	for _, c := range cells {
		places[c.RunID] = c
	}
	peak := func(c *compare.Cell) int64 {
		if c.PeakBytes == nil {
			return -1
		}
		return *c.PeakBytes
	}
	slices.SortStableFunc(ranked, func(a, b *compare.Cell) int { return cmp.Compare(peak(b), peak(a)) })
	chosen := map[*compare.Cell]bool{}
	for _, c := range ranked {
		more := []*compare.Cell{c}
		if c.Baseline != nil && places[c.Baseline.RunID] != nil {
			more = append(more, places[c.Baseline.RunID])
		}
		more = slices.DeleteFunc(more, func(c *compare.Cell) bool { return chosen[c] })
		if len(chosen)+len(more) > most {
			break
		}
		for _, c := range more {
			chosen[c] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(cells), func(c *compare.Cell) bool { return !chosen[c] }),
		len(cells) - len(chosen)
}

// failuresInShort returns a table of how many runs of each method ended well, and a table of the first failures. If all
// runs ended well it returns nothing.
func failuresInShort(s *compare.Study) (tables []table.Table) {
	success := SuccessTables(compare.Success(s.Runs))
	if len(success) < 2 {
		return nil
	}
	for i, where := range []string{"tables/success.md", "tables/failures.md"} {
		t := success[i]
		t.Notes = nil
		if left := len(t.Rows) - summaryFailures; left > 0 {
			t.Rows, t.Notes = t.Rows[:summaryFailures], []string{fmt.Sprintf("%d more: %s", left, where)}
		}
		tables = append(tables, t)
	}
	return tables
}

// failedInShort names the first requests that failed because memory was short. The tables say what held the memory.
func failedInShort(s *compare.Study) (notes []string) {
	const most = 3
	for i := range s.Runs {
		for k := range s.Runs[i].Failed {
			what, _, _ := strings.Cut(failedWords(&s.Runs[i].Failed[k]), ". ")
			notes = append(notes, s.Labels[i]+": "+what)
		}
	}
	return limited(notes, most, "tables/failed_requests.md")
}

// verdictsInShort says whether the breakdowns of the peaks were proved complete, and names the runs for which they were
// not.
func verdictsInShort(s *compare.Study) (notes []string) {
	const most = 4
	exact, doubtful := 0, compare.NewGrouped()
	for i := range s.Runs {
		verdicts := map[string]bool{}
		for k := range s.Runs[i].Breakdown.Devices {
			verdicts[s.Runs[i].Breakdown.Devices[k].Conservation.Verdict] = true
		}
		if len(verdicts) == 1 && verdicts[schemas.Exact] {
			exact++
			continue
		}
		for _, v := range identity.SortedKeys(verdicts) {
			if v != schemas.Exact {
				doubtful.Add("conservation: "+v, s.Labels[i])
			}
		}
	}
	if exact > 0 {
		notes = append(notes, "conservation: exact in "+units.Plural(exact, "run", "runs"))
	}
	return append(notes, limited(doubtful.Lines(), most, "tables/categories.md")...)
}

// contents describes the other files of the folder.
func (m *Model) contents() (lines []string) {
	if m.Page != nil {
		lines = append(lines, "index.html            the page: every run, at every moment")
	}
	lines = append(lines, "figures/*.png, *.svg  the pictures, one a file",
		"tables/*.md           all tables; *.csv the same for programs, *.tex for LaTeX")
	return append(lines, "results.json, *.csv   every figure of every run")
}
