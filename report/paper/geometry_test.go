package paper_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/report/paper"
	"github.com/dpsight/dpsight/report/plates"
)

// misplaced draws all figures of a paper in all styles, and reports faults. A text may overlap another, leave the
// figure or be under 6 points. A figure may be taller than a page. A caption may fail to explain a mark, or explain a
// mark that the figure does not have.
func misplaced(t *testing.T, m *paper.Model) (kinds []string) {
	t.Helper()
	captions := paper.Captions(m)
	for _, style := range paper.AllStyles {
		for name, d := range paper.Drawings(m, style) {
			if !slices.Contains(kinds, name) {
				kinds = append(kinds, name)
			}
			for _, wrong := range d.Misplaced() {
				t.Errorf("%s, %s: %s", name, style, wrong)
			}
			const page = 22.0 // page is the height in cm of the text of an A4 document, less room for a caption
			if d.Height() > plates.Centimetres(page) {
				t.Errorf("%s, %s: %.0f points high", name, style, d.Height())
			}
			var svg strings.Builder
			if err := d.SVG(&svg); err != nil {
				t.Fatal(err)
			}
			const mark = "†"
			if style == "column" && strings.Contains(svg.String(), mark) != strings.Contains(captions[name], mark) {
				t.Errorf("%s: a mark that the caption lacks, or the other way round: %s", name, captions[name])
			}
		}
	}
	return kinds
}

// In the figures of recorded runs, no text overlaps another, leaves the figure or is under 6 points, in any style.
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

// The figures of unusual stores have no texts that overlap, leave the figure or are too small. Unusual stores have many
// runs, very large beside very small runs, long or Chinese names, or only failed runs.
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

// oddLargest returns the largest batches of all runs on two devices, from 0 to very many samples.
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

// oddTrend returns the peaks of all runs over 30 revisions. Some revisions have no peaks.
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

// Far finds one or two values that are far from all others. Each is more than four times as large as the next smaller
// value that is not far, and at least three values are not far.
func TestFar(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   []string
	}{
		{[]float64{1, 2, 3, 13}, []string{"3"}}, {[]float64{1, 2, 3, 12}, nil}, {[]float64{1, 2, 13}, nil},
		{[]float64{1, 2, 3, 20, 90}, []string{"4", "3"}}, {[]float64{1, 2, 3, 4, 20, 90}, []string{"5", "4"}},
		{[]float64{1, 2, 3, 20, 30, 40}, nil}, {[]float64{0, 0, 0, 1}, []string{"3"}}, {nil, nil},
	} {
		byName := map[string]float64{}
		for i, v := range c.values {
			byName[fmt.Sprint(i)] = v
		}
		if got := paper.Far(byName); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.values, got, c.want)
		}
	}
}

// If a run lies far beyond the others, the figure does not draw it. The caption names the run with its numbers.
func TestFarRunsAreNamed(t *testing.T) {
	testkit.Rest(t)
	m := model(t, "headline-batch")
	captions, drawings := paper.Captions(&m), paper.Drawings(&m, "column")
	for name, want := range map[string]string{"time": "Per-example loop (297\u202fms, 25.0×)",
		"waterfall": "Per-example loop (−1.76\u202fGiB, −86.6\u202f%)",
		"tradeoff":  "Per-example loop (+2,400\u2009% time, −86.6\u2009% memory)"} {
		if !strings.Contains(captions[name], want) {
			t.Errorf("%s: no %q in %q", name, want, captions[name])
		}
		var svg strings.Builder
		if err := drawings[name].SVG(&svg); err != nil {
			t.Fatal(err)
		}
		if drawn := strings.Contains(svg.String(), "Per-example loop"); drawn != (name == "tradeoff") {
			t.Errorf("%s: drawn: %v", name, drawn)
		}
	}
}
