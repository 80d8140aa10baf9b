package report

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// PredictionTables returns a table with a row for each predicted run, and a table of each run's memory.
func PredictionTables(doc predict.PredictionDocument) []table.Table {
	doc = tellPredictions(doc)
	tables := []table.Table{predictionTable(doc)}
	for i := range doc.Runs {
		if r := &doc.Runs[i]; len(r.Ranks) > 1 {
			tables = append(tables, rankTable(r))
		}
	}
	for i := range doc.Runs {
		if r := &doc.Runs[i]; len(r.Categories) > 0 {
			fullest := *r
			if len(r.Others) > 0 {
				fullest.GPU += " (" + *r.Device + ")"
			}
			tables = append(tables, predictedCategories(&fullest))
			for k := range r.Others {
				tables = append(tables, predictedCategories(onDevice(r, &r.Others[k])))
			}
		}
	}
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

func predictionTable(doc predict.PredictionDocument) table.Table {
	t := table.Table{Title: "Prediction", Columns: []table.Column{
		{Title: "Run id", Key: "run_id", For: table.Programs},
		{Title: "Run", Key: "name"},
		{Title: "Status", Key: "status", For: table.Programs},
		{Title: "Profile", Key: "profile", For: table.Programs},
		{Title: "Device", Key: "gpu", Priority: 3},
		{Title: "Memory MiB", Key: "memory_bytes", Priority: 5, Right: true},
		{Title: "Fits", Key: "fits", Priority: 7},
		{Title: "Peak MiB", Key: "peak_bytes", Priority: 6, Right: true},
		{Title: "Reserved MiB", Key: "peak_reserved_bytes", Priority: 1, Right: true},
		{Title: "Spare MiB", Key: "spare_bytes", Priority: 4, Right: true},
		{Title: "Unknown reads", Key: "unknown_reads", Right: true},
		{Title: "Confidence", Key: "confidence", Priority: 2},
	}}
	all := of(len(doc.Runs), func(i int) *identity.Identity { return &doc.Runs[i].Identity })
	var notes runNotes
	for i := range doc.Runs {
		r := &doc.Runs[i]
		reads := table.Absent()
		if r.Complete {
			reads = table.Count(r.Reads())
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(r.RunID), all.cell(r.Shown(), &r.Identity),
			table.Text(r.Status), table.Optional(r.Profile, table.Text),
			table.Text(r.GPU), table.Optional(r.MemoryBytes, table.Bytes),
			fitsCell(r.Fits, r.Because, "not known"), table.Optional(r.PeakBytes, table.Bytes),
			table.Optional(r.PeakReservedBytes, table.Bytes), table.Optional(r.SpareBytes, table.Bytes), reads,
			confidenceCell(r.Confidence)})
		label := r.GPU
		if len(doc.Runs) == 1 {
			label = r.Name
		}
		if r.Fits == nil || !*r.Fits || r.Because.Cause != "" {
			notes.say(predictionSentence(r))
		}
		restsOn(&notes, label, r)
	}
	t.Notes = append(append(all.notes(), notes.all()...), "memory: what a process can take of the device "+
		besideContext+"; spare: what the highest reserved leaves of it, and the contexts of further processes there",
		confidenceNote, predictedNote)
	return t
}

// fitsCell says whether a run fits. If a time limit ended the run, the cell says that it had fitted until then.
func fitsCell(fits *bool, because predict.Because, unknown string) table.Cell {
	switch {
	case fits == nil:
		return table.Cell{Text: unknown}
	case !*fits:
		return table.Cell{Text: "no", Value: false}
	case because.Cause == predict.CauseSoFar:
		return table.Cell{Text: "so far", Value: true}
	}
	return table.Cell{Text: "yes", Value: true}
}

// confidenceNote says that the confidence applies to the peak allocated only: reserved depends on where the driver
// places segments.
const confidenceNote = "confidence is of the peak allocated; what is reserved depends on where the driver puts " +
	"segments too, and can be another on a device (predict --seeds gives a range)"

// besideContext says that tensors cannot use all memory of a card.
const besideContext = "for its tensors, beside what its CUDA context and the driver hold"

