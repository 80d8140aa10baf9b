package figure

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// An axis that begins at zero is not said to begin elsewhere.
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

// However the points lie, no label lies over another or sticks out, and each point has one.
func TestLabelsFindTheirPlaces(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 4))
		m := &Tradeoff{Cost: "step time (ms)"}
		for i := range 1 + r.IntN(24) {
			cost, peak := 10+r.Float64()*r.Float64()*1000, int64(1e6+r.Float64()*1e9)
			if r.IntN(3) == 0 && i > 0 { // on the point before
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
		key := m.layout().labels
		for i := range key {
			for k := range key[:i] {
				if a, b := &key[i], &key[k]; a.lead && b.lead && (a.leadX != b.leadX || a.leadY != b.leadY) &&
					crossing(a, b) {
					t.Errorf("seed %d: the lines of %s and %s cross", seed, a.text, b.text)
				}
			}
		}
		for _, p := range m.Points {
			found := 0
			for _, l := range c.Labels {
				if l.Text == p.Label {
					found++
				}
			}
			if found != 1 {
				t.Errorf("seed %d: %s stands %d times", seed, p.Label, found)
			}
		}
	}
}

// Labels that want one height spread around it, and none leaves the plot.
func TestLabelsGatherAboutTheirHeights(t *testing.T) {
	for _, c := range []struct{ wanted, want []float64 }{
		{[]float64{50, 50, 50}, []float64{40, 50, 60}},
		{[]float64{20, 50, 52, 90}, []float64{20, 46, 56, 90}},
		{[]float64{1, 2, 3}, []float64{10, 20, 30}},
		{[]float64{98, 99, 100}, []float64{80, 90, 100}},
		{[]float64{30, 38, 46}, []float64{28, 38, 48}},
	} {
		if got := spaced(c.wanted, 10, 10, 100); !slices.Equal(got, c.want) {
			t.Errorf("%g: %g, want %g", c.wanted, got, c.want)
		}
	}
}
