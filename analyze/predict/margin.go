package predict

import "math"

// DefaultMargin is the part of a device's memory, in per cent, that a run should leave free according to its
// prediction, on a device with which no prediction was ever compared. The run may need a little more than predicted.
const DefaultMargin = 5

// MarginBytes returns how many bytes of a device's memory a predicted run should leave free. percent is the user's
// setting. If percent is nil, the margin is [DefaultMargin], or 0 on a device with which predictions were compared.
func MarginBytes(memory int64, checked bool, percent *float64) int64 {
	switch {
	case percent != nil:
		return int64(math.Round(float64(memory) * *percent / 100))
	case checked:
		return 0
	}
	return memory / 100 * DefaultMargin
}

// WithMargin returns a copy of the run with another margin than the default.
func (p PredictionRun) WithMargin(percent float64) PredictionRun {
	if p.MemoryBytes != nil {
		p.MarginBytes = new(MarginBytes(*p.MemoryBytes, true, &percent))
	}
	return p
}

// Leaves reports whether the run fits and leaves at least the given bytes of the device's memory.
func (p *PredictionRun) Leaves(bytes int64) bool {
	return p.Fits != nil && *p.Fits && p.SpareBytes != nil && *p.SpareBytes >= bytes
}

// Tight reports whether the run fits but leaves less than its margin.
func (p *PredictionRun) Tight() bool {
	return p.Fits != nil && *p.Fits && p.SpareBytes != nil && p.MarginBytes != nil && *p.SpareBytes < *p.MarginBytes
}
