package live

import "github.com/dpsight/dpsight/report/page"

// mostLine is the number of points at which a line merges neighbouring points.
const mostLine = 1200

// A line is a curve of about mostLine points at most, however many values it was made of. Each point keeps its highest
// and its lowest value. When a line is full, neighbouring points are merged.
type line struct {
	points []page.LivePoint
	values []int // how many values each point has
	stride int   // how many values a point can take
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

// halve merges neighbouring points in pairs. halve does not merge a point from counters with a point from events.
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

// join merges point q into the point p before it. The merged point has the time and step of the point with more bytes.
func join(p, q *page.LivePoint) {
	low := min(p.Low, q.Low)
	from, to := p.FromNS, q.ToNS
	if q.Allocated > p.Allocated {
		*p = *q
	}
	p.Low, p.FromNS, p.ToNS = low, from, to
	p.Reserved = max(p.Reserved, q.Reserved)
}
