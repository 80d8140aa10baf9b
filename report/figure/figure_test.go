package figure

import (
	"math"
	"testing"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

func row(label string, categories map[schemas.Category]int64) Row {
	d := &memory.DeviceBreakdown{}
	for _, c := range schemas.Categories {
		if b := categories[c]; b != 0 {
			d.Categories = append(d.Categories, memory.CategoryBytes{Category: c, Bytes: b, MaxBytes: b})
			d.AllocatedBytes += b
		}
	}
	return Row{Label: label, PeakBytes: &d.AllocatedBytes, Breakdown: d}
}

func TestSmallCategoriesAreGroupedNotLost(t *testing.T) {
	m := &MemoryBreakdown{Rows: []Row{
		row("a", map[string]int64{schemas.Parameters: 1000, schemas.Noise: 4, schemas.Slack: 1, schemas.Inputs: 3}),
		row("b", map[string]int64{schemas.Parameters: 1000, schemas.Inputs: 300}),
	}}
	g := m.group()
	if len(g.major) != 2 || g.major[0] != schemas.Parameters || g.major[1] != schemas.Inputs || len(g.minor) != 2 {
		t.Fatalf("grouped as %+v: inputs matter in b, so they have a colour in a too", g)
	}
	for i, r := range m.Rows {
		bytes := map[schemas.Category]int64{}
		for _, c := range r.Breakdown.Categories {
			bytes[c.Category] = c.Bytes
		}
		var sum int64
		for _, s := range g.segments(bytes) {
			sum += s.bytes
		}
		if sum != *r.PeakBytes {
			t.Errorf("row %d: segments end at %d, the peak is %d", i, sum, *r.PeakBytes)
		}
	}
	l := m.layout()
	p := &l.bands[0].panel
	if end := p.x(1300); math.Abs(end-p.right) > 1e-9 {
		t.Errorf("the longest bar ends at %v, the axis at %v", end, p.right)
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high int64
		want      []float64
	}{
		{0, 1, []float64{0, 1}},
		{0, 100 << 30, []float64{0, 20, 40, 60, 80, 100}},
		{-3 << 30, 7 << 30, []float64{-2, 0, 2, 4, 6}},
		{0, 1500, []float64{0, 0.5, 1}},
	} {
		p := panel{low: c.low, high: c.high, perByte: 1, unit: unitOf(max(c.high, -c.low))}
		got := p.ticks(5)
		if len(got) != len(c.want) {
			t.Errorf("%d..%d: %v, want %v", c.low, c.high, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9 {
				t.Errorf("%d..%d: %v, want %v", c.low, c.high, got, c.want)
			}
		}
	}
}
