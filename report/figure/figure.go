// Package figure lays out dpsight's pictures on a canvas. The pictures show figures that analyze computed: package
// figure computes none.
package figure

import (
	"fmt"
	"io"
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
)

// A Picture is the content of a figure, which can be drawn and described.
type Picture interface {
	// draw chooses a place for everything in the picture and draws it.
	draw(svg bool) (*canvas.Canvas, error)
	// describe returns the picture's content in words.
	describe() string
}

// A Figure is a picture with the name of its files.
type Figure struct {
	Name    string // file name without its ending
	Title   string
	Picture Picture
	// Badge applies to all runs and must be shown, for example "predicted". An SVG's description includes the badge,
	// and the picture shows it in a note.
	Badge string
}

// WritePNG draws the figure at twice its nominal size.
func (f *Figure) WritePNG(w io.Writer) error { return f.write(w, false) }

// WriteSVG draws the same figure as SVG.
func (f *Figure) WriteSVG(w io.Writer) error { return f.write(w, true) }

func (f *Figure) write(w io.Writer, svg bool) error {
	c, err := f.Picture.draw(svg)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", f.Name, err)
	}
	description := f.Picture.describe()
	if f.Badge != "" {
		description += " All runs: " + f.Badge + "."
	}
	return c.Save(w, f.Title, description)
}

// Canvas draws the figure and returns the canvas, which knows the places of everything in it.
func (f *Figure) Canvas() (*canvas.Canvas, error) { return f.Picture.draw(true) }

// Misplaced draws the figure and lists the texts that leave it or overlap other texts, and the shapes that reach beyond
// their axes. A figure must have no misplaced text or shape, whatever the names and sizes of the runs. PNG and SVG
// share one layout.
func (f *Figure) Misplaced() ([]string, error) {
	c, err := f.Canvas()
	if err != nil {
		return nil, err
	}
	return c.Misplaced(), nil
}

// A Row is one run in a picture.
type Row struct {
	Number    int    // number of the run in tables, from 0
	Label     string // unique in the picture
	Badge     string // where the run's figures come from, and its status if not ok
	Failure   string // why there is nothing to draw
	PeakBytes *int64
	Breakdown *memory.DeviceBreakdown // nil if only the total of the peak is known
	Baseline  bool                    // other rows are compared with this row
	Over      *int64                  // the peak that the row is compared with; nil without a baseline
	Ratio     *float64                // ratio of the row's peak to Over
}

// A MemoryBreakdown is the picture named breakdown: stacked bars of categories that end at each run's peak, and a
// dashed line at the baseline's peak. Bars are horizontal because names of runs are long and there may be many. Runs
// with much smaller peaks are below, on an axis of their own.
//
// The picture does not draw differences by category as bars on both sides of zero: bytes that only move to another
// category would look like cost. [Waterfall] draws such differences.
type MemoryBreakdown struct {
	Rows  []Row
	Notes []string
}

func (m *MemoryBreakdown) draw(svg bool) (*canvas.Canvas, error) {
	l := m.layout()
	c, err := canvas.New(l.width, l.height, svg)
	if err != nil {
		return nil, err
	}
	for k, line := range l.title {
		c.Text(line, l.left, margin+titleSize+float64(k)*titleSize*lineHeight, titleSize, canvas.Start, ink)
	}
	for i := range l.bands {
		l.bands[i].draw(c, &l.groups)
	}
	if len(m.Rows) == 0 {
		c.Text("there is no run to draw", l.left, l.axisY, nameSize, canvas.Start, softInk)
	}
	l.legend.draw(c)
	return c, nil
}

// describe returns the picture's content in words.
func (m *MemoryBreakdown) describe() string {
	var b strings.Builder
	for _, r := range m.Rows {
		b.WriteString(r.Label)
		if r.Badge != "" {
			b.WriteString(" [" + r.Badge + "]")
		}
		switch {
		case r.PeakBytes == nil:
			b.WriteString(": " + r.Failure + ". ")
			continue
		case r.Breakdown == nil:
			b.WriteString(": peak " + table.Size(*r.PeakBytes) + ", not broken down. ")
			continue
		}
		b.WriteString(": peak " + table.Size(*r.PeakBytes))
		for _, cat := range r.Breakdown.Categories {
			if cat.Bytes > 0 {
				fmt.Fprintf(&b, ", %s %s", words(cat.Category), table.Size(cat.Bytes))
			}
		}
		b.WriteString(". ")
	}
	return strings.TrimSpace(b.String())
}
