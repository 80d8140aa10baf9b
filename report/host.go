package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/hostmemory"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/table"
)

// HostTables returns a table of the host memory of each run's processes and, if phases are known, a table of the phases
// in which the host memory grew. Each table carries the whole document.
func HostTables(doc hostmemory.Document) []table.Table {
	all := of(len(doc.Runs), func(i int) *identity.Identity { return &doc.Runs[i].Identity })
	t := table.Table{Title: "Memory on the host", Document: doc, Columns: []table.Column{
		{Title: "Run", Key: "name"},
		{Title: "Process", Key: "process"},
		{Title: "Memory", Key: "memory"},
		{Title: "First MiB", Key: "first_bytes", Right: true, Priority: 3},
		{Title: "Last MiB", Key: "last_bytes", Right: true, Priority: 2},
		{Title: "Highest MiB", Key: "highest_bytes", Right: true, Priority: 1},
		{Title: "Growth MiB", Key: "growth_bytes", Right: true},
		{Title: "With a phase %", Key: "explained_percent", Right: true},
		{Title: "MiB a step at the end", Key: "bytes_per_step", Right: true},
	}}
	phases := table.Table{Title: "Growth on the host by phase", Document: doc, Columns: []table.Column{
		{Title: "Run", Key: "name"},
		{Title: "Process", Key: "process"},
		{Title: "Memory", Key: "memory"},
		{Title: "Phase", Key: "phase", Names: true},
		{Title: "Growth MiB", Key: "growth_bytes", Right: true},
		{Title: "Steps", Key: "steps", Right: true, Priority: 1},
	}}
	t.Notes = all.notes()
	var notes runNotes
	for i := range doc.Runs {
		r := &doc.Runs[i]
		name := all.cell(r.Shown(), &r.Identity)
		if c := r.Tree; c != nil {
			kind := table.Text(hostKindWords(hostmemory.Resident))
			t.Rows = append(t.Rows, append([]table.Cell{name, table.Text("all"), kind}, curve(c, nil)...))
		}
		for k := range r.Ranks {
			p := &r.Ranks[k]
			for kind, m := range p.Memories() {
				process, kind := table.Text(fmt.Sprintf("rank %d", p.Rank)), table.Text(hostKindWords(kind))
				t.Rows = append(t.Rows, append([]table.Cell{name, process, kind}, curve(&m.Curve, m)...))
				for _, g := range m.Phases {
					phases.Rows = append(phases.Rows, []table.Cell{name, process, kind, table.Text(g.Phase),
						table.DeltaBytes(g.Bytes), table.Count(g.Steps)})
				}
				if m.UnknownBytes != 0 {
					phases.Rows = append(phases.Rows, []table.Cell{name, process, kind, table.Text("steps without phases"),
						table.DeltaBytes(m.UnknownBytes), table.Absent()})
				}
			}
		}
		notes.add(all.badged(r.Shown(), &r.Identity), hostWords(r))
	}
	t.Notes = append(t.Notes, notes.all()...)
	t.Notes = append(t.Notes, "all: every process of the run, read twice a second; shared pages count in each of them")
	phases.Notes = append(phases.Notes, "the rows of a process and a kind of memory sum to its growth from the first to "+
		"the last reading")
	hideEmpty(&t)
	if len(phases.Rows) == 0 {
		return []table.Table{t}
	}
	return []table.Table{t, phases}
}

// curve returns the cells for one kind of host memory. m is nil if no phases are known.
func curve(c *hostmemory.Curve, m *hostmemory.Memory) []table.Cell {
	cells := []table.Cell{table.Bytes(c.FirstBytes), table.Bytes(c.LastBytes), table.Bytes(c.HighestBytes),
		table.DeltaBytes(c.LastBytes - c.FirstBytes)}
	if m == nil {
		return append(cells, table.Absent(), table.Absent())
	}
	grows := table.Absent()
	if m.Trend != nil {
		grows = table.DeltaBytes(m.Trend.BytesPerStep)
	}
	percent := func(v float64) table.Cell { return table.Number(v, 1) }
	return append(cells, table.Optional(m.ExplainedPercent, percent), grows)
}

// HostFigure returns the picture of how much each process's host memory grew in each phase.
func HostFigure(doc hostmemory.Document) figure.Figure {
	all := of(len(doc.Runs), func(i int) *identity.Identity { return &doc.Runs[i].Identity })
	w := &figure.Waterfall{Notes: all.notes()}
	for i := range doc.Runs {
		r := &doc.Runs[i]
		for k := range r.Ranks {
			for kind, m := range r.Ranks[k].Memories() {
				if m.GrowthBytes != 0 || len(m.Phases) > 0 {
					title := fmt.Sprintf("%s, rank %d: %s memory by phase", r.Shown(), r.Ranks[k].Rank, hostKindWords(kind))
					w.Panels = append(w.Panels, hostFall(title, m))
				}
			}
		}
	}
	if len(w.Panels) == 0 {
		w.Notes = append(w.Notes, "the memory of no process changed")
	}
	return figure.Figure{Name: "host_memory", Title: "Growth of memory on the host", Picture: w,
		Badge: string(all)}
}

func hostFall(title string, m *hostmemory.Memory) figure.WaterfallPanel {
	p := figure.WaterfallPanel{Title: title, Axis: "Δ from the first reading", Steps: []figure.WaterfallStep{
		{Kind: figure.StepStart, Label: "first reading", Text: table.Size(m.FirstBytes)}}}
	change := func(label string, bytes int64) {
		p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepChange, Label: label, Delta: bytes,
			Text: signedSize(bytes)})
	}
	for _, g := range m.Phases {
		change(g.Phase, g.Bytes)
	}
	if m.UnknownBytes != 0 {
		change("steps without phases", m.UnknownBytes)
	}
	p.Steps = append(p.Steps, figure.WaterfallStep{Kind: figure.StepTotal, Label: "last reading", Delta: m.GrowthBytes,
		Text: table.Size(m.LastBytes) + " (" + signedSize(m.GrowthBytes) + ")"})
	return p
}

// WriteHostFigure draws the picture of host memory into the folder dir, which it creates, and returns the written
// paths. Without force, it overwrites only pictures of host memory, and otherwise returns a *ForeignError.
func WriteHostFigure(dir string, doc hostmemory.Document, force bool) ([]string, error) {
	return writeFigure(dir, HostFigure(doc), force)
}
