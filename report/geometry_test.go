package report_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/figure"
)

// The golden files hold the place of every text and shape in every figure, to the pixel. If they change, look at the
// picture before you accept them. The golden files hold no pixel values, since these depend on rasterisers and
// compression.
func TestGeometryGolden(t *testing.T) {
	g := gallery()
	for _, name := range []string{"headline", "names", "mixed", "repeats", "tiny-huge", "predicted", "none",
		"all-oom"} {
		m := report.Model{Study: g[name]}
		goldenGeometry(t, name, m.Figures()...)
	}
	l := ladders()
	for _, name := range []string{"ladder-usual", "ladder-mixed", "ladder-ranks", "ladder-tiny-huge"} {
		goldenGeometry(t, name, *drawnLadder(l[name]))
	}
	for _, name := range []string{"usual", "shrunk", "no-times"} {
		doc := explanations(t)["explain-"+name]
		goldenGeometry(t, "explain-"+name, report.ExplainFigure(doc))
	}
}

func goldenGeometry(t *testing.T, name string, figures ...figure.Figure) {
	t.Helper()
	var b strings.Builder
	for _, f := range figures {
		c, err := f.Canvas()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %.0f x %.0f\n", f.Name, c.Width, c.Height)
		for _, l := range c.Labels {
			fmt.Fprintf(&b, "  text %.0f %q\n", l.Box, l.Text)
		}
		for _, m := range c.Shapes {
			fmt.Fprintf(&b, "  mark %.1f %s\n", m.Box, m.What)
		}
	}
	golden(t, "geometry/"+name+".txt", []byte(b.String()))
}

// Every bar ends at its run's peak. Bars on one axis have lengths in proportion to their peaks, and no bar is shorter
// than a quarter of the longest.
func TestBarsEndAtThePeak(t *testing.T) {
	for name, s := range gallery() {
		m := report.Model{Study: s}
		peaks, broken := map[string]int64{}, false
		for i := range s.Cells {
			broken = broken || s.Cells[i].BrokenDown()
			if p := s.Cells[i].PeakBytes; p != nil {
				peaks["peak of "+s.Cells[i].Label] = *p
			}
		}
		drawn := 0
		for _, f := range m.Figures() {
			if !strings.HasPrefix(f.Name, "breakdown") {
				continue
			}
			c, err := f.Canvas()
			if err != nil {
				t.Fatal(err)
			}
			highest := map[canvas.Box]int64{} // the highest peak on each axis
			for _, m := range c.Shapes {
				highest[m.Within] = max(highest[m.Within], peaks[m.What])
			}
			for _, m := range c.Shapes {
				if !strings.HasPrefix(m.What, "peak of ") {
					continue
				}
				drawn++
				peak, top := peaks[m.What], highest[m.Within]
				want := float64(peak) / float64(top) * (m.Within.X1 - m.Within.X0)
				if got := m.Box.X1 - m.Box.X0; math.Abs(got-want) > 0.01 || m.Box.X0 != m.Within.X0 {
					t.Errorf("%s: the bar of %s is %.2f long, want %.2f", name, m.What, got, want)
				}
				if peak < top/4 {
					t.Errorf("%s: the bar of %s, %d B, is on an axis of %d B", name, m.What, peak, top)
				}
			}
		}
		if broken && drawn != len(peaks) {
			t.Errorf("%s: %d bars of %d peaks", name, drawn, len(peaks))
		}
	}
}
