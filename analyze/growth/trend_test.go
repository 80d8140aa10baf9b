package growth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// seriesOf returns the lowest bytes of n steps. held gives the bytes of each step.
func seriesOf(n int, held func(i int) float64) []Low {
	out := make([]Low, n)
	for i := range out {
		out[i] = Low{At: int64(i), Bytes: int64(held(i))}
	}
	return out
}

const level = 1e9 // bytes at the beginning of each generated series

// within returns a random number between -bytes and bytes.
func within(r *rand.Rand, bytes float64) float64 { return bytes * (2*r.Float64() - 1) }

// found reports whether a series has a trend, and whether the trend is large enough for a finding.
func found(lows []Low) bool {
	peak := int64(0)
	for _, l := range lows {
		peak = max(peak, l.Bytes)
	}
	t := trendOf(lows, 1)
	return t != nil && t.matters(peak)
}

const generated = 100 // number of series of each kind

// A steady rise by 0.1 % or more in each step is found.
func TestSteadyGrowthIsFound(t *testing.T) {
	const each = level / 1000
	for name, make := range map[string]func(r *rand.Rand) (n int, held func(i int) float64){
		"0.1 % a step over 12 steps": func(r *rand.Rand) (int, func(i int) float64) {
			return 12, func(i int) float64 { return level + each*float64(i) }
		},
		"with a little noise": func(r *rand.Rand) (int, func(i int) float64) {
			return 12, func(i int) float64 { return level + each*float64(i) + within(r, each/4) }
		},
		"steps that keep between a half and twice as much": func(r *rand.Rand) (int, func(i int) float64) {
			held := level
			return 16, func(int) float64 { held += each * math.Exp2(within(r, 1)); return held }
		},
		"in noise of 1 % over 200 steps": func(r *rand.Rand) (int, func(i int) float64) {
			return 200, func(i int) float64 { return level + each*float64(i) + within(r, level/100) }
		},
		"workspaces and state made in the first two steps": func(r *rand.Rand) (int, func(i int) float64) {
			from := 1 + r.IntN(2)
			return 16, func(i int) float64 { return level/2 + each*float64(i) + level/2*float64(min(i/from, 1)) }
		},
		"evaluations that hold 5 % more each 10 steps": func(r *rand.Rand) (int, func(i int) float64) {
			at := r.IntN(10)
			return 100, func(i int) float64 {
				held := level + each*float64(i)
				if i%10 == at {
					held += 0.05 * level
				}
				return held
			}
		},
		"a cache that is filled in the middle": func(r *rand.Rand) (int, func(i int) float64) {
			at := 10 + r.IntN(80)
			return 100, func(i int) float64 {
				held := level + each*float64(i)
				if i >= at {
					held += 0.02 * level
				}
				return held
			}
		},
		"what each fifth step keeps": func(r *rand.Rand) (int, func(i int) float64) {
			return 100, func(i int) float64 { return level + 5*each*float64(i/5) }
		},
		"from the middle on": func(r *rand.Rand) (int, func(i int) float64) {
			from := 20 + r.IntN(30)
			return 100, func(i int) float64 { return level + each*float64(max(0, i-from)) + within(r, each/4) }
		},
		"over 10,000 steps": func(r *rand.Rand) (int, func(i int) float64) {
			return 10_000, func(i int) float64 { return level + each/100*float64(i) + within(r, level/100) }
		},
	} {
		missed := 0
		for seed := range uint64(generated) {
			n, held := make(rand.New(rand.NewPCG(seed, 1)))
			if n > 1000 && seed >= 10 {
				break
			}
			if lows := seriesOf(n, held); !found(lows) {
				missed++
			}
		}
		if missed > 0 {
			t.Errorf("%s: %d of %d series are missed", name, missed, generated)
		}
	}
}

