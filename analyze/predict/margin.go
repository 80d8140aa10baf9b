package predict

import "math"

// DefaultMargin is the part of a device's memory, in per cent, that a prediction should leave on a device with
// which no prediction was ever compared. The device may really hold a little more than predicted.
const DefaultMargin = 5

// MarginBytes returns what a prediction should leave free of a device's memory. percent is the user's. If percent is
// nil, the margin is [DefaultMargin], or nothing on a device with which predictions were compared.
func MarginBytes(memory int64, checked bool, percent *float64) int64 {
	switch {
	case percent != nil:
		return int64(math.Round(float64(memory) * *percent / 100))
	case checked:
		return 0
	}
	return memory / 100 * DefaultMargin
}

// WithMargin is the run with another margin than the default.
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

// Tight reports whether the run fits by the bytes, and leaves less than its margin.
func (p *PredictionRun) Tight() bool {
	return p.Fits != nil && *p.Fits && p.SpareBytes != nil && p.MarginBytes != nil && *p.SpareBytes < *p.MarginBytes
}
