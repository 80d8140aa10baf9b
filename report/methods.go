package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// ConfigurationTables returns tables of the settings that all runs of a study share, of settings that only some runs
// have, and of settings that differ. In the last table each run has a row.
func ConfigurationTables(s *compare.Study) []table.Table {
	setting, value := table.Column{Title: "Setting", Key: "setting"}, table.Column{Title: "Value", Key: "value"}
	common := table.Table{Title: "Configuration of all runs", Columns: []table.Column{setting, value}}
	for _, f := range s.Configuration.Common {
		common.Rows = append(common.Rows, []table.Cell{table.Text(f.What), table.Text(f.Value)})
	}
	if len(common.Rows) == 0 {
		common.Notes = append(common.Notes, "the runs have no setting in common")
	}
	common.Notes = append(common.Notes, unmeasured(s)...)
	tables := []table.Table{common}
	if len(s.Configuration.Some) > 0 {
		some := table.Table{Title: "Settings of some runs, equal in those", Columns: []table.Column{setting, value,
			{Title: "Runs", Key: "runs"}}}
		for _, f := range s.Configuration.Some {
			some.Rows = append(some.Rows, []table.Cell{table.Text(f.What), table.Text(f.Value),
				table.Text(havingIt(s, f.What))})
		}
		some.Notes = unmeasured(s)
		tables = append(tables, some)
	}
	if len(s.Configuration.Varying) == 0 || len(s.Cells) == 0 {
		return tables
	}
	all := ofStudy(s)
	differ := table.Table{Title: "Settings that differ", Columns: []table.Column{{Title: "Run", Key: "run"}},
		Notes: all.notes()}
	for _, what := range s.Configuration.Varying {
		differ.Columns = append(differ.Columns, table.Column{Title: what, Key: what})
	}
	for i := range s.Cells {
		c := &s.Cells[i]
		row := []table.Cell{all.cell(c.Label, &c.Identity)}
		for _, what := range s.Configuration.Varying {
			if v := c.Fact(what); v != "" {
				row = append(row, table.Text(v))
			} else {
				row = append(row, table.Absent())
			}
		}
		differ.Rows = append(differ.Rows, row)
	}
	return append(tables, differ)
}

// unmeasured names the runs that were not measured on a GPU. The GPU among the settings may be a phantom GPU.
func unmeasured(s *compare.Study) []string {
	var notes runNotes
	badgeOf := func(c *compare.Cell) string {
		if c.Source == schemas.Measured {
			return ""
		}
		return c.Badge()
	}
	badges := map[string]bool{}
	for i := range s.Cells {
		badges[badgeOf(&s.Cells[i])] = true
	}
	for i := range s.Cells {
		switch badge := badgeOf(&s.Cells[i]); {
		case badge == "":
		case len(badges) == 1:
			return []string{"all runs: " + badge}
		default:
			notes.add(s.Cells[i].Label, badge)
		}
	}
	return notes.all()
}

// havingIt names the runs with a setting or, if these are fewer, the runs without it. If both are many, it only counts
// runs. The CSV file has each run's setting.
func havingIt(s *compare.Study, what string) string {
	const most = 6
	var having, lacking []string
	for i := range s.Cells {
		c := &s.Cells[i]
		if slices.ContainsFunc(c.Facts(), func(f identity.Fact) bool { return f.What == what }) {
			having = append(having, nameAmong(s, c))
		} else {
			lacking = append(lacking, nameAmong(s, c))
		}
	}
	switch {
	case len(having) <= min(len(lacking), most):
		return strings.Join(having, ", ")
	case len(lacking) <= most:
		return "all but " + strings.Join(lacking, ", ")
	}
	return fmt.Sprintf("%d of %d", len(having), len(s.Cells))
}

// nameAmong returns a cell's label, with its badge if another cell has the same label: a failed run may share its
// label with a good one.
func nameAmong(s *compare.Study, c *compare.Cell) string {
	if badge := compare.StatusBadge(&c.Summary.Identity); badge != "" &&
		slices.ContainsFunc(s.Cells, func(o compare.Cell) bool {
			return o.RunID != c.RunID && o.Label == c.Label
		}) {
		return c.Label + " [" + badge + "]"
	}
	return c.Label
}

