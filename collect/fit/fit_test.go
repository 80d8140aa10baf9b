package fit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestParseRange(t *testing.T) {
	for text, want := range map[string]Range{
		"batch_size=1..512":        {"batch_size", 1, 512, 1},
		"--batch-size=8..8":        {"batch_size", 8, 8, 1},
		"seq_len=512..16384:512":   {"seq_len", 512, 16384, 512},
		"seq_len = 100 .. 999:250": {"seq_len", 100, 850, 250},
	} {
		if got, err := ParseRange(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "batch_size", "=1..2", "batch_size=5", "batch_size=5..1", "batch_size=0..4",
		"batch_size=a..b", "batch_size=1..", "batch_size=1..9:0",
		"batch_size=1..9:-1", "batch_size=1.5..4", "batch_size=1..99999999999999999999"} {
		if got, err := ParseRange(text); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// search returns the largest value that a search found to fit, or 0 if none does, and how many values it tried.
func search(t *testing.T, r Range, fits func(int64) bool) (largest int64, probes int) {
	t.Helper()
	seen := map[int64]bool{}
	err := (&Values{Range: r}).Search(func(v int64) (bool, error) {
		if v < r.Low || v > r.High || (v-r.Low)%r.Step != 0 || seen[v] {
			t.Fatalf("%+v: asked for %d", r, v)
		}
		seen[v] = true
		if fits(v) {
			largest = max(largest, v)
		}
		return fits(v), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return largest, len(seen)
}

// Whatever the limit, the search finds the largest value that fits, in no more probes than announced.
func TestSearchFindsTheLargest(t *testing.T) {
	for _, r := range []Range{{"n", 1, 1, 1}, {"n", 1, 2, 1}, {"n", 3, 40, 1}, {"n", 512, 16384, 512},
		{"n", 1, 1000, 7}} {
		r.High -= (r.High - r.Low) % r.Step
		for limit := r.Low - 1; limit <= r.High+1; limit++ {
			want := int64(0)
			if limit >= r.Low {
				want = min(r.High, limit-(limit-r.Low)%r.Step)
			}
			got, probes := search(t, r, func(v int64) bool { return v <= limit })
			if got != want || probes > (&Values{Range: r}).Probes() {
				t.Errorf("%+v up to %d: %d in %d probes of %d, want %d", r, limit, got, probes,
					(&Values{Range: r}).Probes(), want)
			}
		}
	}
}

// If the options allow only some values, such as divisors, the search finds the largest allowed one that fits, and
// tries no others.
func TestSearchAmongSomeValues(t *testing.T) {
	only := []int64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
	for n := range only {
		v := &Values{Range: Range{"n", 1, 512, 1}, Only: only[:n+1]}
		for limit := range only[n] + 2 {
			want, got, asked := int64(0), int64(0), map[int64]bool{}
			for _, value := range v.Only {
				if value <= limit {
					want = value
				}
			}
			if err := v.Search(func(value int64) (bool, error) {
				if !slices.Contains(v.Only, value) || asked[value] {
					t.Fatalf("asked for %d", value)
				}
				if asked[value] = true; value <= limit {
					got = max(got, value)
				}
				return value <= limit, nil
			}); err != nil || got != want || len(asked) > v.Probes() {
				t.Errorf("%d values up to %d: %d in %d probes of %d, %v", n+1, limit, got, len(asked), v.Probes(), err)
			}
		}
	}
}

// A range may have a hole: a value does not fit although some larger ones do. The search finds such a larger value
// only if a probe outside bisection hits it. The two values after the found one do not fit, and the search has tried
// the value before it.
func TestSearchBeyondAHole(t *testing.T) {
	r := Range{"n", 1, 64, 1}
	for _, c := range []struct {
		what string
		fits func(int64) bool
		want int64
	}{
		{"the probe further beyond", func(v int64) bool { return v <= 10 || v >= 12 && v <= 13 }, 13},
		// The value 32 alone does not fit, as if it filled cached segments badly. Bisection ends at 32, so only a
		// further probe finds that 33 fits.
		{"the value after the lowest that does not fit", func(v int64) bool { return v <= 31 || v == 33 }, 33},
		{"and from there on", func(v int64) bool { return v <= 31 || v >= 33 && v <= 38 }, 38},
	} {
		if got, _ := search(t, r, c.fits); got != c.want {
			t.Errorf("%s: %d", c.what, got)
		}
	}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		good := map[int64]bool{1: true}
		for v := int64(2); v <= 64; v++ {
			good[v] = rng.IntN(3) > 0 && v < 60
		}
		asked := map[int64]bool{}
		got, probes := search(t, r, func(v int64) bool { asked[v] = true; return good[v] })
		if !good[got] || good[got+1] || good[got+2] || got > 1 && !asked[got-1] || probes > 64 {
			t.Errorf("seed %d: %d in %d probes", seed, got, probes)
		}
	}
}

// If the whole range seems to fit, the search looks for holes in the middle and just below the end.
func TestSearchLooksBelow(t *testing.T) {
	for _, hole := range []int64{32, 63} {
		var refused []int64
		got, probes := search(t, Range{"n", 1, 64, 1}, func(v int64) bool {
			if v == hole {
				refused = append(refused, v)
			}
			return v != hole
		})
		if got != 64 || len(refused) == 0 || probes != 4 {
			t.Errorf("a hole at %d: %d in %d probes, refused %d", hole, got, probes, refused)
		}
	}
}

// If a run gives no answer for a value, the search ends only where bisection needs that value. Elsewhere the search's
// result does not change. The search tries each value at most once.
func TestSearchWithoutAnAnswer(t *testing.T) {
	r := &Values{Range: Range{"n", 1, 64, 1}}
	run := func(limit, broken int64) (answer int64, asked []int64, err error) {
		err = r.Search(func(v int64) (bool, error) {
			asked = append(asked, v)
			if v == broken {
				return false, fmt.Errorf("wrapped: %w", &UnansweredError{"it fell over"})
			}
			if v <= limit {
				answer = max(answer, v)
			}
			return v <= limit, nil
		})
		return answer, asked, err
	}
	for _, c := range []struct {
		limit  int64
		checks []int64 // values tried outside bisection
	}{{64, []int64{63, 32}}, {20, []int64{19}}, {37, []int64{39}}} {
		_, all, err := run(c.limit, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range c.checks {
			if !slices.Contains(all, v) {
				t.Errorf("up to %d: %d is not among %d", c.limit, v, all)
			}
		}
		for _, v := range all {
			answer, asked, err := run(c.limit, v)
			if checked := slices.Contains(c.checks, v); checked != (err == nil) || checked && answer != c.limit {
				t.Errorf("up to %d without %d: %d, %v", c.limit, v, answer, err)
			}
			slices.Sort(asked)
			if len(slices.Compact(asked)) != len(asked) {
				t.Errorf("up to %d without %d: asked for %d", c.limit, v, asked)
			}
		}
	}
}

func TestSearchEndsAtAnError(t *testing.T) {
	stop, probes := errors.New("stop"), 0
	err := (&Values{Range: Range{"n", 1, 64, 1}}).Search(func(v int64) (bool, error) {
		if probes++; probes == 4 {
			return false, stop
		}
		return v < 20, nil
	})
	if err != stop || probes != 4 {
		t.Errorf("%v after %d probes", err, probes)
	}
}
