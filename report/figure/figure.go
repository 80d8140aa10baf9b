// Package figure lays out dpsight's pictures on a canvas. It draws what analyze found and computes no figure of its
// own.
package figure

import (
	"fmt"
	"io"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
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

// Misplaced draws the figure and lists the texts that leave it or overlap another, and the shapes beyond the ends
// of their axes. There must be none, whatever the names and sizes of the runs. Both formats have one layout.
func (f *Figure) Misplaced() ([]string, error) {
	c, err := f.Canvas()
	if err != nil {
		return nil, err
	}
	return c.Misplaced(), nil
}

// A Row is one run of the picture.
type Row struct {
	Label     string // unique in the picture
	Badge     string // how the run's figures are known, and its status if not ok
	Failure   string // why there is nothing to draw
	PeakBytes *int64
	Breakdown *memory.DeviceBreakdown // nil: the peak is known, not its parts
	Overhead  *compare.OverheadRun    // nil: no baseline
	Baseline  bool                    // this row is what the others are compared with
}

// A MemoryBreakdown is the picture memory_breakdown_comparison: stacked categories whose bars end at the peak, and
// beside them the overhead over the baseline. Bars are horizontal, since runs have long names and there may be
// many.
type MemoryBreakdown struct {
	Rows     []Row
	Baseline string // label; empty = no overhead panel
	Notes    []string
}

func (m *MemoryBreakdown) draw(svg bool) (*canvas.Canvas, error) {
	l := m.layout()
	c, err := canvas.New(l.width, l.height, svg)
	if err != nil {
		return nil, err
	}
	l.drawPanels(c)
	for i := range m.Rows {
		l.drawLabel(c, i, l.peak.left-10)
		l.drawPeak(c, i)
		if m.Baseline != "" {
			l.drawOverhead(c, i)
		}
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