// If a series does not rise, rises unsteadily, or has stopped rising, it has no growth.
func TestWhatDoesNotGrow(t *testing.T) {
	const little = level / 1e5 // noise in a series that is otherwise constant
	kinds := map[string]func(r *rand.Rand) (n int, held func(i int) float64){
		"noise of 1 %": func(r *rand.Rand) (int, func(i int) float64) {
			return 200, func(int) float64 { return level + within(r, level/100) }
		},
		"batches of any size": func(r *rand.Rand) (int, func(i int) float64) {
			return 20 + r.IntN(180), func(int) float64 { return level * (1 + 0.1*float64(1+r.IntN(8))) }
		},
		"a cache that is filled at once": func(r *rand.Rand) (int, func(i int) float64) {
			n := 8 + r.IntN(100)
			at := r.IntN(n)
			return n, func(i int) float64 {
				held := level + within(r, little)
				if i >= at {
					held += 0.2 * level
				}
				return held
			}
		},
		"a state that is made in the first steps": func(r *rand.Rand) (int, func(i int) float64) {
			at := 1 + r.IntN(3)
			return 8 + r.IntN(100), func(i int) float64 { return level * (1 + float64(min(i, at))) }
		},
		"plateaus": func(r *rand.Rand) (int, func(i int) float64) {
			n := 40 + r.IntN(160)
			levels := 2 + r.IntN(3)
			return n, func(i int) float64 {
				return level*(1+0.1*float64(i*levels/n)) + within(r, little)
			}
		},
		"a sawtooth": func(r *rand.Rand) (int, func(i int) float64) {
			teeth := 8 + r.IntN(40)
			return teeth*2 + r.IntN(4*teeth), func(i int) float64 {
				return level*(1+0.01*float64(i%teeth)) + within(r, little)
			}
		},
		"a sawtooth and the beginning of the next tooth": func(r *rand.Rand) (int, func(i int) float64) {
			teeth := 12 + r.IntN(100)
			return teeth + 1 + r.IntN(teeth), func(i int) float64 {
				return level*(1+0.01*float64(i%teeth)) + within(r, little)
			}
		},
		"a sawtooth of teeth of any length": func(r *rand.Rand) (int, func(i int) float64) {
			held, left := level, 0
			return 100, func(int) float64 {
				held += 0.01 * level
				if left--; left < 0 {
					held, left = level, 4+r.IntN(20)
				}
				return held
			}
		},
		"evaluations that hold more each so many steps": func(r *rand.Rand) (int, func(i int) float64) {
			every := 2 + r.IntN(20)
			return 20 + r.IntN(180), func(i int) float64 {
				held := level + within(r, little)
				if i%every == every-1 {
					held += 0.3 * level
				}
				return held
			}
		},
		"a growth that has ended": func(r *rand.Rand) (int, func(i int) float64) {
			n := 20 + r.IntN(180)
			until := n/10 + r.IntN(n*6/10)
			return n, func(i int) float64 { return level*(1+0.01*float64(min(i, until))) + within(r, little) }
		},
		"a cache that fills up": func(r *rand.Rand) (int, func(i int) float64) {
			n := 40 + r.IntN(160)
			half := float64(n) * (0.03 + 0.05*r.Float64())
			return n, func(i int) float64 { return level*(1+0.3*(1-math.Exp2(-float64(i)/half))) + within(r, little) }
		},
		"a growth that is given back": func(r *rand.Rand) (int, func(i int) float64) {
			n := 20 + r.IntN(180)
			at := n/2 + r.IntN(n/2)
			return n, func(i int) float64 {
				if i >= at {
					return level
				}
				return level * (1 + 0.01*float64(i))
			}
		},
		"0.01 % a step over 12 steps": func(r *rand.Rand) (int, func(i int) float64) {
			return 12, func(i int) float64 { return level * (1 + 0.0001*float64(i)) }
		},
		"what falls": func(r *rand.Rand) (int, func(i int) float64) {
			return 40, func(i int) float64 { return level*(1-0.01*float64(i)) + within(r, little) }
		},
	}
	for name, make := range kinds {
		var alarms []uint64
		for seed := range uint64(generated) {
			if found(seriesOf(make(rand.New(rand.NewPCG(seed, 2))))) {
				alarms = append(alarms, seed)
			}
		}
		if len(alarms) > 0 {
			t.Errorf("%s: %d of %d series alarm: %d", name, len(alarms), generated, alarms)
		}
	}
}