// captions returns a few lines on the configuration for figures: the settings that all runs share, and settings other
// than the method that differ, since bars then differ by more than the method.
func captions(s *compare.Study) []string {
	var common, some []string
	for _, f := range s.Configuration.Common {
		if _, ok := captionWords[f.What]; ok {
			common = append(common, captionText(f.What, f.Value))
		}
	}
	for _, f := range s.Configuration.Some {
		if _, ok := captionWords[f.What]; ok {
			some = append(some, captionText(f.What, f.Value)+" ("+havingIt(s, f.What)+")")
		}
	}
	var notes []string
	if len(common) > 0 {
		notes = append(notes, strings.Join(common, ", "))
	}
	if len(some) > 0 {
		notes = append(notes, "not of all runs: "+strings.Join(some, "; "))
	}
	if differ := captionDiffer(s); len(differ) > 0 {
		notes = append(notes, "runs differ in "+strings.Join(differ, "; "))
	}
	return notes
}

// captionDiffer returns the settings that differ between runs, with each run's value if the values are short.
// captionDiffer leaves out the method, which figures always compare, and what should not change peaks or medians: the
// numbers of steps, the seed and the driver.
func captionDiffer(s *compare.Study) []string {
	const room = 90
	var out []string
	for _, what := range s.Configuration.Varying {
		if slices.Contains([]string{"method", "num_iter", "warmup_iter", "seed", "driver"}, what) ||
			what == "physical_batch_size" && wholeBatches(s) {
			continue
		}
		var values []string
		runs := map[string][]string{}
		for i := range s.Cells {
			c := &s.Cells[i]
			v := c.Fact(what)
			if v == "" {
				continue
			}
			if runs[v] == nil {
				values = append(values, v)
			}
			runs[v] = append(runs[v], c.Label)
		}
		var named, counted []string
		for _, v := range values {
			named = append(named, v+" ("+strings.Join(runs[v], ", ")+")")
			counted = append(counted, fmt.Sprintf("%s (%d)", v, len(runs[v])))
		}
		text := strings.Join(named, ", ")
		if len(text) > room {
			text = strings.Join(counted, ", ")
		}
		if word := captionWords[what]; word != "" {
			what = word
		}
		out = append(out, what+": "+text)
	}
	return out
}

// wholeBatches reports whether each run's physical batch is its whole batch.
func wholeBatches(s *compare.Study) bool {
	return !slices.ContainsFunc(s.Cells, func(c compare.Cell) bool {
		return c.Fact("physical_batch_size") != c.Fact("batch_size")
	})
}

func captionText(what, value string) string {
	if word := captionWords[what]; word != "" {
		return word + " " + value
	}
	return value
}

// captionWords has, for each parameter, the word before its value in a caption, or "" if the value is clear by itself.
var captionWords = map[string]string{"model": "", "preset": "preset", "batch_size": "batch", "seq_len": "sequence",
	"precision": "", "optimizer": "", "GPU": "",
	"torch": "torch", "Opacus": "Opacus"}

// captionOrder is the order of parameters in a caption about one run.
var captionOrder = []string{"model", "preset", "batch_size", "seq_len", "precision", "optimizer", "GPU", "torch",
	"Opacus"}

// methodsTable has a row for each experiment, with its memory and time in absolute figures.
func methodsTable(s *compare.Study) table.Table {
	t := table.Table{Title: "Memory, time and energy", Columns: []table.Column{
		{Title: "Run", Key: "run"},
		{Title: "Method", Key: "method"},
		{Title: "Repeats", Key: "repeats", Right: true},
		{Title: "Peak allocated MiB", Key: "peak_bytes", Right: true},
		{Title: "Lowest", Key: "peak_low_bytes", Right: true},
		{Title: "Highest", Key: "peak_high_bytes", Right: true},
		{Title: "Reserved MiB", Key: "peak_reserved_bytes", Right: true},
		{Title: "Device MiB", Key: "peak_device_bytes", Right: true},
		{Title: "Step ms", Key: "step_ms", Right: true, Begins: true},
		{Title: "Low", Key: "step_ms_low", Right: true},
		{Title: "High", Key: "step_ms_high", Right: true},
		{Title: "n", Key: "step_n", Right: true},
		{Title: "Confidence %", Key: "step_confidence", Right: true},
		{Title: "Samples/s", Key: "samples_per_s", Right: true, Begins: true},
		{Title: "Tokens/s", Key: "tokens_per_s", Right: true},
		{Title: "J/step", Key: "joules_per_step", Right: true},
		{Title: "J/sample", Key: "joules_per_sample", Right: true},
	}}
	spread, repeated, metered := false, false, hasEnergy(s)
	all := ofStudy(s)
	t.Notes = all.notes()
	var notes runNotes
	for i := range s.Cells {
		c := &s.Cells[i]
		label := all.badged(c.Label, &c.Identity)
		method := table.Absent()
		if c.Method() != "" {
			method = table.Text(c.Method())
		}
		step, low, high, n, confidence := intervalCells(c.StepMS)
		t.Rows = append(t.Rows, []table.Cell{all.cell(c.Label, &c.Identity), method, table.Count(int64(len(c.RunIDs))),
			table.Optional(c.PeakBytes, table.Bytes),
			table.Optional(c.PeakLow, table.Bytes), table.Optional(c.PeakHigh, table.Bytes),
			table.Optional(c.PeakReservedBytes, table.Bytes),
			table.Optional(c.PeakDeviceBytes, table.Bytes), step, low, high, n, confidence,
			table.Optional(c.SamplesPerS, rate), table.Optional(c.TokensPerS, rate), table.Optional(c.JoulesPerStep,
				rate), table.Optional(c.JoulesPerSample, rate)})
		if c.PeakBytes == nil {
			notes.add(label, ended(c))
		}
		if c.NoEnergy != "" && metered {
			notes.add(label, noEnergyWords(c.NoEnergy))
		}
		for _, w := range comparisonWords(c.Remarks) {
			notes.add(label, w)
		}
		spread = spread || c.PeakLow != nil && *c.PeakLow != *c.PeakHigh
		repeated = repeated || len(c.RunIDs) > 1
	}
	t.Notes = append(t.Notes, notes.all()...)
	t.Notes = append(t.Notes, spreadNotes(s)...)
	if !spread && peaksOfAllRepeats(s) {
		t.Notes = append(t.Notes, "peak allocated is the same to the byte in all repeats of a run")
	}
	for c := range t.Columns {
		if key := t.Columns[c].Key; !spread && (key == "peak_low_bytes" || key == "peak_high_bytes") || !repeated &&
			key == "repeats" {
			t.Columns[c].For = table.Programs
		}
	}
	hideEmpty(&t)
	t.Notes = append(t.Notes, digestsOf(s)...)
	return withSources(t, s)
}

