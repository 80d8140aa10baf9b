package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// maxColumns is the most values of the second dimension that become columns of a table. With more values, each becomes
// a row below the first dimension's row.
const maxColumns = 8

// BreakdownByTables returns a table for each device of each run, and one table that lists the runs without a breakdown.
// Each table carries the whole document.
func BreakdownByTables(doc grouping.BreakdownByDocument) []table.Table {
	doc.Runs = tellBreakdownsBy(doc.Runs)
	var tables []table.Table
	var empty []*memory.BreakdownRun
	for i := range doc.Runs {
		r := &doc.Runs[i]
		if len(r.Devices) == 0 {
			empty = append(empty, &memory.BreakdownRun{Identity: r.Identity, Missing: r.Missing})
		}
		for k := range r.Devices {
			tables = append(tables, byTable(&doc, r, &r.Devices[k]))
		}
	}
	if len(empty) > 0 || len(tables) == 0 {
		tables = append(tables, emptyTable(empty))
	}
	table.DropZero(tables, "By stack")
	tellRules(tables, len(doc.Runs), func(i int) *identity.Identity { return &doc.Runs[i].Identity })
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

// BreakdownByRecords returns a breakdown for programs: one row for each combination of values, in whatever layout
// people see it.
func BreakdownByRecords(doc grouping.BreakdownByDocument) table.Table {
	doc.Runs = tellBreakdownsBy(doc.Runs)
	t := table.Table{Columns: append(slices.Clone(machineColumns), table.Column{Key: "event"}), Document: doc}
	for _, d := range doc.By {
		t.Columns = append(t.Columns, table.Column{Key: string(d)})
	}
	for _, k := range []string{"modules", "bytes", "tagged_bytes", "lifetime_bytes", "stack_bytes", "phase_only_bytes",
		"blocks"} {
		t.Columns = append(t.Columns, table.Column{Key: k})
	}
	for i := range doc.Runs {
		r := &doc.Runs[i]
		if len(r.Devices) == 0 {
			row := machineCells(&r.Identity, table.Absent(), table.Absent())
			t.Rows = append(t.Rows, append(row, make([]table.Cell, len(t.Columns)-len(row))...))
		}
		for k := range r.Devices {
			d := &r.Devices[k]
			head := append(machineCells(&r.Identity, table.Text(d.Device), table.Count(int64(d.Rank))),
				table.Count(d.At.Event))
			var leaves func(keys []table.Cell, modules int, rows []grouping.ByRow)
			leaves = func(keys []table.Cell, modules int, rows []grouping.ByRow) {
				for n := range rows {
					w := &rows[n]
					at, paths := append(slices.Clone(keys), keyCell(w, false)), max(modules, w.Modules)
					if len(at) < len(doc.By) {
						leaves(at, paths, w.Rows)
						continue
					}
					t.Rows = append(t.Rows, slices.Concat(head, at, []table.Cell{table.Count(int64(paths)),
						table.Bytes(w.Bytes),
						table.Bytes(w.TaggedBytes), table.Bytes(w.LifetimeBytes), table.Bytes(w.StackBytes),
						table.Bytes(w.PhaseOnlyBytes),
						table.Count(w.Blocks)}))
				}
			}
			leaves(nil, 0, d.Rows)
		}
	}
	return t.WithoutZero("stack_bytes")
}

// keyCell names a row. If counted, it adds the number of modules.
func keyCell(r *grouping.ByRow, counted bool) table.Cell {
	switch {
	case r.Others > 0:
		return table.Text(others(r.Others))
	case r.Key == nil:
		return table.Absent()
	case counted && r.Source != "":
		return table.Text(*r.Key + "  " + sourceCell(r.Source))
	case counted && r.ViewBytes != nil:
		return table.Text(fmt.Sprintf("%s  (views of %s MiB)", *r.Key, units.InMiB(*r.ViewBytes)))
	case counted && (r.Modules > 1 || r.Modules == 1 && strings.Contains(*r.Key, "*")):
		return table.Text(fmt.Sprintf("%s ×%d", *r.Key, r.Modules))
	}
	return table.Text(*r.Key)
}

// maxSource is the number of characters that a row shows of a line of the script.
const maxSource = 48

// sourceCell returns the part of a line of the script that a row shows.
func sourceCell(source string) string { return cut(source, maxSource) }

// cut shortens a text to most characters.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

func byTable(doc *grouping.BreakdownByDocument, r *grouping.BreakdownByRun, d *grouping.DeviceBy) table.Table {
	title := make([]string, len(doc.By))
	for i, dim := range doc.By {
		title[i] = string(dim)
	}
	t := table.Table{Title: fmt.Sprintf("%s, %s%s, %s, by %s", identified(&r.Identity), d.Device, rank(d.Rank),
		moment(&d.At), strings.Join(title, " and "))}
	if grid(doc, d) {
		byGrid(&t, doc, d)
	} else {
		byTree(&t, doc, d)
	}
	if s := d.SharedHookActivations; s != nil {
		t.Notes = append(t.Notes, sharedActivationSentence(s))
	}
	t.Notes = append(t.Notes, unknownNotes(doc, d)...)
	t.Notes = append(t.Notes, lineNotes(doc, d)...)
	t.Notes = append(t.Notes, conservationSentence(&d.Conservation, d.TorchPeakAllocatedBytes))
	t.Notes = append(t.Notes, d.Warnings...)
	t.Notes = append(t.Notes, r.Warnings...)
	t.Notes = append(t.Notes, runSources(&r.Identity)...)
	return t
}

// grid reports whether the second dimension has so few values that they can be columns.
func grid(doc *grouping.BreakdownByDocument, d *grouping.DeviceBy) bool {
	folded := func(rows []grouping.ByRow) bool {
		return slices.ContainsFunc(rows, func(r grouping.ByRow) bool { return r.Others > 0 })
	}
	return len(doc.By) > 1 && len(d.Columns) <= maxColumns && !folded(d.Columns) &&
		!slices.ContainsFunc(d.Rows, func(r grouping.ByRow) bool { return folded(r.Rows) })
}

// byGrid adds a row for each value of the first dimension and a column for each value of the second.
func byGrid(t *table.Table, doc *grouping.BreakdownByDocument, d *grouping.DeviceBy) {
	t.Columns = []table.Column{{Title: heading(doc.By[0])}}
	for i := range d.Columns {
		t.Columns = append(t.Columns, table.Column{Title: keyCell(&d.Columns[i], true).Text, Right: true})
	}
	t.Columns = append(t.Columns, table.Column{Title: "all MiB", Right: true}, table.Column{Title: "%", Right: true})
	line := func(name table.Cell, cells []grouping.ByRow, bytes int64) {
		row := []table.Cell{name}
		for i := range d.Columns {
			at := slices.IndexFunc(cells, func(c grouping.ByRow) bool { return sameKey(c.Key, d.Columns[i].Key) })
			if at < 0 {
				row = append(row, table.Text(""))
			} else {
				row = append(row, table.Bytes(cells[at].Bytes))
			}
		}
		t.Rows = append(t.Rows, append(row, table.Bytes(bytes), percent(bytes, d.AllocatedBytes)))
	}
	var known memory.Evidence
	for i := range d.Rows {
		r := &d.Rows[i]
		line(keyCell(r, true), r.Rows, r.Bytes)
		known.Merge(&r.Evidence)
	}
	line(table.Text("allocated"), d.Columns, d.AllocatedBytes)
	byStack := ""
	if known.StackBytes > 0 {
		byStack = fmt.Sprintf("by stack: %s MiB; ", units.InMiB(known.StackBytes))
	}
	t.Notes = append(t.Notes, fmt.Sprintf("category known by tag: %s MiB; by lifetime: %s MiB; %sby phase only: %s MiB",
		units.InMiB(known.TaggedBytes), units.InMiB(known.LifetimeBytes), byStack, units.InMiB(known.PhaseOnlyBytes)))
}

func sameKey(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// byTree adds a row for each value of the first dimension, and below it a row for each of its values of the second
// dimension.
func byTree(t *table.Table, doc *grouping.BreakdownByDocument, d *grouping.DeviceBy) {
	for _, dim := range doc.By {
		t.Columns = append(t.Columns, table.Column{Title: heading(dim), Names: true})
	}
	t.Columns = append(t.Columns, table.Column{Title: "MiB", Priority: 6, Right: true},
		table.Column{Title: "%", Priority: 5, Right: true}, table.Column{Title: "Tagged", Priority: 3, Right: true},
		table.Column{Title: "By lifetime", Priority: 1, Right: true},
		table.Column{Title: "By stack", Priority: 4, Right: true},
		table.Column{Title: "By phase only", Priority: 2, Right: true}, table.Column{Title: "Blocks", Right: true})
	line := func(level int, name table.Cell, cells ...table.Cell) {
		row := make([]table.Cell, len(doc.By))
		for i := range row {
			row[i] = table.Text("")
		}
		row[level] = name
		row = append(row, cells...)
		for len(row) < len(t.Columns) {
			row = append(row, table.Absent())
		}
		t.Rows = append(t.Rows, row)
	}
	var walk func(level int, rows []grouping.ByRow)
	walk = func(level int, rows []grouping.ByRow) {
		for i := range rows {
			r := &rows[i]
			line(level, keyCell(r, true), table.Bytes(r.Bytes), percent(r.Bytes, d.AllocatedBytes),
				table.Bytes(r.TaggedBytes), table.Bytes(r.LifetimeBytes), table.Bytes(r.StackBytes),
				table.Bytes(r.PhaseOnlyBytes), table.Count(r.Blocks))
			walk(level+1, r.Rows)
		}
	}
	walk(0, d.Rows)
	line(0, table.Text("allocated"), table.Bytes(d.AllocatedBytes), percent(d.AllocatedBytes, d.AllocatedBytes))
}

func heading(d grouping.Dimension) string { return strings.ToUpper(string(d[:1])) + string(d[1:]) }

// noPythonFrame explains why some blocks of a snapshot with stacks have no line of Python.
const noPythonFrame = "no Python frame: C++ alone asked for them, as autograd does in backward"

// frameless reports whether some blocks have no row of their own because their stacks have no Python frame.
func frameless(rows []grouping.ByRow) bool {
	return slices.ContainsFunc(rows, func(r grouping.ByRow) bool {
		return r.Key == nil && r.Others == 0 && r.StackBytes > 0 && r.StackBytes == r.Bytes
	})
}

// lineNotes say for which share of the bytes the line is known, if a dimension is the line.
func lineNotes(doc *grouping.BreakdownByDocument, d *grouping.DeviceBy) []string {
	known := d.AllocatedBytes - d.UnknownBytes[grouping.DimensionLine]
	if !slices.Contains(doc.By, grouping.DimensionLine) || known == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the line is known of %s %% of the bytes; what backward allocates is under the line "+
		"of the forward call", percent(known, d.AllocatedBytes).Text)}
}