// For series in random order, a growth is found no more often than the probability of error alpha allows.
func TestFalseAlarmRate(t *testing.T) {
	for _, n := range []int{8, 9, 12, 20, 50} {
		const series = 5_000
		alarms := 0
		r := rand.New(rand.NewPCG(uint64(n), 3))
		for range series {
			if trendOf(seriesOf(n, func(int) float64 { return level * (1 + r.Float64()) }), 1) != nil {
				alarms++
			}
		}
		if share := float64(alarms) / series; share > alpha {
			t.Errorf("%d lows: %v of random series are called growing, more than %v", n, share, alpha)
		}
	}
}

// The estimated slope is near the true slope of the series. For at least nine tenths of the series, the true slope lies
// within the estimate's bounds.
func TestSlope(t *testing.T) {
	outside, held := 0, 0
	for seed := range uint64(generated) {
		r := rand.New(rand.NewPCG(seed, 4))
		const each = level / 100
		x := trendOf(seriesOf(60, func(i int) float64 { return level + each*float64(i) + within(r, 2*each) }), 1)
		if x == nil || math.Abs(x.Slope-each) > each/20 || !x.Steady {
			t.Fatalf("%+v", x)
		}
		if held++; x.SlopeLow > each || x.SlopeHigh < each {
			outside++
		}
	}
	if outside > held/10 {
		t.Errorf("%d of %d slopes lie outside bounds of 95 %%", outside, held)
	}
	x := trendOf(seriesOf(20, func(i int) float64 { return level + 1000*float64(i) }), 1)
	if x.Slope != 1000 || x.SlopeLow != 1000 || x.SlopeHigh != 1000 || x.Tau != 1 || !x.Steady || x.Lows != 20 {
		t.Errorf("%+v", x)
	}
	// If the rise of a series slows down, the series has a growth, but no steady one.
	x = trendOf(seriesOf(60, func(i int) float64 { return level * math.Log(float64(i+2)) }), 1)
	if x == nil || x.Steady {
		t.Errorf("%+v", x)
	}
}

// The probability p of a rise is a share of all orders of the same values: the orders that rise at least as much.
func TestProbabilityIsThatOfAllOrders(t *testing.T) {
	for n := 2; n <= 7; n++ {
		var orders func(rest, taken []int64)
		scores := map[string]int{}
		all := 0
		orders = func(rest, taken []int64) {
			if len(rest) == 0 {
				tau, _ := kendall(seriesOf(n, func(i int) float64 { return float64(taken[i]) }))
				scores[fmt.Sprintf("%.9f", tau)]++
				all++
			}
			for i, v := range rest {
				orders(slices.Delete(slices.Clone(rest), i, i+1), append(slices.Clone(taken), v))
			}
		}
		first := make([]int64, n)
		for i := range first {
			first[i] = int64(i)
		}
		orders(first, nil)
		pairs := n * (n - 1) / 2
		atLeast := 0
		for wrong := 0; wrong <= pairs; wrong++ {
			atLeast += scores[fmt.Sprintf("%.9f", float64(pairs-2*wrong)/float64(pairs))]
			if want, got := float64(atLeast)/float64(all), inOrder(n, wrong); math.Abs(want-got) > 1e-9 {
				t.Errorf("%d lows, %d pairs the wrong way around: %v, want %v", n, wrong, got, want)
			}
		}
	}
	// The values 1 2 2 3 4 4 5 6 7 have ties. With ties, tau is the tau-b of scipy.stats.kendalltau.
	lows := []float64{1, 2, 2, 3, 4, 4, 5, 6, 7}
	if tau, p := kendall(seriesOf(len(lows), func(i int) float64 { return lows[i] })); math.Abs(tau-0.9718253) > 1e-6 ||
		p > 0.001 {
		t.Errorf("tau %v, p %v", tau, p)
	}
}
