package report

import (
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/table"
)

// MarksTable has a row for each moment that a script marked with dpsight.mark, with the allocated bytes.
func MarksTable(doc timeline.MarksDocument) table.Table {
	t := table.Table{Title: "Marks of the script", Document: doc, Columns: []table.Column{
		{Title: "Run", Key: "name"},
		{Title: "Mark", Key: "label"},
		{Title: "Device", Key: "device"},
		{Title: "Rank", Key: "rank", Right: true, For: table.Programs},
		{Title: "Step", Key: "step", Right: true, Priority: 1},
		{Title: "Phase", Key: "phase", Priority: 2},
		{Title: "Event", Key: "event", Right: true, Priority: 3},
		{Title: "Allocated MiB", Key: "allocated_bytes", Right: true},
		{Title: "Since the last MiB", Key: "since_bytes", Right: true},
		{Title: "Reserved MiB", Key: "reserved_bytes", Right: true, Priority: 4},
	}}
	all := of(len(doc.Runs), func(i int) *identity.Identity { return &doc.Runs[i].Identity })
	t.Notes = all.notes()
	var notes runNotes
	for i := range doc.Runs {
		r := &doc.Runs[i]
		for k := range r.Marks {
			m := &r.Marks[k]
			t.Rows = append(t.Rows, []table.Cell{all.cell(r.Shown(), &r.Identity), table.Text(m.Label),
				table.Text(m.Device + rank(m.Rank)), table.Count(int64(m.Rank)), table.Optional(m.At.Step, table.Count),
				table.Optional(m.At.Phase, table.Text), table.Count(m.At.Event), table.Bytes(m.Allocated),
				table.Optional(m.Since, table.DeltaBytes), table.Optional(m.Reserved, table.Bytes)})
		}
		if len(r.Marks) == 0 {
			notes.add(all.badged(r.Shown(), &r.Identity), `the script marked nothing: dpsight.mark("name") marks a moment`)
		}
	}
	t.Notes = append(t.Notes, notes.all()...)
	hideEmpty(&t)
	return t
}
