package live

import "github.com/dpsight/dpsight/report/page"

// mostLine is how many points a line has at most.
const mostLine = 1200

// A line is a curve with as many points as a screen is wide, however many values it was made of. Each point keeps the
// highest and the lowest of its values. When a line is full, neighbouring points are merged.
type line struct {
	points []page.LivePoint
	values []int // number of values that each point was made of
	stride int   // values that make one
}

func (l *line) add(q page.LivePoint) {
	l.stride = max(l.stride, 1)
	if n := len(l.points); n > 0 && l.values[n-1] < l.stride && l.points[n-1].Counters == q.Counters && !q.Counters {
		join(&l.points[n-1], &q)
		l.values[n-1]++
		return
	}
	if len(l.points) >= mostLine {
		l.halve()
	}
	l.points, l.values = append(l.points, q), append(l.values, 1)
}

// halve makes one of each two neighbours of a kind.
func (l *line) halve() {
	kept := 0
	for i := 0; i < len(l.points); {
		q, n := l.points[i], l.values[i]
		if i++; i < len(l.points) && l.points[i].Counters == q.Counters {
			join(&q, &l.points[i])
			n += l.values[i]
			i++
		}
		l.points[kept], l.values[kept] = q, n
		kept++
	}
	l.points, l.values, l.stride = l.points[:kept], l.values[:kept], 2*l.stride
}

// join merges a later point into one. The higher of the two points' moments represents both.
func join(p, q *page.LivePoint) {
	low := min(p.Low, q.Low)
	from, to := p.FromNS, q.ToNS
	if q.Allocated > p.Allocated {
		*p = *q
	}
	p.Low, p.FromNS, p.ToNS = low, from, to
	p.Reserved = max(p.Reserved, q.Reserved)
}
