package exhibits

import (
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/trend"
)

// Revisions has the peaks of experiments at each revision of their code.
type Revisions struct {
	Names []string // names of the revisions, oldest first
	Lines []RevisionLine
}

// A RevisionLine has one experiment's peak in bytes at each revision; nil where no peak is known.
type RevisionLine struct {
	Label string
	Peaks []*float64
}

// RevisionsOf returns the peaks of the runs' experiments by revision, or nil if no experiment was run at two revisions
// or more.
func RevisionsOf(runs []analyze.Summary) *Revisions {
	doc, err := trend.Of(runs, trend.Revision, compare.Metric{Name: compare.MetricPeak})
	if err != nil {
		return nil
	}
	var points []*trend.Point
	for i := range doc.Experiments {
		for k := range doc.Experiments[i].Points {
			if p := &doc.Experiments[i].Points[k]; p.Value != nil {
				points = append(points, p)
			}
		}
	}
	slices.SortStableFunc(points, func(a, b *trend.Point) int { return a.At().Compare(b.At()) })
	var out Revisions
	for _, p := range points {
		if !slices.Contains(out.Names, *p.Revision) {
			out.Names = append(out.Names, *p.Revision)
		}
	}
	for i := range doc.Experiments {
		e := &doc.Experiments[i]
		line := RevisionLine{Label: e.Label, Peaks: make([]*float64, len(out.Names))}
		known := 0
		for k := range e.Points {
			if p := &e.Points[k]; p.Value != nil {
				line.Peaks[slices.Index(out.Names, *p.Revision)] = p.Value
				known++
			}
		}
		if known > 1 {
			out.Lines = append(out.Lines, line)
		}
	}
	if len(out.Lines) == 0 {
		return nil
	}
	return &out
}
