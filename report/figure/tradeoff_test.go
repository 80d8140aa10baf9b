package figure

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A note says which axes do not begin at zero. The note does not name an axis that begins at zero.
func TestAxesThatDoNotBeginAtZero(t *testing.T) {
	for _, c := range []struct {
		cost, peak []float64
		want       string
	}{
		{[]float64{100, 101}, []float64{1e9, 1.01e9}, "axes do not begin at zero"},
		{[]float64{1, 101}, []float64{1e9, 1.01e9}, "the vertical axis does not begin at zero"},
		{[]float64{100, 101}, []float64{1, 1e9}, "the horizontal axis does not begin at zero"},
		{[]float64{1, 101}, []float64{1, 1e9}, ""},
		{[]float64{20, 35, 300}, []float64{1, 1e9, 2e9}, "the horizontal axis is logarithmic"},
		{[]float64{0, 35, 300}, []float64{1, 1e9, 2e9}, ""},
	} {
		m := &Tradeoff{Cost: "step time (ms)"}
		for i := range c.cost {
			m.Points = append(m.Points, Point{Label: fmt.Sprint(i), Cost: c.cost[i], Low: c.cost[i], High: c.cost[i],
				Peak: int64(c.peak[i]), PeakLow: int64(c.peak[i]), PeakHigh: int64(c.peak[i])})
		}
		if got := strings.Join(m.layout().legend.notes, "; "); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.cost, c.peak, got, c.want)
		}
	}
}

func TestLogTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      []float64
	}{
		{8, 400, []float64{10, 20, 50, 100, 200}},
		{0.5, 1000, []float64{1, 10, 100, 1000}},
		{1, 1e9, []float64{1, 100, 1e4, 1e6, 1e8}},
	} {
		if got := logTicks(c.low, c.high, 6); !slices.Equal(got, c.want) {
			t.Errorf("%g to %g: %g, want %g", c.low, c.high, got, c.want)
		}
	}
}

// For any places of the points, no label overlaps another or leaves the picture, and each point has one label.
func TestLabelsFindTheirPlaces(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 4))
		m := &Tradeoff{Cost: "step time (ms)"}
		for i := range 1 + r.IntN(24) {
			cost, peak := 10+r.Float64()*r.Float64()*1000, int64(1e6+r.Float64()*1e9)
			if r.IntN(3) == 0 && i > 0 { // at the same place as the previous point
				cost, peak = m.Points[i-1].Cost, m.Points[i-1].Peak
			}
			m.Points = append(m.Points, Point{Label: fmt.Sprintf("run-%d-of-some-length", i), Cost: cost,
				Low: cost * 0.9, High: cost * 1.3, Peak: peak, PeakLow: peak - 1e5, PeakHigh: peak + 2e7})
		}
		c, err := m.draw(true)
		if err != nil {
			t.Fatal(err)
		}
		if bad := c.Misplaced(); bad != nil {
			t.Errorf("seed %d: %v", seed, bad)
		}
		var all strings.Builder
		for _, l := range c.Labels {
			all.WriteString(l.Text) // the picture may wrap a name into several labels
		}
		for _, p := range m.Points {
			name := p.Label
			if n := strings.Count(all.String(), name); n != 1 {
				t.Errorf("seed %d: %s stands %d times", seed, name, n)
			}
		}
	}
}

// If there are many points of several settings, each setting has a panel. All panels have the same axes, and their
// labels leave out the setting. Few points, or points of one setting, have a single panel.
func TestPanelsOfTradeoff(t *testing.T) {
	for _, c := range []struct{ settings, methods, want int }{{4, 4, 4}, {7, 3, 7}, {2, 6, 1}, {1, 30, 1}} {
		m := &Tradeoff{Cost: "step time (ms)"}
		for s := range c.settings {
			for k := range c.methods {
				cost, peak := float64(10+20*k), int64(1+s)<<30+int64(k)<<29
				m.Points = append(m.Points, Point{Label: fmt.Sprintf("m%d_of_s%d", k, s), Short: fmt.Sprintf("m%d", k),
					Panel: fmt.Sprintf("setting %d", s), Cost: cost, Low: cost, High: cost, Peak: peak, PeakLow: peak,
					PeakHigh: peak})
			}
		}
		l := m.layout()
		if len(l.panels) != c.want {
			t.Fatalf("%d settings of %d: %d panels", c.settings, c.methods, len(l.panels))
		}
		drawn, err := m.draw(true)
		if err != nil {
			t.Fatal(err)
		}
		if bad := drawn.Misplaced(); bad != nil {
			t.Errorf("%d settings: %v", c.settings, bad)
		}
		shorts := 0
		for _, text := range drawn.Labels {
			if text.Text == "m0" {
				shorts++
			}
		}
		if c.want > 1 && shorts != c.want {
			t.Errorf("m0 stands %d times in %d panels", shorts, c.want)
		}
		for _, p := range l.panels {
			if first := l.panels[0]; p.x.low != first.x.low || p.x.high != first.x.high || p.y.high != first.y.high ||
				p.plot.X1-p.plot.X0 != first.plot.X1-first.plot.X0 {
				t.Errorf("%s has axes of its own", p.title)
			}
		}
	}
}