// peaksOfAllRepeats reports whether some experiment has repeats, and each repeat that ended well has a peak.
func peaksOfAllRepeats(s *compare.Study) bool {
	peaks := map[string]int{}
	for i := range s.Runs {
		r := &s.Runs[i]
		if r.Status == schemas.StatusOK && r.PeakBytes != nil {
			peaks[r.RunID]++
		}
	}
	repeated := false
	for i := range s.Cells {
		c, known := &s.Cells[i], 0
		for _, id := range c.RunIDs {
			known += peaks[id]
		}
		if c.Good > 1 && known < c.Good {
			return false
		}
		repeated = repeated || c.Good > 1
	}
	return repeated
}

// hasEnergy reports whether the table has a column of energies. If so, a note explains its gaps.
func hasEnergy(s *compare.Study) bool {
	return slices.ContainsFunc(s.Cells, func(c compare.Cell) bool { return c.JoulesPerStep != nil })
}

// intervalCells returns cells for a median, the ends of its interval, the number of values, and the confidence.
func intervalCells(v *timing.Interval) (median, low, high, n, confidence table.Cell) {
	if v == nil {
		a := table.Absent()
		return a, a, a, a, a
	}
	return table.Milliseconds(v.Median), table.Milliseconds(v.Low), table.Milliseconds(v.High), table.Count(int64(v.N)),
		table.Cell{Text: units.Fixed(100*v.Confidence, 1), Value: v.Confidence}
}

// spreadNotes explain the columns low and high, for each kind of interval in the cells.
func spreadNotes(s *compare.Study) []string {
	kinds := map[string]bool{}
	for i := range s.Cells {
		if v := s.Cells[i].StepMS; v != nil {
			kinds[spreadNote(v)] = true
		}
	}
	return sortedKeys(kinds)
}

// spreadNote explains the columns low and high for one kind of interval.
func spreadNote(v *timing.Interval) string {
	clock := map[string]string{timing.ClockGPU: "GPU time", timing.ClockWall: "wall time"}[v.Clock]
	what, ends := "step ms: median of n steps ("+clock+")", "the fastest and the slowest step"
	if v.Over == timing.OverRepeats {
		what, ends = "step ms: median of the medians of n repeats ("+clock+")", "the fastest and the slowest repeat"
	}
	if v.Of == timing.OfMedian {
		return what + "; low and high enclose the true median with at least 95 % confidence (order statistics)"
	}
	return what + "; low and high are " + ends + enclosing(v)
}

// enclosing states the confidence with which a range contains the true median: with fewer than six values, no range
// reaches 95 %.
func enclosing(v *timing.Interval) string {
	if v.N < 2 {
		return ""
	}
	return fmt.Sprintf(" (%s %% confidence of the true median)", strconv.FormatFloat(100*v.Confidence, 'f', -1, 64))
}
