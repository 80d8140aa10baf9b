package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/folder"
	"github.com/dpsight/dpsight/report/table"
)

// FitTables returns the largest value that fits, by method and device, and a table of every value that was tried.
func FitTables(doc predict.FitDocument) []table.Table {
	doc = tellFit(doc)
	var tables []table.Table
	if methods, devices := fitAxes(&doc); len(methods) > 1 && len(devices) > 1 {
		tables = append(tables, fitGrid(&doc, "Largest "+doc.Vary.Name+" that fits", methods, devices, fitText))
		if withMargin(&doc) {
			tables = append(tables, fitGrid(&doc, "Largest "+doc.Vary.Name+" that leaves the margin", methods, devices,
				marginText))
		}
	}
	tables = append(tables, fitTable(&doc), probesTable(&doc))
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

// fitFolders returns the folders that searches with the output dir have written, and the next free one: dir itself,
// then dir-2, dir-3, …
func fitFolders(dir string) []string {
	dir = filepath.Clean(dir)
	for folders := []string{dir}; ; {
		last := folders[len(folders)-1]
		if _, err := os.Stat(filepath.Join(last, fitFile)); err != nil {
			return folders
		}
		folders = append(folders, fmt.Sprintf("%s-%d", dir, len(folders)+1))
	}
}

// FitOutputs returns the folders of fitFolders, each with the path of its document.
func FitOutputs(dir string) []string {
	var out []string
	for _, folder := range fitFolders(dir) {
		out = append(out, folder, filepath.Join(folder, fitFile))
	}
	return out
}

// fitFile is the name of the document that writeFit writes into a folder.
const fitFile = "fit.json"

// fitFolder returns the first of fitFolders in which writing loses no results. Writing into a folder loses no results
// if the folder has no search, or only runs that the new search has too, as when the same command continues an
// interrupted search.
func fitFolder(dir string, doc *predict.FitDocument) string {
	folders, has := fitFolders(dir), map[string]bool{}
	for i := range doc.Cells {
		for _, p := range doc.Cells[i].Probes {
			has[p.RunID] = true
		}
	}
	for _, folder := range folders[:len(folders)-1] {
		var old predict.FitDocument
		text, err := os.ReadFile(filepath.Join(folder, fitFile))
		if err != nil || json.Unmarshal(text, &old) != nil || old.Schema != predict.FitSchema {
			continue
		}
		lost := slices.ContainsFunc(old.Cells, func(c predict.FitCell) bool {
			return slices.ContainsFunc(c.Probes, func(p predict.FitProbe) bool { return !has[p.RunID] })
		})
		if !lost {
			return folder
		}
	}
	return folders[len(folders)-1]
}

// writeFit writes the tables and the picture of a search into a folder.
func writeFit(dir string, doc predict.FitDocument) (err error) {
	defer func() { err = folder.Unwritable(err) }()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	f, tables := FitFigure(doc), FitTables(doc)
	files := []folder.File{{Name: f.Name + ".png", Write: f.WritePNG}, {Name: f.Name + ".svg", Write: f.WriteSVG},
		{Name: fitFile, Write: func(w io.Writer) error { return table.Write(w, "json", tables...) }},
		{Name: "fit.md", Write: func(w io.Writer) error { return table.Write(w, "markdown", tables...) }},
		{Name: "fit.csv", Write: func(w io.Writer) error { return table.Write(w, "csv", probesTable(&doc)) }}}
	for i := range tables {
		files = append(files, folder.File{Name: fmt.Sprintf("fit-%d.tex", i+1), Write: func(w io.Writer) error {
			return table.Write(w, "latex", tables[i])
		}})
	}
	_, err = folder.WriteAll(filepath.Clean(dir), files, nil)
	return err
}

// SaveFit writes a search to the first of fitFolders in which that loses no results, and returns the folder.
func SaveFit(dir string, doc predict.FitDocument) (folder string, err error) {
	folder = fitFolder(dir, &doc)
	return folder, writeFit(folder, doc)
}

// FitFigure returns the picture of memory by the value that was varied.
func FitFigure(doc predict.FitDocument) figure.Figure {
	doc = tellFit(doc)
	m := &figure.Fit{Vary: doc.Vary.Name, Empty: "nothing was predicted"}
	for i := range doc.Cells {
		c := &doc.Cells[i]
		s := figure.FitSeries{Label: fitLabel(&doc, c), Limit: c.MemoryBytes}
		if c.Margin != nil {
			s.Margin = c.Margin.Bytes
		}
		for _, p := range c.Probes {
			if p.Fits != nil && p.PeakReservedBytes != nil {
				s.Points = append(s.Points, figure.FitPoint{Value: p.Value, Reserved: *p.PeakReservedBytes,
					Fits: *p.Fits})
			}
		}
		m.Series = append(m.Series, s)
	}
	m.Notes = append(m.Notes, fitNotes(&doc)...)
	m.Notes = append(m.Notes, predictedNote)
	return figure.Figure{Name: "fit", Title: "Reserved GPU memory by " + doc.Vary.Name, Picture: m}
}

func fitAxes(doc *predict.FitDocument) (methods, devices []string) {
	for i := range doc.Cells {
		c := &doc.Cells[i]
		if !slices.Contains(methods, c.Method) {
			methods = append(methods, c.Method)
		}
		if !slices.Contains(devices, c.GPU) {
			devices = append(devices, c.GPU)
		}
	}
	return methods, devices
}

// fitLabel names a cell by the settings that differ between cells.
func fitLabel(doc *predict.FitDocument, c *predict.FitCell) string {
	methods, devices := fitAxes(doc)
	switch {
	case len(devices) < 2:
		return c.Method
	case len(methods) < 2:
		return c.GPU
	}
	return c.Method + " on " + c.GPU
}

// fitText shows the largest value that fits.
func fitText(v *predict.Vary, c *predict.FitCell) table.Cell {
	return largestCell(c, c.Largest, c.More(v))
}

// marginText shows the largest value that leaves the margin. Without a margin, it shows the largest value that fits.
func marginText(v *predict.Vary, c *predict.FitCell) table.Cell {
	if c.Margin == nil {
		return fitText(v, c)
	}
	return largestCell(c, c.Margin.Largest, c.MoreWithMargin(v))
}

func largestCell(c *predict.FitCell, largest *int64, more bool) table.Cell {
	if largest == nil {
		if c.Outcome == predict.FitUnset {
			return table.Cell{Text: "not known"}
		}
		return table.Cell{Text: "none"}
	}
	cell := table.Count(*largest)
	switch {
	case more && c.Outcome == predict.FitUnset:
		cell.Text += ", then stopped"
	case more:
		cell.Text += " or more"
	}
	return cell
}

// withMargin reports whether any search also looked for the largest value that leaves a margin.
func withMargin(doc *predict.FitDocument) bool {
	return slices.ContainsFunc(doc.Cells, func(c predict.FitCell) bool { return c.Margin != nil })
}

// fitGrid has a row for each method and a column for each device.
func fitGrid(doc *predict.FitDocument, title string, methods, devices []string,
	text func(*predict.Vary, *predict.FitCell) table.Cell) table.Table {
	t := table.Table{Title: title, Columns: []table.Column{{Title: "Method", Key: "method"}}}
	for _, d := range devices {
		t.Columns = append(t.Columns, table.Column{Title: d, Key: d, Right: true})
	}
	for _, m := range methods {
		row := []table.Cell{table.Text(m)}
		for _, d := range devices {
			i := slices.IndexFunc(doc.Cells, func(c predict.FitCell) bool { return c.Method == m && c.GPU == d })
			if i < 0 {
				row = append(row, table.Absent())
			} else {
				row = append(row, text(&doc.Vary, &doc.Cells[i]))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func fitTable(doc *predict.FitDocument) table.Table {
	t := table.Table{Title: fmt.Sprintf("What fits: %s from %d to %d", doc.Vary.Name, doc.Vary.Low, doc.Vary.High),
		Columns: []table.Column{
			{Title: "Method", Key: "method"},
			{Title: "Profile", Key: "profile", For: table.Programs},
			{Title: "Device", Key: "gpu"},
			{Title: "Memory MiB", Key: "memory_bytes", Priority: 1, Right: true},
			{Title: "Largest that fits", Key: "largest", Priority: 5, Right: true},
			{Title: "Peak MiB", Key: "peak_bytes", Priority: 4, Right: true},
			{Title: "Reserved MiB", Key: "peak_reserved_bytes", Right: true},
			{Title: "Spare MiB", Key: "spare_bytes", Priority: 3, Right: true},
			{Title: "Does not fit", Key: "refused", Right: true},
			{Title: "Margin MiB", Key: "margin_bytes", Right: true},
			{Title: "Largest that leaves it", Key: "margin_largest", Right: true},
			{Title: "Its spare MiB", Key: "margin_spare_bytes", Right: true},
			{Title: "Runs", Key: "probes", Right: true},
			{Title: "Confidence", Key: "confidence", Priority: 2},
		}}
	for i := range doc.Cells {
		c := &doc.Cells[i]
		margin, within, spare := table.Absent(), table.Absent(), table.Absent()
		if m := c.Margin; m != nil {
			margin, within = table.Bytes(m.Bytes), marginText(&doc.Vary, c)
			spare = table.Optional(m.SpareBytes, table.Bytes)
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(c.Method), table.Text(c.Profile), table.Text(c.GPU),
			table.Bytes(c.MemoryBytes), fitText(&doc.Vary, c),
			table.Optional(c.PeakBytes, table.Bytes), table.Optional(c.PeakReservedBytes, table.Bytes),
			table.Optional(c.SpareBytes, table.Bytes), table.Optional(c.Refused, table.Count), margin, within, spare,
			table.Count(int64(len(c.Probes))), confidenceCell(c.Confidence)})
	}
	t.Notes = append(fitNotes(doc), "memory: what a process can take of the device "+besideContext+"; spare: what the "+
		"highest reserved leaves of it")
	if withMargin(doc) {
		t.Notes = append(t.Notes, marginNote)
	}
	t.Notes = append(t.Notes, confidenceNote, predictedNote)
	return t
}

// marginNote explains the margin.
const marginNote = "margin: what should stay free of the memory, as a device can hold more than was predicted; by " +
	"default 5 % of it where no prediction was ever compared with such a device, else nothing (--margin)"

// fitNotes state what is special about each cell: a search that ended early, memory that does not grow with the value,
// and conditions of the answer.
func fitNotes(doc *predict.FitDocument) []string {
	var notes runNotes
	for i := range doc.Cells {
		c := &doc.Cells[i]
		if c.Only != nil {
			notes.add(fitLabel(doc, c), fmt.Sprintf("%s was sought among the values that the options allow, %s: %s",
				doc.Vary.Name, shortened(c.Only), c.Barred))
		}
		// With several cells, the table gives the answers.
		if c.Outcome != predict.FitSome || len(doc.Cells) == 1 {
			notes.say(fitSentence(c, &doc.Vary))
		}
		for _, o := range c.Odd {
			notes.add(fitLabel(doc, c), "memory does not grow steadily with the value: "+o+"; values not tried may "+
				"differ")
		}
		for _, p := range c.Probes {
			switch {
			// A value that fits has a Why if dpsight ended its script early.
			case p.Why == "" || p.Fits != nil && *p.Fits:
			case p.Fits == nil:
				notes.add(fitLabel(doc, c), fmt.Sprintf("%s %d has no answer, since its run ended for another "+
					"reason than memory (%s); the result does not depend on it", doc.Vary.Name, p.Value, p.Why))
			default:
				notes.add(fitLabel(doc, c), fmt.Sprintf("%s %d does not fit, although its run continued: %s", doc.Vary.Name,
					p.Value, p.Why))
			}
		}
		if c.Confidence != nil {
			notes.say("confidence " + c.Confidence.Level + ": " + strings.Join(c.Confidence.Reasons, "; "))
			if c.Confidence.KnownError != nil {
				notes.say(*c.Confidence.KnownError)
			}
		}
	}
	return notes.all()
}

// shortened lists values, and of many only the first ones and the last.
func shortened(values []int64) string {
	const most = 12
	var texts []string
	for i, v := range values {
		switch {
		case len(values) <= most || i < most-2 || i == len(values)-1:
			texts = append(texts, strconv.FormatInt(v, 10))
		case i == most-2:
			texts = append(texts, "…")
		}
	}
	return strings.Join(texts, ", ")
}

// probesTable has a row for each predicted run of a search.
func probesTable(doc *predict.FitDocument) table.Table {
	t := table.Table{Title: "Every " + doc.Vary.Name + " that was tried",
		Columns: []table.Column{
			{Title: "Method", Key: "method"},
			{Title: "Profile", Key: "profile", For: table.Programs},
			{Title: "Device", Key: "gpu"},
			{Title: doc.Vary.Name, Key: "value", Right: true},
			{Title: "Fits", Key: "fits"},
			{Title: "Peak MiB", Key: "peak_bytes", Right: true},
			{Title: "Reserved MiB", Key: "peak_reserved_bytes", Right: true},
			{Title: "Spare MiB", Key: "spare_bytes", Right: true},
			{Title: "Run id", Key: "run_id"},
		}}
	for i := range doc.Cells {
		c := &doc.Cells[i]
		for _, p := range c.Probes {
			t.Rows = append(t.Rows, []table.Cell{table.Text(c.Method), table.Text(c.Profile), table.Text(c.GPU),
				table.Count(p.Value), fitsCell(p.Fits, p.Because, p.Status),
				table.Optional(p.PeakBytes, table.Bytes), table.Optional(p.PeakReservedBytes, table.Bytes),
				table.Optional(p.SpareBytes, table.Bytes), table.Text(p.RunID)})
		}
	}
	t.Notes = append(t.Notes, "if a run does not fit, its peak is of what it did until then")
	return t
}
