package timing

import "github.com/dpsight/dpsight/schemas"

// Throttle says in how many timed steps NVML reported a slowed clock, and why.
type Throttle struct {
	Slowed, Sampled, Steps int   // numbers of steps; a sampled step has a reading, a short step may have none
	Reasons                int64 // NVML's mask over all slowed steps
}

// Add adds the counts of another run's steps.
func (t *Throttle) Add(o Throttle) {
	t.Slowed += o.Slowed
	t.Sampled += o.Sampled
	t.Steps += o.Steps
	t.Reasons |= o.Reasons
}

// Throttled counts the timed steps in which NVML's samples report a slowed clock.
func Throttled(in *schemas.Tables, t *Times) Throttle {
	slowed, sampled, reasons := During(in, t, Throttling)
	return Throttle{Slowed: len(slowed), Sampled: len(sampled), Steps: len(t.Steps), Reasons: reasons}
}

// Throttling returns three values: whether a sample says what slows the clock, whether anything slows it, and NVML's
// mask of the reasons.
func Throttling(m *schemas.Sample) (known, yes bool, mask int64) {
	if m.ThrottleReasons == nil {
		return false, false, 0
	}
	return true, *m.ThrottleReasons&schemas.Throttled != 0, *m.ThrottleReasons
}
