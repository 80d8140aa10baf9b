package report

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/table"
)

var findingColumns = slices.Concat(machineColumns, []table.Column{{Title: "Finding", Key: "finding"}, {Title: "MiB", Key: "bytes", Right: true}, {Title: "ms", Key: "ms", Right: true},
	{Title: "%", Key: "percent", Right: true}, {Title: "Of", Key: "of"}, {Title: "Saves MiB", Key: "saves_bytes", Right: true}, {Title: "Saves ms", Key: "saves_ms", Right: true},
	{Title: "Event", Key: "event", Right: true}, {Key: "sentence", For: table.Programs}, {Key: "change", For: table.Programs}, {Key: "assumption", For: table.Programs}})

// FindingsTables prints a table a run, with the sentences as notes, in the order of the rows. All of them carry the whole
// document, which alone has the figures that each finding stands on.
func FindingsTables(doc analyze.FindingsDocument) []table.Table {
	tables := []table.Table{}
	for i := range doc.Runs {
		tables = append(tables, findingsTable(&doc.Runs[i]))
	}
	if len(tables) == 0 {
		tables = append(tables, table.Table{Title: "Findings", Columns: findingColumns})
	}
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

func findingsTable(r *analyze.FindingsRun) table.Table {
	t := table.Table{Title: "Findings in " + identified(&r.Identity), Columns: findingColumns}
	saving := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.SavesBytes != nil && *f.SavesBytes > 0 || f.SavesMS != nil && *f.SavesMS > 0 {
			saving++
		}
		share, of, event := table.Absent(), table.Absent(), table.Absent()
		if f.Share != nil {
			share = table.Number(100**f.Share, 1)
		}
		if f.Of != "" {
			of = table.Cell{Text: wholeTitles[f.Of], Value: f.Of}
		}
		if f.At != nil {
			event = table.Count(f.At.Event)
		}
		t.Rows = append(t.Rows, append(machineCells(&r.Identity, table.Optional(f.Device, table.Text), table.Optional(f.Rank, func(n int32) table.Cell { return table.Count(int64(n)) })),
			table.Text(f.ID), table.Optional(f.Bytes, table.Bytes), table.Optional(f.MS, table.Milliseconds), share, of,
			table.Optional(f.SavesBytes, table.Bytes), table.Optional(f.SavesMS, table.Milliseconds), event,
			table.Text(f.Sentence), table.Text(f.Change), table.Text(f.Assumption)))
		t.Notes = append(t.Notes, f.ID+": "+f.Sentence+advice(f))
	}
	switch {
	case len(r.Findings) > 0:
	case len(r.NotLooked) > 0:
		t.Notes = append(t.Notes, "nothing that could be looked at is above its threshold")
	default:
		t.Notes = append(t.Notes, "nothing is above its threshold")
	}
	if saving > 1 {
		t.Notes = append(t.Notes, "what findings save does not add up: each is said as if nothing else changed")
	}
	for _, n := range r.NotLooked {
		t.Notes = append(t.Notes, "not looked at: "+n)
	}
	t.Notes = append(t.Notes, sourceNotes(&r.Identity)...)
	return t
}

// wholeTitles say in words what a share is of.
var wholeTitles = map[string]string{analyze.OfPeakAllocated: "peak allocated", analyze.OfPeakReserved: "peak reserved", analyze.OfStep: "step", analyze.OfLimit: "limit"}

// advice is what to change, and what for.
func advice(f *analyze.Finding) string {
	if f.Change == "" {
		return ""
	}
	text := " What to change: " + f.Change
	var saved []string
	if f.SavesBytes != nil && *f.SavesBytes > 0 {
		saved = append(saved, fmt.Sprintf("%s MiB of the %s", table.MiB(*f.SavesBytes), wholeTitles[ofBytes(f)]))
	}
	if f.SavesMS != nil && *f.SavesMS > 0 {
		saved = append(saved, table.Milliseconds(*f.SavesMS).Text+" ms of a step")
	}
	switch {
	case len(saved) == 2:
		text += ". It saves " + saved[0] + " and " + saved[1]
	case len(saved) == 1:
		text += ". It saves " + saved[0]
	case f.SavesBytes != nil || f.SavesMS != nil:
		text += ". It saves nothing"
	default:
		return text + "."
	}
	return text + " (" + f.Assumption + ")."
}

// ofBytes is what bytes are saved of: of the peak, where the finding's own size is a time.
func ofBytes(f *analyze.Finding) string {
	if f.Of == analyze.OfStep || f.Of == "" {
		return analyze.OfPeakAllocated
	}
	return f.Of
}
