package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// AccuracyTable prints predictions beside measurements, and the errors of the predictions in its notes.
func AccuracyTable(doc predict.AccuracyDocument) table.Table {
	doc = tellAccuracy(doc)
	t := table.Table{Title: "Predicted beside measured", Document: doc,
		Columns: []table.Column{
			{Title: "Experiment", Key: "experiment"},
			{Title: "Allocated MiB", Key: "peak_bytes", Priority: 5, Right: true},
			{Title: "Predicted", Key: "predicted_peak_bytes", Priority: 4, Right: true},
			{Title: "Error", Key: "peak_error", Priority: 3, Right: true},
			{Title: "Reserved MiB", Key: "peak_reserved_bytes", Right: true},
			{Title: "Predicted", Key: "predicted_peak_reserved_bytes", Right: true},
			{Title: "Error", Key: "reserved_error", Priority: 2, Right: true},
			{Title: "Allocations", Key: "allocations", Right: true},
			{Title: "Predicted", Key: "predicted_allocations", Right: true},
			{Title: "Moved MiB", Key: "moved_bytes", Right: true},
			{Title: "Most", Key: "most"},
			{Title: "Confidence", Key: "confidence", Priority: 1},
		}}
	for i := range doc.Experiments {
		x := &doc.Experiments[i]
		row := []table.Cell{table.Text(x.Label)}
		for _, p := range []predict.Prediction{x.Allocated, x.Reserved} {
			row = append(row, table.Optional(p.Measured, table.Bytes), table.Optional(p.Predicted, table.Bytes),
				accuracyError(&p))
		}
		known := func(s string) table.Cell {
			if s == "" {
				return table.Absent()
			}
			return table.Text(s)
		}
		most := table.Absent()
		if x.Most != "" {
			most = table.Text(fmt.Sprintf("%s %s", x.Most, table.DeltaBytes(x.MostBytes).Text))
		}
		row = append(row, table.Optional(x.Allocations.Measured, table.Count), table.Optional(x.Allocations.Predicted,
			table.Count), table.Optional(x.Moved, table.Bytes), most, known(x.Confidence))
		t.Rows = append(t.Rows, row)
	}
	for _, e := range []struct {
		what string
		of   confidence.AccuracyErrors
	}{{"allocated", doc.Allocated}, {"reserved", doc.Reserved}} {
		if e.of.Of > 0 {
			t.Notes = append(t.Notes, e.what+": "+errorsSentence(&e.of))
		}
	}
	t.Notes = append(t.Notes, boundedNotes(doc.Experiments)...)
	t.Notes = append(t.Notes, unendedNotes(doc.Unended)...)
	if f := &doc.Fitting; f.OutOfMemory > 0 {
		t.Notes = append(t.Notes, fittingSentence(f))
	}
	if len(doc.Unpredicted) > 0 {
		t.Notes = append(t.Notes, "measured and not predicted: "+schemas.Shortlist(doc.Unpredicted, mostNamed))
	}
	if len(doc.Unmeasured) > 0 {
		t.Notes = append(t.Notes, "predicted and not measured: "+schemas.Shortlist(doc.Unmeasured, mostNamed))
	}
	t.Notes = append(t.Notes, doc.Warnings...)
	if slices.ContainsFunc(doc.Experiments, func(x predict.AccuracyExperiment) bool {
		return x.Moved != nil && *x.Moved > 0
	}) {
		t.Notes = append(t.Notes, "moved: bytes that the prediction's peak has under another category, too many or "+
			"too few; most is the category that differs most")
	}
	hideEmpty(&t)
	return t
}

// accuracyError returns the error of a prediction. A bounded peak has no error, and the cell says why, since CSV has no
// notes.
func accuracyError(p *predict.Prediction) table.Cell {
	if p.Bounded() {
		return table.Text(schemas.Bounded)
	}
	return table.Optional(p.Error, errorCell)
}

