package paper_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/report/paper"
)

// misplaced draws all figures of a paper in all styles, and finds fault with them: texts that overlap, leave the figure
// or are under 6 points.
func misplaced(t *testing.T, m *paper.Model) (kinds []string) {
	t.Helper()
	for _, style := range paper.AllStyles {
		for name, d := range paper.Drawings(m, style) {
			if !slices.Contains(kinds, name) {
				kinds = append(kinds, name)
			}
			for _, wrong := range d.Misplaced() {
				t.Errorf("%s, %s: %s", name, style, wrong)
			}
		}
	}
	return kinds
}

// No text of a figure of recorded runs overlaps another, leaves the figure or is under 6 points, in any style.
func TestFiguresOfExamplesGeometry(t *testing.T) {
	for _, c := range []struct {
		example string
		rest    bool
	}{{"headline", false}, {"seq", false}, {"headline-batch", true}, {"trainers", true}, {"lora", true}, {"quick", true},
		{"mlp", true}, {"oom", true}, {"pairs", true}, {"plain", true}, {"stacks", true}, {"claims", true},
		{"accuracy-development", true}, {"accuracy-held-out", true}} {
		t.Run(c.example, func(t *testing.T) {
			if c.rest {
				testkit.Rest(t)
			}
			m := configured(t, c.example, func(config *paper.Config) { config.Steps = paper.AllSteps })
			kinds := misplaced(t, &m)
			if c.example == "headline" {
				for _, kind := range []string{"breakdown", "waterfall", "step-ghost", "steps-ghost", "time", "tradeoff", "roles",
					"ladder"} {
					if !slices.Contains(kinds, kind) {
						t.Errorf("there is no %s", kind)
					}
				}
			}
		})
	}
}

// Nor does it where runs are many, large beside small, of long and Chinese names, or all failed.
func TestFiguresOfOddStoresGeometry(t *testing.T) {
	for name, m := range oddModels(t) {
		t.Run(name, func(t *testing.T) {
			m.Largest, m.Trend = oddLargest(&m), oddTrend(&m)
			kinds := misplaced(t, &m)
			if name == "forty" && (!slices.Contains(kinds, "largest") || !slices.Contains(kinds, "trend") ||
				!slices.Contains(kinds, "ladder")) {
				t.Errorf("only %q", kinds)
			}
		})
	}
}

// oddLargest are largest batches of all runs on two devices, from none to very many.
func oddLargest(m *paper.Model) (out []exhibits.Largest) {
	for i := range m.Study.Cells {
		c := &m.Study.Cells[i]
		for k, device := range []string{"NVIDIA GeForce RTX 4090 of a long name", "t4"} {
			out = append(out, exhibits.Largest{Key: c.Label, Device: device, Batch: float64(i * (1 + 99999*k)),
				Open: i%3 == 1, RunID: c.RunID})
		}
	}
	return out
}

// oddTrend follows all runs over 30 revisions. Some revisions are missing.
func oddTrend(m *paper.Model) *exhibits.Revisions {
	r := &exhibits.Revisions{}
	for i := range 30 {
		r.Names = append(r.Names, fmt.Sprintf("%012x+", i*7919+1))
	}
	for i := range m.Study.Cells {
		line := exhibits.RevisionLine{Label: m.Study.Cells[i].Label}
		for k := range r.Names {
			if k%5 == 3 {
				line.Peaks = append(line.Peaks, nil)
				continue
			}
			line.Peaks = append(line.Peaks, new(float64(1+k*i)))
		}
		r.Lines = append(r.Lines, line)
	}
	return r
}
