package gate

import (
	"github.com/aclements/go-moremath/mathx"
	"github.com/aclements/go-moremath/stats"
)

// significant is the p-value below which slower times do not count as chance.
const significant = 0.05

// insignificant returns the reason why times above their threshold may be chance: a rank test finds no difference from
// the baseline's times. insignificant returns nil if the test finds a difference, or if there are so few runs that the
// test could not find one. If insignificant returns nil, the threshold alone decides.
func insignificant(base, now []float64) *Reason {
	if 1/mathx.Choose(len(base)+len(now), len(base)) >= significant {
		return nil
	}
	p := 1.0 // the p-value if all values are equal
	if r, err := stats.MannWhitneyUTest(now, base, stats.LocationGreater); err == nil {
		p = r.P
	}
	if p < significant {
		return nil
	}
	return &Reason{Why: NotSignificant, P: p, Runs: [2]int{len(now), len(base)}}
}
