package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

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
	{Key: "title", For: table.Programs},
	{Key: "phase", For: table.Programs},
	{Key: "module", For: table.Programs},
	{Key: "holder", For: table.Programs},
	{Key: "confidence", For: table.Programs},
})

// findingsShown is the number of findings printed for a run, unless the user wants all.
const findingsShown = 5

// A FindingsView says which findings are printed and how.
type FindingsView struct {
	All    bool // every finding, at length
	Schema int  // version of the JSON document: 1 is the older form
}

// Tables returns a table for each experiment. For people each finding is a block of text. Each table carries the whole
// document. Only the document has the figures behind each finding and those of each repeat.
func (v FindingsView) Tables(found findings.Found) []table.Table {
	tables := []table.Table{}
	for _, x := range found.Experiments() {
		tables = append(tables, v.table(&x))
	}
	if len(tables) == 0 {
		tables = append(tables, table.Table{Title: "Findings", Columns: findingColumns})
	}
	tellRules(tables, len(found.Runs), func(i int) *identity.Identity { return &found.Runs[i].Identity })
	var doc any = NewFindingsDocument(found)
	if v.Schema == 1 {
		doc = newFindingsDocument1(found)
	}
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

func (v FindingsView) table(x *findings.Experiment) table.Table {
	r, of := x.Run, len(x.RunIDs)
	t := table.Table{Title: "Findings in " + identified(&r.Identity), Columns: findingColumns, Blocks: []table.Block{}}
	if of > 1 {
		t.Title += fmt.Sprintf(", %d repeats", of)
	}
	saving := 0
	var more, unchanged, lineless []string // findings that are not shown, that need no change, and without known lines
	for i := range x.Findings {
		f := &x.Findings[i]
		told := tellFindingOf(&f.Finding, &r.Identity)
		t.Rows = append(t.Rows, findingRow(x, f, &told))
		switch {
		case !v.All && told.Change == "":
			unchanged = append(unchanged, f.ID)
			continue
		case !v.All && len(t.Blocks) == findingsShown:
			more = append(more, f.ID)
			continue
		}
		if f.SavesBytes != nil && *f.SavesBytes > 0 || f.SavesMS != nil && *f.SavesMS > 0 {
			saving++
		}
		if f.Line == nil && f.OfBlocks {
			lineless = append(lineless, f.ID)
		}
		b := findingBlock(&f.Finding, &told, v.All)
		b.Title = fmt.Sprintf("%d. %s%s [%s]", len(t.Blocks)+1, b.Title, inRepeats(f, x), f.ID)
		t.Blocks = append(t.Blocks, b)
	}
	switch {
	case len(x.Findings) > 0:
	case len(r.NotLooked) > 0:
		t.Notes = append(t.Notes, "nothing that could be checked is above its threshold")
	default:
		t.Notes = append(t.Notes, "nothing is above its threshold")
	}
	if len(more) > 0 {
		t.Notes = append(t.Notes, units.Plural(len(more), "more finding", "more findings")+", "+
			prose.JoinWords(slices.Compact(more))+": --all prints them, with details")
	}
	if len(unchanged) > 0 {
		t.Notes = append(t.Notes, "nothing to change for "+prose.JoinWords(slices.Compact(unchanged))+
			": --all explains why")
	}
	if ids := slices.Sorted(slices.Values(lineless)); len(ids) > 0 {
		t.Notes = append(t.Notes, "no line of the script is known for "+prose.JoinWords(slices.Compact(ids))+
			": "+findsLines(r))
	}
	if saving > 1 {
		t.Notes = append(t.Notes, "do not add savings up: each assumes that nothing else changes")
	}
	if of > 1 {
		t.Notes = append(t.Notes, fmt.Sprintf("figures are of %[2]s, 1 of %[1]d repeats, unless they name another run; "+
			"--format json has all repeats", of, r.RunID))
	}
	for _, n := range r.NotLooked {
		t.Notes = append(t.Notes, "not checked: "+notLookedWords(n))
	}
	t.Notes = append(t.Notes, RunWords(slices.DeleteFunc(slices.Clone(r.Remarks), func(w analyze.Remark) bool {
		return w.Kind == analyze.RemarkNotIngested // a reason for missing checks already states this
	}))...)
	t.Notes = append(t.Notes, runSources(&r.Identity)...)
	return t
}

// findingRow returns a finding's cells for programs.
func findingRow(x *findings.Experiment, f *findings.Pooled, told *wording) []table.Cell {
	line, share, whole, event, module := table.Absent(), table.Absent(), table.Absent(), table.Absent(), table.Absent()
	if f.Line != nil {
		line = table.Text(grouping.LineText(f.Line.Line))
	}
	if f.Share != nil {
		share = table.Number(100**f.Share, 1)
	}
	if f.Of != "" {
		whole = table.Cell{Text: wholeTitles[f.Of], Value: f.Of}
	}
	if f.At != nil {
		event = table.Count(f.At.Event)
	}
	if f.Module != nil {
		module = table.Text(grouping.ModulePath(f.Module, 0))
	}
	id := x.Run.Identity
	id.RunID = f.RunID
	return append(machineCells(&id, table.Optional(f.Device, table.Text), table.Optional(f.Rank, func(n int32) table.Cell {
		return table.Count(int64(n))
	})), table.Text(f.ID), table.Optional(f.Bytes, table.Bytes), table.Optional(f.MS, table.Milliseconds), share, whole,
		table.Optional(f.SavesBytes, table.Bytes), table.Optional(f.SavesMS, table.Milliseconds), event, line,
		table.Text(told.Sentence), table.Text(told.Change), table.Text(told.Assumption), table.Count(int64(f.In)),
		table.Count(int64(len(x.RunIDs))), table.Text(told.Title), table.Text(f.Phase), module, table.Text(f.Holder),
		table.Text(string(f.Confidence)))
}

// findingBlock formats a finding for people: where it is, who holds it, what to change, and what that saves.
func findingBlock(f *findings.Finding, told *wording, atLength bool) table.Block {
	b := table.Block{Title: told.Title}
	part := func(label, text string) {
		if text != "" {
			b.Parts = append(b.Parts, table.Part{Label: label, Text: text})
		}
	}
	part("where", findingPlace(f))
	part("holder", holderWords(f))
	if atLength || told.Change == "" || f.SavesBytes == nil && f.SavesMS == nil {
		part("seen", told.Sentence)
	} else {
		part("ahead", told.ahead)
	}
	if told.Change != "" {
		part("edit", editWords(f))
	}
	part("change", told.Change)
	if told.Change != "" {
		part("saves", savingWords(f))
		part("sure", sureWords(f.Confidence, told.Assumption))
	}
	return b
}

// holderWords name the holder of the bytes.
func holderWords(f *findings.Finding) string {
	const caught, of = "exception caught at ", "exception from the call at "
	if words := holders[f.ID]; words != "" && (f.Holder == "" || f.Holder == grouping.HeldByCpp) {
		return words
	}
	if f.Caught == nil {
		return strings.ReplaceAll(f.Holder, caught, of)
	}
	return strings.ReplaceAll(f.Holder, caught, fmt.Sprintf("exception caught at %s, from the call at ",
		lineName(f.Caught)))
}

// holders are words for kinds of holders that have no name in the script.
var holders = map[string]string{
	findings.AutocastCache:    "autocast's cache, until its outermost context ends",
	findings.BucketCopies:     "the buckets of DistributedDataParallel, and .grad",
	findings.GradientGraphs:   "a tensor, its .grad and the graph between them keep each other alive, in C++",
	findings.KeptGradients:    ".grad of the parameters",
	findings.StreamWorkspaces: "cuBLAS, for each stream",
	findings.ThreadWorkspaces: "cuBLAS, for each thread",
}

// lineName returns a line's file without folders, and its number.
func lineName(l *schemas.Line) string { return fmt.Sprintf("%s:%d", path.Base(l.File), l.Number) }

// maxQuoted is the number of characters of a script's line that a finding shows. The part to change may be at the
// line's end.
const maxQuoted = 160

// editWords list the lines to change: "train.py:52: losses.append(loss)".
func editWords(f *findings.Finding) string {
	var parts []string
	for i := range f.Edits {
		parts = append(parts, grouping.LineText(&f.Edits[i])+": "+cut(f.Edits[i].Text, maxQuoted))
	}
	if len(parts) > 1 {
		return "one of " + strings.Join(parts, "; ")
	}
	return strings.Join(parts, "")
}

// findingPlace says where the bytes were allocated: "allocated at train.py:46 in main: x = model(y); module net.0
// (Linear); phase forward".
func findingPlace(f *findings.Finding) string {
	var parts []string
	if f.Line != nil {
		l := f.Line.Line
		text := "allocated at " + grouping.LineText(l)
		if f.ID == findings.OOM {
			text = "requested at " + grouping.LineText(l)
		}
		if l.Function != "" && l.Function != "<module>" {
			text += " in " + l.Function
		}
		if l.Text != "" {
			text += ": " + cut(l.Text, maxQuoted)
		}
		parts = append(parts, text)
	}
	if f.Module != nil {
		name := grouping.ModuleWords(f.Module)
		if f.Module.Path == "" {
			name = f.Module.Class
		}
		parts = append(parts, "module "+strings.TrimPrefix(name, "module "))
	}
	switch {
	case f.Phase != "":
		parts = append(parts, "phase "+f.Phase)
	case f.At != nil && len(parts) == 0:
		parts = append(parts, when(f.At))
	}
	return strings.Join(parts, "; ")
}

// savingWords say what a change would save and what it costs.
func savingWords(f *findings.Finding) string {
	var saved []string
	if f.SavesBytes != nil && *f.SavesBytes > 0 {
		text := fmt.Sprintf("%s of the %s", units.MiB(*f.SavesBytes), wholeTitles[savedOf(f)])
		if whole := f.Highest.AllocatedBytes; !f.OfReserved() && whole > 0 {
			text += ", " + prose.Share(float64(*f.SavesBytes), float64(whole))
		}
		saved = append(saved, text)
	}
	if f.SavesMS != nil && *f.SavesMS > 0 {
		saved = append(saved, table.Milliseconds(*f.SavesMS).Text+" ms of a step")
	}
	text := strings.Join(saved, ", and ")
	switch {
	case f.SavesBytes == nil && f.SavesMS == nil:
		return "unknown from this run"
	case text == "":
		return "nothing"
	}
	if f.CostsMS != nil && *f.CostsMS > 0 {
		text += "; costs " + table.Milliseconds(*f.CostsMS).Text + " ms of a step"
	}
	return text
}

// sureWords say how a saving was determined, and under which condition it holds.
func sureWords(known findings.Confidence, assumption string) string {
	switch words := confidenceOf[known]; {
	case words == "" || assumption == "":
		return assumption
	case strings.HasPrefix(assumption, words): // "at most: …", "measured: …"
		return assumption
	default:
		return words + ", if " + assumption
	}
}

// confidenceOf says in words how a saving was determined.
var confidenceOf = map[findings.Confidence]string{findings.Replayed: "replayed to the byte",
	findings.AtMost: "at most", findings.AtLeast: "at least", findings.Measured: "measured",
	findings.Predicted: "predicted"}

// findsLines names the option that would find the lines which a run lacks.
func findsLines(r *findings.Run) string {
	switch {
	case r.Source == schemas.Imported:
		return "dpsight breakdown " + r.Name + " --by stack shows stacks, if the file has any"
	case r.Lines:
		return "dpsight collect --stacks python records the stack of each request"
	}
	return "dpsight collect and predict record lines, unless --lines none is given"
}

// inRepeats says how many of several repeats have a finding, and the range of its figure in them: " (in 4 of 5 repeats,
// 9.563 ms to 11.9 ms)". For a finding of a single run, it names the run if the experiment's other findings describe
// another run.
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

// wholeTitles name what a finding's share is a share of.
var wholeTitles = map[string]string{findings.OfPeakAllocated: "peak allocated",
	findings.OfHighestRecorded: "highest recorded", findings.OfRecordedReserved: "highest recorded reserved",
	findings.OfPeakReserved: "peak reserved", findings.OfStep: "step", findings.OfLimit: "limit",
	findings.OfHostMemory: "memory on the host"}