// unknownNotes say for how many bytes a dimension's value is unknown, and how the modules are known.
func unknownNotes(doc *grouping.BreakdownByDocument, d *grouping.DeviceBy) (notes []string) {
	for _, dim := range doc.By {
		bytes := d.UnknownBytes[dim]
		switch {
		case bytes == 0 || bytes == d.AllocatedBytes:
		case dim == grouping.DimensionStack && frameless(d.Rows):
			notes = append(notes, fmt.Sprintf("–: %s MiB (%s %%) have %s", units.InMiB(bytes),
				percent(bytes, d.AllocatedBytes).Text, noPythonFrame))
		default:
			notes = append(notes, fmt.Sprintf("–: the %s of %s MiB (%s %%) is not known", dim, units.InMiB(bytes),
				percent(bytes, d.AllocatedBytes).Text))
		}
	}
	if m := d.ModuleBytes; m != nil && m.NoneBytes+m.SharedBytes < d.AllocatedBytes {
		text := fmt.Sprintf("modules are known for %s MiB from the owner's tag or rule, for %s MiB from the "+
			"parameter that the owner names, for %s MiB from what ran at the block's birth",
			units.InMiB(m.OwnerBytes), units.InMiB(m.NameBytes), units.InMiB(m.BirthBytes))
		if m.SharedBytes > 0 {
			text += fmt.Sprintf("; %s MiB are libraries' workspaces, which are kept for a thread and a stream and %s",
				units.InMiB(m.SharedBytes), schemas.SharedByModules)
		}
		notes = append(notes, text)
	}
	return notes
}
