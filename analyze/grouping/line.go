package grouping

import (
	"fmt"

	"github.com/dpsight/dpsight/schemas"
)

// LinesOf returns the lines of a rank's script by their id.
func LinesOf(in *schemas.Tables, rank int32) map[int64]*schemas.Line {
	lines := map[int64]*schemas.Line{}
	for i := range in.Lines {
		if l := &in.Lines[i]; l.Rank == rank {
			lines[l.Line] = l
		}
	}
	return lines
}

// LineText returns a line's file and number as text; "" if the line is not known.
func LineText(l *schemas.Line) string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", l.File, l.Number)
}

// sourcesOf returns the source text of lines by their name, if their files are available; nil if by has no dimension
// line.
func sourcesOf(in *schemas.Tables, rank int32, by By) map[string]string {
	sources := map[string]string{}
	for _, d := range by.Dimensions {
		if d != DimensionLine {
			continue
		}
		for _, l := range LinesOf(in, rank) {
			if l.Text != "" {
				sources[LineText(l)] = l.Text
			}
		}
	}
	return sources
}

// addSources adds the texts of lines to the rows of lines. dims are the dimensions of the rows and of the rows
// within.
func addSources(rows []ByRow, dims []Dimension, sources map[string]string) {
	for i := range rows {
		if r := &rows[i]; dims[0] == DimensionLine && r.Key != nil {
			r.Source = sources[*r.Key]
		}
		if len(dims) > 1 {
			addSources(rows[i].Rows, dims[1:], sources)
		}
	}
}
