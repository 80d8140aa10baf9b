package join

// sequence has the actions of a sequence of events, and the sizes of the events' blocks.
type sequence struct {
	of   []action
	size []int64
}

func (s sequence) part(from, to int) sequence { return sequence{s.of[from:to], s.size[from:to]} }

// same reports whether two events can match. If factors is not nil, their sizes must differ by one of these factors.
// Blocks that come from another unit or pass into another unit are exempt, since they may have the size of another
// batch.
func same(a, b *sequence, i, k int, factors factors) bool {
	switch {
	case a.of[i] != b.of[k]:
		return false
	case factors == nil || a.size[i] == b.size[k] || a.of[i].crosses():
		return true
	}
	return factors[factor(a.size[i], b.size[k])] > 0
}

// shortest finds a shortest edit from b to a (Myers 1986). shortest returns, for each event of a, its place in b, from
// 1, or 0 if it has none. shortest returns nil if the edit is too long, or if maxWork is used up.
func (p *partMatcher) shortest(a, b sequence, factors factors) []int32 {
	p.buffer.places = grown(p.buffer.places, len(a.of))
	places := p.buffer.places
	n := 0
	for n < len(a.of) && n < len(b.of) && same(&a, &b, n, n, factors) {
		places[n] = int32(n + 1)
		n++
	}
	e, g := len(a.of), len(b.of)
	for e > n && g > n && same(&a, &b, e-1, g-1, factors) {
		places[e-1] = int32(g)
		e, g = e-1, g-1
	}
	if p.work += len(a.of) + len(b.of); p.work > maxWork {
		return nil
	}
	if !p.middle(a.part(n, e), b.part(n, g), places[n:e], int32(n), factors) {
		return nil
	}
	return places
}

// middle matches two stretches after their common beginnings and ends have been removed. shift is added to the places
// in the result.
func (p *partMatcher) middle(a, b sequence, places []int32, shift int32, factors factors) bool {
	n, m := len(a.of), len(b.of)
	if n == 0 || m == 0 {
		return true
	}
	limit := min(maxEdits, n+m)
	p.buffer.furthest = grown(p.buffer.furthest, 2*limit+2)
	v := p.buffer.furthest      // how far along each diagonal x-y, plus limit, the search has come
	trace := p.buffer.trace[:0] // the middle part of v before each step: step d's begins at d²
	for d := 0; d <= limit; d++ {
		if p.work += d; p.work > maxWork {
			return false
		}
		for k := -d; k <= d; k += 2 {
			var x int32
			if k == -d || k != d && v[limit+k-1] < v[limit+k+1] {
				x = v[limit+k+1]
			} else {
				x = v[limit+k-1] + 1
			}
			from := x
			for y := int(x) - k; int(x) < n && y < m && same(&a, &b, int(x), y, factors); y++ {
				x++
			}
			p.work += int(x - from)
			v[limit+k] = x
			if int(x) >= n && int(x)-k >= m {
				p.buffer.trace = trace
				backtrack(trace, d, n, m, places, shift)
				return true
			}
		}
		trace = append(trace, v[limit-d:limit+d+1]...)
	}
	return false
}

// backtrack reconstructs an edit of d steps from the furthest places that were reached before each step.
func backtrack(trace []int32, d, x, y int, places []int32, shift int32) {
	for ; d > 0; d-- {
		before := trace[(d-1)*(d-1) : d*d] // the diagonals from -(d-1) to d-1
		at := func(k int) int {
			if k < -(d-1) || k > d-1 {
				return -1
			}
			return int(before[k+d-1])
		}
		k := x - y
		from := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			from = k + 1
		}
		px := at(from)
		py := px - from
		begin := px // where the diagonal begins
		if from == k-1 {
			begin++
		}
		for x > begin {
			x, y = x-1, y-1
			places[x] = int32(y+1) + shift
		}
		x, y = px, py
	}
	for x > 0 && y > 0 {
		x, y = x-1, y-1
		places[x] = int32(y+1) + shift
	}
}