// boundedNotes name the experiments whose peaks allocated are bounded, and so are left out of the errors.
func boundedNotes(list []predict.AccuracyExperiment) (notes []string) {
	for i := range list {
		x := &list[i]
		for _, f := range []struct {
			what      string
			low, high *int64
		}{{"measured", x.Allocated.Measured, x.Allocated.MeasuredHigh},
			{"predicted", x.Allocated.Predicted, x.Allocated.PredictedHigh}} {
			if f.high != nil {
				notes = append(notes, fmt.Sprintf("%s, %s: %s; none of the errors of allocated is of it", x.Label, f.what,
					boundedPeak(*f.low, *f.high)))
			}
		}
	}
	return notes
}

// KnownErrorsTable prints, for each kind of doubt, how far off the predictions with that doubt were.
func KnownErrorsTable(doc confidence.KnownErrorsDocument) table.Table {
	t := table.Table{Title: "How far off predictions called close were, by kind of doubt", Document: doc,
		Columns: []table.Column{
			{Title: "Doubt", Key: "doubt"},
			{Title: "Scripts", Key: "scripts", Right: true},
			{Title: "Allocated median", Key: "allocated_median", Right: true},
			{Title: "Worst", Key: "allocated_worst", Right: true},
			{Title: "In", Key: "allocated_worst_in"},
			{Title: "Reserved median", Key: "reserved_median", Right: true},
			{Title: "Worst", Key: "reserved_worst", Right: true},
			{Title: "In", Key: "reserved_worst_in"},
		}}
	for i := range doc.Doubts {
		k := &doc.Doubts[i]
		row := []table.Cell{table.Text(k.Doubt), table.Count(int64(k.Allocated.Of))}
		for _, e := range []*confidence.AccuracyErrors{&k.Allocated, &k.Reserved} {
			where := table.Absent()
			if e.Where != "" {
				where = table.Text(e.Where)
			}
			row = append(row, table.Optional(e.Median, sizeCell), table.Optional(e.Worst, sizeCell), where)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = append(t.Notes, "errors without their signs; a script with several doubts counts under each, and under "+
		schemas.DoubtReads+" where it has no other")
	t.Notes = append(t.Notes, unendedNotes(doc.Unended)...)
	return t
}

// unendedNotes name the experiments whose predictions did not end well, and so are left out of the errors. Without
// these notes "x of y" would read as if y were all experiments.
func unendedNotes(list []confidence.AccuracyUnended) (notes []string) {
	if len(list) == 0 {
		return nil
	}
	var named []string
	for _, u := range list {
		named = append(named, u.Name+" ("+u.Status+")")
	}
	return []string{"in none of these errors, since the prediction did not end well: " +
		schemas.Shortlist(named, mostNamed)}
}

// sizeCell shows the size of a prediction's error, without its sign.
func sizeCell(e float64) table.Cell {
	c := errorCell(e)
	c.Text = strings.TrimPrefix(c.Text, "+")
	return c
}

// errorCell shows a prediction's error. An error other than 0 never prints as 0.
func errorCell(e float64) table.Cell {
	text := units.Fixed(100*e, 3) + " %"
	switch {
	case e == 0:
		text = "0"
	case e > 0 && e < 0.000005:
		text = "<0.001 %"
	case e < 0 && e > -0.000005:
		text = ">−0.001 %"
	case e > 0:
		text = "+" + text
	}
	return table.Cell{Text: text, Value: e}
}

func errorsSentence(e *confidence.AccuracyErrors) string {
	s := fmt.Sprintf("%d of %d predicted to the byte, median error %s", e.Exact, e.Of,
		strings.TrimPrefix(errorCell(*e.Median).Text, "+"))
	if *e.Worst == 0 {
		return s
	}
	return s + ", worst " + strings.TrimPrefix(errorCell(*e.Worst).Text, "+") + " (" + e.Where + ")"
}

// fittingSentence tells how often predictions were right about whether a run fits, and where they were wrong.
func fittingSentence(f *predict.AccuracyFitting) string {
	s := fmt.Sprintf("whether it fits: %d of %d predicted as measured", f.Agree, f.Of)
	for _, x := range []struct {
		what string
		of   []string
	}{{"predicted to fit, and ran out of memory", f.Overrun}, {"predicted to run out of memory, and ended well",
		f.Refused}} {
		if len(x.of) > 0 {
			s += "; " + x.what + ": " + schemas.Shortlist(x.of, mostNamed)
		}
	}
	return s
}
