package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// BreakdownTables returns a table for each device of each run, and one table that lists the runs without a breakdown.
// Each table carries the whole document.
func BreakdownTables(doc memory.BreakdownDocument) []table.Table {
	doc.Runs = tellBreakdowns(doc.Runs)
	var tables []table.Table
	var empty []*memory.BreakdownRun
	for i := range doc.Runs {
		r := &doc.Runs[i]
		if len(r.Devices) == 0 {
			empty = append(empty, r)
		}
		for k := range r.Devices {
			tables = append(tables, deviceTable(r, &r.Devices[k]))
		}
	}
	if len(empty) > 0 || len(tables) == 0 {
		tables = append(tables, emptyTable(empty))
	}
	table.DropZero(tables, "stack_bytes")
	tellRules(tables, len(doc.Runs), func(i int) *identity.Identity { return &doc.Runs[i].Identity })
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

// KnownTable has a row for each device: how many of its allocated bytes have a known purpose, by kind of evidence, and
// how many have none. The table carries the whole document.
func KnownTable(doc memory.BreakdownDocument) table.Table {
	doc.Runs = tellBreakdowns(doc.Runs)
	t := table.Table{Title: "How each byte was attributed", Document: doc, Columns: slices.Concat(machineColumns,
		[]table.Column{
			{Title: "Run", For: table.People},
			{Title: "Device", For: table.People},
			{Title: "MiB", Key: "bytes", Right: true},
			{Title: "Tagged %", Key: "tagged_percent", Right: true},
			{Title: "By lifetime %", Key: "lifetime_percent", Right: true},
			{Title: "By stack %", Key: "stack_percent", Right: true},
			{Title: "By phase only %", Key: "phase_only_percent", Right: true},
			{Title: "Other and untraced %", Key: "unowned_percent", Right: true},
			{Title: "Ambiguous tags", Key: "ambiguous_tags", Right: true},
			{Title: "Conservation", Key: "verdict"},
		})}
	var notes runNotes
	all, bare := ofBroken(doc.Runs), false
	t.Notes = all.notes()
	for i := range doc.Runs {
		r := &doc.Runs[i]
		name := all.badged(r.Shown(), &r.Identity)
		switch {
		case len(r.Devices) > 0:
		case r.Bare():
			bare = true
		default:
			notes.add(name, "no breakdown: "+cmp.Or(withoutBreakdown(r), r.Status))
		}
		for k := range r.Devices {
			d := &r.Devices[k]
			known := d.Known()
			share := func(n int64) table.Cell { return hundredth(n, d.AllocatedBytes) }
			t.Rows = append(t.Rows, append(machineCells(&r.Identity, table.Text(d.Device), table.Count(int64(d.Rank))),
				table.Text(name), table.Text(d.Device+rank(d.Rank)),
				table.Bytes(d.AllocatedBytes), share(known.TaggedBytes), share(known.LifetimeBytes),
				share(known.StackBytes), share(known.PhaseOnlyBytes), share(known.UnownedBytes),
				table.Count(d.Conservation.AmbiguousTags), table.Text(d.Conservation.Verdict)))
			for _, w := range d.Warnings {
				notes.add(name, w)
			}
		}
	}
	if bare {
		t.Notes = append(t.Notes, "left out bare runs: they have no breakdown")
	}
	t.Notes = append(t.Notes, notes.all()...)
	t.Notes = append(t.Notes, "the three evidence columns sum to 100 %; they include other and untraced")
	t.Notes = append(t.Notes, rulesNotesOf(len(doc.Runs), func(i int) *identity.Identity {
		return &doc.Runs[i].Identity
	})...)
	return t.WithoutZero("stack_percent")
}

// ofBroken returns the badge that all runs share, except bare runs without a breakdown, which a note names.
func ofBroken(runs []memory.BreakdownRun) common {
	named := slices.DeleteFunc(slices.Clone(runs), func(r memory.BreakdownRun) bool {
		return len(r.Devices) == 0 && r.Bare()
	})
	return of(len(named), func(i int) *identity.Identity { return &named[i].Identity })
}

// hundredth formats a share in percent. Only an exact 0 or 100 is shown as such.
func hundredth(part, whole int64) table.Cell {
	c := table.Absent()
	if whole == 0 {
		return c
	}
	c = table.Number(100*float64(part)/float64(whole), 2)
	switch {
	case part > 0 && c.Text == "0.00":
		c.Text = "<0.01"
	case part < whole && c.Text == "100.00":
		c.Text = ">99.99"
	}
	return c
}

// machineColumns name the run and the device in every row of a CSV file.
var machineColumns = []table.Column{{Key: "run_id", For: table.Programs}, {Key: "name", For: table.Programs},
	{Key: "status", For: table.Programs},
	{Key: "source", For: table.Programs}, {Key: "profile", For: table.Programs}, {Key: "device", For: table.Programs},
	{Key: "rank", For: table.Programs}}

func machineCells(id *identity.Identity, device, rank table.Cell) []table.Cell {
	return []table.Cell{table.Text(id.RunID), table.Text(id.Name), table.Text(id.Status), table.Text(howKnown(id)),
		table.Optional(id.Profile, table.Text), device, rank}
}

// howKnown returns where a run is from, such as "predicted", and whether its peak is bounded.
func howKnown(id *identity.Identity) string {
	if id.Bounded() {
		return id.Source + ", " + schemas.Bounded
	}
	return id.Source
}

// tellBounded adds columns to a table of two runs that tell programs which run's peak is bounded. People see this in
// the titles and notes, which programs do not read.
func tellBounded(t *table.Table, a, b *identity.Identity, ofA, ofB string) {
	var bounded []string
	if a != nil && a.Bounded() {
		bounded = append(bounded, ofA)
	}
	if b != nil && b.Bounded() {
		bounded = append(bounded, ofB)
	}
	if bounded == nil {
		return
	}
	t.Columns = append(t.Columns, table.Column{Key: schemas.Bounded, For: table.Programs})
	for i := range t.Rows {
		t.Rows[i] = append(t.Rows[i], table.Text(strings.Join(bounded, " and ")))
	}
}

var categoryColumns = []table.Column{
	{Title: "Category", Key: "category"},
	{Title: "MiB", Key: "bytes", Priority: 6, Right: true},
	{Title: "%", Key: "percent", Priority: 5, Right: true},
	{Title: "Shared", Key: "shared_bytes", Right: true},
	{Title: "Tagged", Key: "tagged_bytes", Priority: 4, Right: true},
	{Title: "By lifetime", Key: "lifetime_bytes", Priority: 3, Right: true},
	{Title: "By stack", Key: "stack_bytes", Priority: 5, Right: true},
	{Title: "By phase only", Key: "phase_only_bytes", Priority: 2, Right: true},
	{Title: "Blocks", Key: "blocks", Right: true},
	{Title: "Own maximum", Key: "max_bytes", Priority: 1, Right: true},
}

// emptyTable lists runs without a breakdown. For programs each of them is a row without figures.
func emptyTable(runs []*memory.BreakdownRun) table.Table {
	t := table.Table{Title: "Runs without a breakdown", Columns: slices.Concat(machineColumns,
		[]table.Column{{Title: "Run", For: table.People},
			{Title: "Run id", For: table.People}, {Title: "Status", For: table.People},
			{Title: "Reason", For: table.People}})}
	for _, c := range categoryColumns {
		t.Columns = append(t.Columns, table.Column{Key: c.Key, For: table.Programs})
	}
	for _, r := range runs {
		reason := withoutBreakdown(r)
		row := append(machineCells(&r.Identity, table.Absent(), table.Absent()), table.Text(identified(&r.Identity)),
			table.Text(r.RunID), table.Text(r.Status), table.Text(reason))
		t.Rows = append(t.Rows, append(row, make([]table.Cell, len(categoryColumns))...))
	}
	return t
}

// withoutBreakdown returns why a run has no breakdown, or "" if the reason is unknown.
func withoutBreakdown(r *memory.BreakdownRun) string {
	switch {
	case r.Missing != "":
		return r.Missing
	case r.Reason != "":
		return r.Reason
	case r.Bare():
		return "bare: counters and timers only"
	case r.Status == schemas.StatusOK:
		return "no allocator events, or not ingested"
	}
	return ""
}

func deviceTable(r *memory.BreakdownRun, d *memory.DeviceBreakdown) table.Table {
	t := table.Table{Title: fmt.Sprintf("%s, %s%s, %s", identified(&r.Identity), d.Device, rank(d.Rank), moment(&d.At)),
		Columns: slices.Concat(machineColumns, categoryColumns)}
	row := func(name string, cells ...table.Cell) {
		cells = append(append(machineCells(&r.Identity, table.Text(d.Device), table.Count(int64(d.Rank))),
			table.Text(name)), cells...)
		for len(cells) < len(t.Columns) {
			cells = append(cells, table.Absent())
		}
		t.Rows = append(t.Rows, cells)
	}
	for _, c := range d.Categories {
		row(c.Category, table.Bytes(c.Bytes), percent(c.Bytes, d.AllocatedBytes), table.Bytes(c.SharedBytes),
			table.Bytes(c.TaggedBytes), table.Bytes(c.LifetimeBytes), table.Bytes(c.StackBytes),
			table.Bytes(c.PhaseOnlyBytes), table.Count(c.Blocks), table.Bytes(c.MaxBytes))
	}
	row("allocated", table.Bytes(d.AllocatedBytes), percent(d.AllocatedBytes, d.AllocatedBytes))
	if d.ReservedBytes != nil {
		row(map[bool]string{true: "reserved at the peak", false: "reserved at that moment"}[d.AtPeak],
			table.Bytes(*d.ReservedBytes))
	}
	if d.PeakReservedBytes != nil {
		row("highest reserved", table.Bytes(*d.PeakReservedBytes))
	}
	t.Notes = append(t.Notes, conservation(d))
	if s := sharedSentence(d); s != "" {
		t.Notes = append(t.Notes, s)
	}
	t.Notes = append(t.Notes, d.Warnings...)
	t.Notes = append(t.Notes, r.Warnings...)
	t.Notes = append(t.Notes, runSources(&r.Identity)...)
	return t
}

func rank(r int32) string {
	if r == 0 {
		return ""
	}
	return fmt.Sprintf(" of rank %d", r)
}

func moment(m *memory.Moment) string {
	s := fmt.Sprintf("after event %d", m.Event)
	if m.Step != nil {
		s += fmt.Sprintf(", step %d", *m.Step)
	}
	if m.Phase != nil {
		s += ", " + *m.Phase
	}
	return s
}

func percent(part, whole int64) table.Cell {
	if whole == 0 {
		return table.Absent()
	}
	return table.Number(100*float64(part)/float64(whole), 1)
}

// sharedSentence returns a sentence for the end of a breakdown in which DP hooks hold blocks that others hold too. Most
// tools count these bytes wrongly.
func sharedSentence(d *memory.DeviceBreakdown) string {
	s := d.SharedHookActivations()
	if s == nil {
		return ""
	}
	return sharedActivationSentence(s)
}

func sharedActivationSentence(s *memory.SharedActivation) string {
	by := "by autograd"
	if s.AutogradBytes < s.SharedBytes {
		by = fmt.Sprintf("by others (%s MiB by autograd)", units.InMiB(s.AutogradBytes))
	}
	text := fmt.Sprintf("hook_activations: %s of %s MiB are also held %s", units.InMiB(s.SharedBytes),
		units.InMiB(s.HeldBytes), by)
	if s.ExtraBytes == 0 {
		return text + ": their extra cost is 0.00 MiB"
	}
	return text + "; hooks alone hold " + units.MiB(s.ExtraBytes)
}

func conservation(d *memory.DeviceBreakdown) string {
	return conservationSentence(&d.Conservation, d.TorchPeakAllocatedBytes)
}

func conservationSentence(c *memory.Conservation, torch *int64) string {
	s := fmt.Sprintf("conservation: %s, residue %s B", c.Verdict, units.Fixed(float64(c.ResidueBytes), 0))
	if c.PeakHighBytes != nil {
		s += "; " + boundedPeak(*c.PeakLowBytes, *c.PeakHighBytes)
	}
	if c.OpenBytes > 0 {
		s += fmt.Sprintf("; at this moment up to %s MiB more may have been allocated, as slack", units.InMiB(c.OpenBytes))
	}
	if torch != nil {
		s += fmt.Sprintf("; torch's own peak %s MiB", units.InMiB(*torch))
	}
	if c.AmbiguousTags > 0 {
		s += fmt.Sprintf("; %d ambiguous tags", c.AmbiguousTags)
	}
	if reason := conservationReason(c); reason != "" {
		s += "; " + reason
	}
	return s
}

// boundedPeak states the lower and the upper bound of a peak that includes blocks of unknown size.
func boundedPeak(low, high int64) string {
	if low == high {
		return "the peak is exact, but some blocks from before recording began have no known size: other moments may be " +
			"higher than shown"
	}
	return fmt.Sprintf("the peak is at least %s MiB and at most %s MiB: some blocks from before recording began have no "+
		"known size", units.InMiB(low), units.InMiB(high))
}

func sourceNotes(id *identity.Identity) []string {
	switch id.Source {
	case schemas.Predicted:
		return append([]string{predictedNote}, confidenceNotes(id)...)
	case schemas.Imported:
		return []string{importedNote}
	}
	return nil
}

// comparisonTable has a row for each category and a column for each cell of the study, at the peak of the cell's run.
func comparisonTable(s *compare.Study, from, to int) table.Table {
	t := table.Table{Notes: ofStudy(s).notes(), Title: "Peak allocated memory by category (MiB)",
		Columns: cellColumns(s, table.Column{Title: "Category", Key: "category"}, from, to)}
	if len(s.Cells) == 0 {
		t.Notes = append(t.Notes, "no run was found")
		return t
	}
	cells := s.Cells[from:to]
	row := func(name string, cell func(*compare.Cell) table.Cell) {
		line := []table.Cell{table.Text(name)}
		for i := range cells {
			line = append(line, cell(&cells[i]))
		}
		t.Rows = append(t.Rows, line)
	}
	listed, leftOut := listedCategories(s)
	for _, c := range listed {
		row(c, func(r *compare.Cell) table.Cell {
			if r.Main() == nil {
				return table.Absent()
			}
			return table.Bytes(r.Main().Category(c).Bytes)
		})
	}
	row("peak allocated", func(r *compare.Cell) table.Cell { return table.Optional(r.PeakBytes, table.Bytes) })
	row("peak reserved", func(r *compare.Cell) table.Cell { return table.Optional(r.PeakReservedBytes, table.Bytes) })
	var notes runNotes
	for i := range cells {
		r, label := &cells[i], cells[i].Label
		if d := r.Main(); d != nil {
			if sentence := sharedSentence(d); sentence != "" {
				notes.add(label, sentence)
			}
			if d.Conservation.Verdict != schemas.Exact {
				notes.add(label, conservation(d))
			}
			for _, w := range memoryWords(d.Remarks) {
				notes.add(label, w)
			}
			if !r.BrokenDown() {
				notes.add(label, fmt.Sprintf("only torch's counter has the peak; the categories show the "+
					"highest recorded moment, %s MiB", units.InMiB(d.AllocatedBytes)))
			}
		} else {
			notes.add(label, ended(r))
		}
		for _, n := range sourceNotes(&r.Identity) {
			notes.say(n)
		}
	}
	t.Notes = append(t.Notes, notes.all()...)
	if leftOut {
		t.Notes = append(t.Notes, "left out categories that are empty at every peak")
	}
	return t
}

// listedCategories returns the categories that have bytes at some run's peak, and whether other categories have bytes
// only at other moments.
func listedCategories(s *compare.Study) (listed []schemas.Category, leftOut bool) {
	for _, c := range schemas.Categories {
		any := func(has func(memory.CategoryBytes) bool) bool {
			return slices.ContainsFunc(s.Cells, func(r compare.Cell) bool {
				return r.Main() != nil && has(r.Main().Category(c))
			})
		}
		switch {
		case any(func(b memory.CategoryBytes) bool { return b.Bytes != 0 }):
			listed = append(listed, c)
		case any(func(b memory.CategoryBytes) bool { return b.MaxBytes != 0 || b.HeldBytes != 0 }):
			leftOut = true
		}
	}
	return listed, leftOut
}