// rankTable has a row for each rank and device of a run.
func rankTable(r *predict.PredictionRun) table.Table {
	t := table.Table{Title: fmt.Sprintf("Peaks by rank: %s, %s", identified(&r.Identity), r.GPU),
		Columns: []table.Column{
			{Title: "Run id", Key: "run_id", For: table.Programs},
			{Title: "Rank", Key: "rank", Right: true},
			{Title: "Device", Key: "device"},
			{Title: "Peak MiB", Key: "peak_bytes", Right: true},
			{Title: "Reserved MiB", Key: "peak_reserved_bytes", Right: true},
			{Title: "Spare MiB", Key: "spare_bytes", Right: true},
		}}
	for i := range r.Ranks {
		p := &r.Ranks[i]
		t.Rows = append(t.Rows, []table.Cell{table.Text(r.RunID), table.Count(int64(p.Rank)), table.Text(p.Device),
			table.Optional(p.PeakBytes, table.Bytes),
			table.Optional(p.PeakReservedBytes, table.Bytes), table.Optional(p.SpareBytes, table.Bytes)})
	}
	return t
}

// mostNamed is the most places and operators that a note names. The document has all of them.
const mostNamed = 10

// restsOn adds notes on the conditions of a prediction.
func restsOn(notes *runNotes, label string, r *predict.PredictionRun) {
	if c := r.Confidence; c != nil {
		for _, reason := range c.Reasons {
			// The sentence on whether the run fits already states the reason.
			if reason == predictionWhy(r) || reason == endedWords(r.Ended) {
				continue
			}
			notes.add(label, c.Level+", because "+reason)
		}
		if c.KnownError != nil {
			notes.add(label, *c.KnownError)
		}
		if len(c.Unchecked) > 0 {
			notes.add(label, "never compared with a real device of this kind: "+strings.Join(c.Unchecked, "; "))
		}
	}
	if b := r.Band; b != nil {
		same := "allocated is the same under all"
		if b.Allocated[0] != b.Allocated[1] {
			same = fmt.Sprintf("allocated %s to %s MiB", units.InMiB(b.Allocated[0]), units.InMiB(b.Allocated[1]))
		}
		notes.add(label, fmt.Sprintf("reserved %s to %s MiB over %d placements of segments (%s); %s",
			units.InMiB(b.Reserved[0]), units.InMiB(b.Reserved[1]),
			len(b.Policies), strings.Join(b.Policies, ", "), same))
	}
	for _, w := range r.Warnings {
		notes.add(label, w)
	}
}

func confidenceCell(c *schemas.Confidence) table.Cell {
	if c == nil {
		return table.Absent()
	}
	return table.Text(c.Level)
}

// confidenceNotes say how far the figures of a predicted run can be trusted, and why. confidenceNotes do not name the
// run, so that several runs can share a note. The level stands beside each run's name.
func confidenceNotes(id *identity.Identity) []string {
	if id.Confidence == "" {
		return nil
	}
	notes := []string{"confidence " + id.Confidence + ": " + strings.Join(id.ConfidenceReasons, "; ")}
	if id.KnownError != nil {
		notes = append(notes, *id.KnownError)
	}
	return notes
}

func times(n int64) string {
	if n == 1 { // "nobody had computed once" would mean something else
		return "1 time"
	}
	return fmt.Sprintf("%d times", n)
}

// onDevice returns a copy of a run with the figures of another of its devices.
func onDevice(r *predict.PredictionRun, d *predict.OtherDevice) *predict.PredictionRun {
	other := *r
	other.GPU += " (" + d.Device + ")"
	other.At, other.Module, other.AllocatedBytes, other.Categories = &d.At, d.Module, &d.AllocatedBytes, d.Categories
	return &other
}

// predictedCategories lists the categories at the peak, or at the failed request that ended the run.
func predictedCategories(r *predict.PredictionRun) table.Table {
	title := "What holds it at the peak"
	if r.Failure != nil {
		title = "What was held when the request failed"
	}
	t := table.Table{Title: fmt.Sprintf("%s: %s, %s, %s", title, identified(&r.Identity), r.GPU, moment(r.At)),
		Columns: []table.Column{
			{Title: "Run id", Key: "run_id", For: table.Programs}, {Title: "Category", Key: "category"},
			{Title: "MiB", Key: "bytes", Right: true},
			{Title: "%", Key: "percent", Right: true}, {Title: "Own maximum", Key: "max_bytes", Right: true}}}
	row := func(name string, bytes int64, most table.Cell) {
		t.Rows = append(t.Rows, []table.Cell{table.Text(r.RunID), table.Text(name), table.Bytes(bytes),
			percent(bytes, *r.AllocatedBytes), most})
	}
	for _, c := range r.Categories {
		row(c.Category, c.Bytes, table.Bytes(c.MaxBytes))
	}
	row("allocated", *r.AllocatedBytes, table.Absent())
	if r.Module != nil {
		t.Notes = append(t.Notes, "module "+*r.Module+" made the request of that moment")
	}
	return t
}
