package figure

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/growth"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/schemas"
)

// rising returns a timeline of n steps with one event each. After each step, 100 bytes more are held.
func rising(n int) *Timeline {
	t := &timeline.Timeline{Device: "cuda:0", Peak: memory.Moment{Event: int64(n), Step: new(int64(n - 1))}}
	at := func(i int) int64 { return 1000 + 100*int64(i) }
	for i := range n {
		parts := make([]int64, len(schemas.Categories))
		parts[schemas.Precedence(schemas.Activations)] = at(i)
		t.Segments = append(t.Segments, timeline.TimelineSegment{Step: new(int64(i)), Phase: schemas.PhaseForward,
			BeginSeq: int64(i), EndSeq: int64(i + 1), Columns: []timeline.TimelineColumn{{BeginSeq: int64(i),
				EndSeq: int64(i + 1), LowBytes: at(i), HighBytes: at(i), HighSeq: int64(i + 1), Parts: parts,
				ReservedBytes: -1}}})
	}
	t.PeakBytes = at(n - 1)
	return &Timeline{Label: "rising", PeakBytes: &t.PeakBytes, Timeline: t, Rate: "+100 B a step",
		Growth: &growth.Trend{First: growth.Low{Event: 1, Bytes: at(0)},
			Last: growth.Low{At: int64(n - 1), Event: int64(n), Bytes: at(n - 1)}}}
}

// If a picture shows all steps, it has a line from the growth's first low to its last, with the slope beside the line.
func TestGrowthIsDrawn(t *testing.T) {
	for _, n := range []int{2, 12, 100} {
		for _, all := range []bool{false, true} {
			m := rising(n)
			m.AllSteps = all
			c, err := m.draw(true)
			if err != nil {
				t.Fatal(err)
			}
			drawn := slices.ContainsFunc(c.Shapes, func(s canvas.Shape) bool { return s.What == "growth of rising" })
			written := slices.ContainsFunc(c.Labels, func(l canvas.Label) bool { return l.Text == "+100 B a step" })
			said := slices.ContainsFunc(c.Labels, func(l canvas.Label) bool {
				return strings.HasPrefix(l.Text, "slanting line")
			})
			if drawn != all || written != all || said != all {
				t.Errorf("%d steps, all %v: drawn %v, written %v, said %v", n, all, drawn, written, said)
			}
			for _, bad := range append(c.Misplaced(), c.Covered()...) {
				t.Errorf("%d steps: %s", n, bad)
			}
		}
	}
}
