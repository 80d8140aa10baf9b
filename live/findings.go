package live

import "github.com/dpsight/dpsight/report/page"

const (
	// growing is the number of consecutive steps after which growth is reported. Each of these steps must end with more
	// memory than the step before it.
	growing = 5
	// slow is a factor. A step is reported if it takes more than slow times the median step.
	slow = 1.3
	// near is a share of a device's memory. If more than this share is reserved, the use is reported.
	near = 0.9
)

// findings returns the advice that a process's journal allows before the run has tables.
func findings(p *page.LiveProcess, limit int64) (out []page.LiveFinding) {
	last := p.Steps - 1
	for i := range p.Devices {
		d := &p.Devices[i]
		ends := atStepEnds(p.Times, d.Points)
		if n := len(ends); n > growing {
			ends = ends[n-growing-1:]
			first, final := ends[0], ends[growing]
			reserved, allocated := true, true
			for k := range growing {
				reserved = reserved && ends[k+1].Reserved > ends[k].Reserved
				allocated = allocated && ends[k+1].Allocated > ends[k].Allocated
			}
			switch {
			case allocated:
				out = append(out, page.LiveFinding{Kind: page.LiveAllocatedGrows, Step: last, From: first.Allocated,
					To: final.Allocated})
			case reserved:
				out = append(out, page.LiveFinding{Kind: page.LiveReservedGrows, Step: last, From: first.Reserved,
					To: final.Reserved})
			}
		}
		if limit > 0 && float64(d.PeakReserved) > near*float64(limit) {
			out = append(out, page.LiveFinding{Kind: page.LiveNearLimit, Step: max(d.PeakStep, 0), From: d.PeakReserved,
				To: limit})
		}
	}
	if p.FailedBytes > 0 {
		out = append(out, page.LiveFinding{Kind: page.LiveFailed, Step: p.FailedStep, To: p.FailedBytes})
	}
	if len(p.Times) > 2*growing && float64(p.LastNS) > slow*float64(p.MedianNS) && !p.Times[len(p.Times)-1].Recorded {
		out = append(out, page.LiveFinding{Kind: page.LiveSlower, Step: last, From: p.MedianNS, To: p.LastNS})
	}
	return out
}

// atStepEnds returns the last point of each step that has ended.
func atStepEnds(steps []page.LiveStep, points []page.LivePoint) (out []page.LivePoint) {
	k := 0
	for i := range steps {
		for k < len(points) && points[k].ToNS <= steps[i].EndNS {
			k++
		}
		if k > 0 && (len(out) == 0 || out[len(out)-1].ToNS != points[k-1].ToNS) {
			q := points[k-1]
			q.Allocated = q.Low // the bytes that remain at the step's end, and not the highest bytes of the point
			out = append(out, q)
		}
	}
	return out
}
