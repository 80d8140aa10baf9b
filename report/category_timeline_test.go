package report_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/growth"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/schemas"
)

// The picture of a timeline marks every visible category once, at the event at which the category has the most bytes.
// The mark stands at the top of the category's area. The mark's height, relative to the peak's, corresponds to the
// bytes.
func TestMaximaAreShown(t *testing.T) {
	// visible is the smallest share of the peak that gets a mark. hair is the largest share of the peak by which a mark
	// may stand too high or too low.
	const visible, hair = 0.005, 0.02
	for name, s := range gallery() {
		for _, steps := range []string{report.StepsPeak, report.StepsAll} {
			all := steps == report.StepsAll
			m := report.Model{Study: s, Steps: steps}
			shapes := map[string][]canvas.Shape{}
			for _, f := range m.Figures() {
				if !strings.HasPrefix(f.Name, "timeline-") {
					continue
				}
				c, err := f.Canvas()
				if err != nil {
					t.Fatal(err)
				}
				for _, k := range c.Shapes {
					shapes[k.What] = append(shapes[k.What], k)
				}
			}
			seen := 0
			for i := range s.Cells {
				c := &s.Cells[i]
				if c.Timeline == nil || len(shapes["peak of "+c.Label]) == 0 {
					continue
				}
				maxima := c.Timeline.StepMaxima
				if all {
					maxima = c.Timeline.Maxima
				}
				peak := shapes["peak of "+c.Label][0]
				for k := range maxima {
					x := &maxima[k]
					got := shapes["maximum of "+strings.ReplaceAll(x.Category, "_", " ")+" of "+c.Label]
					if float64(x.MaxBytes) < visible*float64(c.Timeline.PeakBytes) {
						if len(got) > 0 {
							t.Errorf("%s: %s of %s is marked", name, x.Category, c.Label)
						}
						continue
					}
					if seen++; len(got) != 1 {
						t.Errorf("%s: %s of %s has %d shapes", name, x.Category, c.Label, len(got))
						continue
					}
					if share, want := height(got[0])/height(peak),
						float64(below(x))/float64(c.Timeline.PeakBytes); height(peak) > 1 &&
						math.Abs(share-want) > hair {
						t.Errorf("%s: %s of %s stands at %.3f of the peak, want %.3f", name, x.Category, c.Label, share,
							want)
					}
				}
			}
			if seen == 0 && name == "headline" {
				t.Errorf("%s: nothing is marked", name)
			}
		}
	}
}

func height(m canvas.Shape) float64 { return m.Within.Y1 - m.Box.Y0 }

// below returns the bytes from the bottom of the stack to the top of the category, at the category's maximum.
func below(x *timeline.CategoryMaximum) (sum int64) {
	for place, b := range x.Parts {
		if place <= schemas.Precedence(x.Category) {
			sum += b
		}
	}
	return sum
}

// If a run's memory grows from step to step, the pictures show all steps, unless the user asks for the step of the
// peak.
func TestTimelinesShowWhatGrows(t *testing.T) {
	for _, c := range []struct {
		unit  growth.Unit // empty if nothing grows
		steps string
		all   bool
	}{{"", "", false}, {"", report.StepsAll, true}, {growth.Step, "", true}, {growth.Step, report.StepsAuto, true},
		{growth.Step, report.StepsPeak, false}, {growth.EvaluationPass, report.StepsAuto, false}} {
		s := study(0, headline()...)
		if c.unit != "" {
			s.Cells[1].Growth = &growth.Growth{Unit: c.unit}
		}
		m := report.Model{Study: s, Steps: c.steps}
		whole := slices.ContainsFunc(m.Figures(), func(f figure.Figure) bool {
			c, err := f.Canvas()
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(c.Labels, func(l canvas.Label) bool {
				return strings.HasPrefix(l.Text, "Memory by category over the whole recording")
			})
		})
		if whole != c.all {
			t.Errorf("%+v: the whole recording is shown: %v", c, whole)
		}
	}
}
