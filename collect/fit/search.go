package fit

import "errors"

// An UnansweredError reports that a value's run ended for a reason other than memory, so that it is unknown whether the
// value fits.
type UnansweredError struct{ Text string }

func (e *UnansweredError) Error() string { return e.Text }

// Search calls try for values until the largest that fits is known. Search tries the ends of the range, then bisects.
// Bisection assumes that all values below a fitting value fit too. But a smaller value need not fit: a library may
// choose another algorithm for a larger batch, and reserved depends on the sizes of cached segments. Search therefore
// also tries values that bisection does not need. After the lowest value that does not fit, Search tries the next value
// and another one beyond, and continues there if one of them fits. Search then tries the value before the largest that
// fits or, if all fit, also the middle. The tries of smaller values do not change the answer, but show the caller a
// smaller value that does not fit. Search tries each value once. Search stops at the first error and returns it. An
// [UnansweredError] for a value that bisection does not need does not stop Search.
func (v *Values) Search(try func(value int64) (fits bool, err error)) error {
	asked, unanswered := map[int64]bool{}, map[int64]*UnansweredError{}
	ask := func(i int64) (bool, error) {
		if fits, ok := asked[i]; ok {
			return fits, nil
		}
		if err := unanswered[i]; err != nil {
			return false, err
		}
		fits, err := try(v.at(i))
		if other := (*UnansweredError)(nil); errors.As(err, &other) {
			unanswered[i] = other
		} else if err == nil {
			asked[i] = fits
		}
		return fits, err
	}
	check := func(i int64) (bool, error) {
		fits, err := ask(i)
		if unanswered[i] != nil {
			return false, nil
		}
		return fits, err
	}
	last := v.last()
	lowest, err := ask(0)
	if err != nil || !lowest || last == 0 {
		return err
	}
	all, err := ask(last)
	if err != nil {
		return err
	}
	if all {
		for _, below := range []int64{last - 1, last / 2} {
			if _, err := check(below); err != nil {
				return err
			}
		}
		return nil
	}
	for good, bad := int64(0), last; ; {
		for bad-good > 1 {
			middle := good + (bad-good)/2
			fits, err := ask(middle)
			if err != nil {
				return err
			}
			if fits {
				good = middle
			} else {
				bad = middle
			}
		}
		answer, next := good, above(asked, bad, last)
		for _, beyond := range []int64{bad + (next-bad)/2, bad + 1} {
			if beyond == bad || beyond > next {
				continue
			}
			fits, err := check(beyond)
			if err != nil {
				return err
			}
			if fits {
				good, bad = beyond, above(asked, beyond, last)
				break
			}
		}
		if good == answer {
			if good > 0 {
				_, err = check(good - 1)
			}
			return err
		}
	}
}

// above returns the lowest value above i that is known not to fit. The value at last must be known not to fit.
func above(asked map[int64]bool, i, last int64) int64 {
	for value, fits := range asked {
		if value > i && !fits {
			last = min(last, value)
		}
	}
	return last
}
