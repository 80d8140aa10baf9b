package fit

// Search asks for values of the range until the largest that fits is known: its ends, then by bisection. Bisection believes
// that what fits with a value fits with every smaller one. Memory need not grow so (a library may choose another algorithm for a larger
// batch), so one value beyond the answer, outside bisection's order, is asked for too; where that fits the search goes on from
// there. Each value is asked for once. It ends at the first error, which it gives.
func (r Range) Search(try func(value int64) (fits bool, err error)) error {
	asked := map[int64]bool{}
	ask := func(i int64) (bool, error) {
		if fits, ok := asked[i]; ok {
			return fits, nil
		}
		fits, err := try(r.Low + i*r.Step)
		if err == nil {
			asked[i] = fits
		}
		return fits, err
	}
	last := (r.High - r.Low) / r.Step
	for _, end := range []int64{0, last} {
		if fits, err := ask(end); err != nil || fits == (end == last) {
			return err // nothing fits, or everything does
		}
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
		next := last // the lowest value above bad that is known not to fit
		for i, fits := range asked {
			if i > bad && !fits {
				next = min(next, i)
			}
		}
		beyond := bad + (next-bad)/2
		if beyond == bad {
			return nil
		}
		fits, err := ask(beyond)
		if err != nil || !fits {
			return err
		}
		good, bad = beyond, next
	}
}
