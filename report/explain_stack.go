package report

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// stackWaterfall has a row for each stack that differs. Only the top largest differences have their own rows, and the
// rest share one row. top 0 means that all have a row.
func stackWaterfall(doc *explain.Explanation, top int) table.Table {
	from, to := sides(doc)
	t := table.Table{Title: "By the stack that allocated (MiB)",
		Columns: []table.Column{{Key: "row", For: table.Programs}, {Title: "Stack", Key: "stack"},
			{Title: from, Key: "from_bytes", Right: true}, {Title: to, Key: "to_bytes", Right: true},
			{Title: "Δ", Key: "delta_bytes", Right: true}}}
	row := func(kind string, name table.Cell, s explain.StackPart) {
		t.Rows = append(t.Rows, []table.Cell{table.Text(kind), name, table.Bytes(s.FromBytes), table.Bytes(s.ToBytes),
			table.DeltaBytes(s.DeltaBytes)})
	}
	differ := len(doc.Stacks)
	if at := slices.IndexFunc(doc.Stacks, func(s explain.StackPart) bool { return s.DeltaBytes == 0 }); at >= 0 {
		differ = at // stacks are sorted by difference, the largest first
	}
	shown, left := heaviest(doc.Stacks[:differ], top, func(explain.StackPart) bool { return true })
	for _, s := range shown {
		name := table.Absent()
		if s.Stack != nil {
			name = table.Text(*s.Stack)
		}
		row("stack", name, s)
	}
	if len(left) > 0 {
		row("others", table.Cell{Text: others(len(left))}, sumStacks(left))
	}
	same := sumStacks(doc.Stacks[differ:])
	if same.FromBytes > 0 {
		row("same", table.Text("stacks with the same bytes in both"), same)
	}
	row("total", table.Text("peak allocated"), explain.StackPart{FromBytes: *doc.Runs[0].PeakBytes,
		ToBytes: *doc.Runs[1].PeakBytes, DeltaBytes: *doc.PeakDeltaBytes})
	lacking := "no stack was recorded, as in backward and beyond --stack-steps"
	if doc.Runs[0].Source == schemas.Imported && doc.Runs[1].Source == schemas.Imported {
		lacking = noPythonFrame
	}
	t.Notes = append(t.Notes, "stacks match if their functions and files do, whatever the lines; –: "+lacking)
	return t
}

func sumStacks(stacks []explain.StackPart) (sum explain.StackPart) {
	for i := range stacks {
		s := &stacks[i]
		sum.FromBytes, sum.ToBytes, sum.DeltaBytes = sum.FromBytes+s.FromBytes, sum.ToBytes+s.ToBytes,
			sum.DeltaBytes+s.DeltaBytes
	}
	return sum
}
