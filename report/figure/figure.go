// Package figure lays out dpsight's pictures on a canvas. Package figure draws what analyze found and computes no
// figure of its own.
package figure

import (
	"fmt"
	"io"
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
)

// A Picture is what a figure shows.
type Picture interface {
	// draw lays the picture out and draws it.
	draw(svg bool) (*canvas.Canvas, error)
	// describe says in words what the picture shows.
	describe() string
}

// A Figure is a picture with the name of its files.
type Figure struct {
	Name    string // without ending
	Title   string
	Picture Picture
	// Badge must be shown for all runs, for example that they are predicted. An SVG's description includes it, and
	// in the picture a note does.
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

// Canvas draws the figure and returns the places of everything in it.
func (f *Figure) Canvas() (*canvas.Canvas, error) { return f.Picture.draw(true) }

// Misplaced draws the figure and lists the texts that leave it or overlap another, and the shapes beyond the ends of
// their axes. A figure must have no misplaced text or shape, whatever the names and sizes of the runs. Both formats
// have one layout.
func (f *Figure) Misplaced() ([]string, error) {
	c, err := f.Canvas()
	if err != nil {
		return nil, err
	}
	return c.Misplaced(), nil
}

// A Row is one run of the picture.
type Row struct {
	Number    int    // number of the run in tables, from 0
	Label     string // unique in the picture
	Badge     string // how the run's figures are known, and its status if not ok
	Failure   string // why there is nothing to draw
	PeakBytes *int64
	Breakdown *memory.DeviceBreakdown // nil: the peak is known, not its parts
	Baseline  bool                    // others are compared with this row
	Over      *int64                  // the peak that the row is compared with; nil without a baseline
	Ratio     *float64                // ratio of the row's peak to Over
}

// A MemoryBreakdown is the picture breakdown: stacked categories whose bars end at the peak, and a dashed line at the
// baseline's peak. Bars are horizontal because names of runs are long and there may be many. Runs with small peaks are
// below, on an axis of their own.
//
// Differences by category are not drawn here as bars on both sides of zero: bytes that only move to another category
// would look like cost. [Waterfall] draws them.
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

// describe says in words what the picture shows.
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
