package report

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

var findingColumns = slices.Concat(machineColumns, []table.Column{
	{Title: "Finding", Key: "finding"},
	{Title: "MiB", Key: "bytes", Right: true},
	{Title: "ms", Key: "ms", Right: true},
	{Title: "%", Key: "percent", Right: true},
	{Title: "Of", Key: "of"},
	{Title: "Saves MiB", Key: "saves_bytes", Right: true},
	{Title: "Saves ms", Key: "saves_ms", Right: true},
	{Title: "Event", Key: "event", Right: true},
	{Key: "line", For: table.Programs},
	{Key: "sentence", For: table.Programs},
	{Key: "change", For: table.Programs},
	{Key: "assumption", For: table.Programs},
	{Key: "in_repeats", For: table.Programs},
	{Key: "repeats", For: table.Programs},
})

// FindingsTables prints a table an experiment, with the sentences as notes, in the order of the rows. All of them carry
// the whole document, which alone has the figures that each finding stands on, and each repeat's own.
func FindingsTables(found findings.Found) []table.Table {
	tables := []table.Table{}
	for _, x := range found.Experiments() {
		tables = append(tables, findingsTable(&x))
	}
	if len(tables) == 0 {
		tables = append(tables, table.Table{Title: "Findings", Columns: findingColumns})
	}
	tellRules(tables, len(found.Runs), func(i int) *identity.Identity { return &found.Runs[i].Identity })
	doc := NewFindingsDocument(found)
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

func findingsTable(x *findings.Experiment) table.Table {
	r, of := x.Run, len(x.RunIDs)
	t := table.Table{Title: "Findings in " + identified(&r.Identity), Columns: findingColumns}
	if of > 1 {
		t.Title += fmt.Sprintf(", %d repeats", of)
	}
	saving := 0
	var unchanged, untold []string // findings without a saving: those without a change, and the others
	var lineless []string          // of blocks whose lines are not known
	for i := range x.Findings {
		f := &x.Findings[i]
		told := tellFindingOf(&f.Finding, &r.Identity)
		if f.SavesBytes != nil && *f.SavesBytes > 0 || f.SavesMS != nil && *f.SavesMS > 0 {
			saving++
		}
		switch {
		case f.SavesBytes != nil || f.SavesMS != nil:
		case told.Change == "":
			unchanged = append(unchanged, f.ID)
		default:
			untold = append(untold, f.ID)
		}
		line := table.Absent()
		switch {
		case f.Line != nil:
			line = table.Text(grouping.LineText(f.Line.Line))
		case f.OfBlocks:
			lineless = append(lineless, f.ID)
		}
		share, whole, event := table.Absent(), table.Absent(), table.Absent()
		if f.Share != nil {
			share = table.Number(100**f.Share, 1)
		}
		if f.Of != "" {
			whole = table.Cell{Text: wholeTitles[f.Of], Value: f.Of}
		}
		if f.At != nil {
			event = table.Count(f.At.Event)
		}
		id := r.Identity
		id.RunID = f.RunID
		t.Rows = append(t.Rows, append(machineCells(&id, table.Optional(f.Device, table.Text),
			table.Optional(f.Rank, func(n int32) table.Cell {
				return table.Count(int64(n))
			})),
			table.Text(f.ID), table.Optional(f.Bytes, table.Bytes), table.Optional(f.MS, table.Milliseconds), share,
			whole,
			table.Optional(f.SavesBytes, table.Bytes), table.Optional(f.SavesMS, table.Milliseconds), event, line,
			table.Text(told.Sentence), table.Text(told.Change), table.Text(told.Assumption), table.Count(int64(f.In)),
			table.Count(int64(of))))
		t.Notes = append(t.Notes, f.ID+inRepeats(f, x)+": "+told.Sentence+advice(&told, f.OfReserved()))
	}
	switch {
	case len(x.Findings) > 0:
	case len(r.NotLooked) > 0:
		t.Notes = append(t.Notes, "nothing that could be looked at is above its threshold")
	default:
		t.Notes = append(t.Notes, "nothing is above its threshold")
	}
	for _, none := range []struct {
		of  []string
		why string
	}{{unchanged, "there is nothing to change"}, {untold, "this run does not tell how much the change would save"}} {
		if ids := slices.Sorted(slices.Values(none.of)); len(ids) > 0 {
			t.Notes = append(t.Notes, "saves –: "+prose.JoinWords(slices.Compact(ids))+": "+none.why)
		}
	}
	if ids := slices.Sorted(slices.Values(lineless)); len(ids) > 0 {
		t.Notes = append(t.Notes, "which line of the script asked is not known of "+prose.JoinWords(slices.Compact(ids))+
			": "+findsLines(r))
	}
	if saving > 1 {
		t.Notes = append(t.Notes, "what findings save does not add up: each is said as if nothing else changed")
	}
	if of > 1 {
		t.Notes = append(t.Notes, fmt.Sprintf("of %d repeats; figures and sentences are of %s where no other run is "+
			"named, --format json has those of each", of, r.RunID))
	}
	for _, n := range r.NotLooked {
		t.Notes = append(t.Notes, "not looked at: "+notLookedWords(n))
	}
	t.Notes = append(t.Notes, RunWords(slices.DeleteFunc(slices.Clone(r.Remarks), func(w analyze.Remark) bool {
		return w.Kind == analyze.RemarkNotIngested // it was said of what was not looked at
	}))...)
	t.Notes = append(t.Notes, runSources(&r.Identity)...)
	return t
}

// findsLines is what finds the lines that a run does not know.
func findsLines(r *findings.Run) string {
	switch {
	case r.Source == schemas.Imported:
		return "dpsight analyze breakdown " + r.Name + " --by stack has the stacks, where the file has any"
	case r.Lines:
		return "dpsight collect --stacks python has the stacks of what asked"
	}
	return "dpsight collect and predict record lines, unless --lines none is given"
}

// inRepeats says in how many of several repeats a finding is, and how large in them: " (in 4 of 5 repeats, 9.563 ms to
// 11.9 ms)". Of one that is in a single run, it is the run, where the rest is of another.
func inRepeats(f *findings.Pooled, x *findings.Experiment) string {
	switch {
	case f.In == 1 && f.RunID == x.Run.RunID:
		return ""
	case f.In == 1:
		return " (" + f.RunID + ")"
	}
	text := fmt.Sprintf(" (in %d of %d repeats", f.In, len(x.RunIDs))
	if f.RunID != x.Run.RunID {
		text += ", here " + f.RunID
	}
	if f.Low != nil && *f.Low != *f.High {
		show := func(v float64) string { return table.Size(int64(v)) }
		if f.MS != nil {
			show = func(v float64) string { return table.Milliseconds(v).Text + " ms" }
		}
		text += ", " + show(*f.Low) + " to " + show(*f.High)
	}
	return text + ")"
}

// wholeTitles say in words what a share is of.
var wholeTitles = map[string]string{findings.OfPeakAllocated: "peak allocated",
	findings.OfHighestRecorded: "highest recorded", findings.OfRecordedReserved: "highest recorded reserved",
	findings.OfPeakReserved: "peak reserved", findings.OfStep: "step", findings.OfLimit: "limit"}

// advice is what to change, and what for.
func advice(f *Finding, reserved bool) string {
	if f.Change == "" {
		return ""
	}
	of := findings.OfPeakAllocated // bytes are saved of the peak, whatever the finding's own size is a share of
	if reserved {
		of = findings.OfPeakReserved
	}
	text := " What to change: " + f.Change
	var saved []string
	if f.SavesBytes != nil && *f.SavesBytes > 0 {
		saved = append(saved, fmt.Sprintf("%s MiB of the %s", units.InMiB(*f.SavesBytes), wholeTitles[of]))
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
	if f.CostsMS != nil && *f.CostsMS > 0 {
		text += " and costs " + table.Milliseconds(*f.CostsMS).Text + " ms of a step"
	}
	return text + " (" + f.Assumption + ")."
}
