// Package figure lays out dpsight's pictures on a canvas. It draws what analyze found and computes no figure of its own.
package figure

import (
	"fmt"
	"io"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
)

// A Row is one run of the picture.
type Row struct {
	Label     string // unique in the picture
	Mark      string // how the run's figures are known, and its status if not ok
	Failure   string // why there is nothing to draw
	PeakBytes *int64
	Breakdown *analyze.DeviceBreakdown // nil: the peak is known, not its parts
	Overhead  *analyze.OverheadRun     // nil: no baseline
	Baseline  bool                     // this row is what the others are compared with
}

// A MemoryBreakdown is the picture memory_breakdown_comparison: stacked categories whose bars end at the peak; next to
// them the overhead over the baseline. Bars are horizontal: names of runs are long and there may be many.
type MemoryBreakdown struct {
	Rows     []Row
	Baseline string // label; empty = no overhead panel
	Notes    []string
}

// WritePNG draws the picture at twice its nominal size.
func (m *MemoryBreakdown) WritePNG(w io.Writer) error { return m.write(w, false) }

// WriteSVG draws the same picture as SVG.
func (m *MemoryBreakdown) WriteSVG(w io.Writer) error { return m.write(w, true) }

func (m *MemoryBreakdown) write(w io.Writer, svg bool) error {
	c, err := m.draw(svg)
	if err != nil {
		return fmt.Errorf("drawing the memory breakdown: %w", err)
	}
	return c.Save(w, "Peak GPU memory by category", m.describe())
}

func (m *MemoryBreakdown) draw(svg bool) (*canvas.Canvas, error) {
	l := m.layout()
	c, err := canvas.New(l.width, l.height, svg)
	if err != nil {
		return nil, err
	}
	l.drawPanels(c)
	for i := range m.Rows {
		l.drawLabel(c, i)
		l.drawPeak(c, i)
		if m.Baseline != "" {
			l.drawOverhead(c, i)
		}
	}
	l.drawLegend(c)
	return c, nil
}

// Misplaced draws the picture in both formats and lists the texts that stick out of it or lie over another: none, whatever
// the runs are called.
func (m *MemoryBreakdown) Misplaced() ([]string, error) {
	var all []string
	for _, svg := range []bool{false, true} {
		c, err := m.draw(svg)
		if err != nil {
			return nil, err
		}
		all = append(all, c.Misplaced()...)
	}
	return all, nil
}

// describe says in words what the picture shows.
func (m *MemoryBreakdown) describe() string {
	var b strings.Builder
	for _, r := range m.Rows {
		b.WriteString(r.Label)
		if r.Mark != "" {
			b.WriteString(" [" + r.Mark + "]")
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
