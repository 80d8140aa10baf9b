package timing

import "github.com/dpsight/dpsight/schemas"

// Throttle is in how many timed steps NVML reported a slowed clock, and why.
type Throttle struct {
	Slowed, Sampled, Steps int   // sampled steps have a reading: a step shorter than the interval may have none
	Reasons                int64 // NVML's mask, of all slowed steps together
}

// Add counts another run's steps too.
func (t *Throttle) Add(o Throttle) {
	t.Slowed += o.Slowed
	t.Sampled += o.Sampled
	t.Steps += o.Steps
	t.Reasons |= o.Reasons
}

// Throttled looks at the samples within each timed step.
func Throttled(in *schemas.Tables, t *Times) Throttle {
	slowed, sampled, reasons := During(in, t, Throttling)
	return Throttle{Slowed: len(slowed), Sampled: len(sampled), Steps: len(t.Steps), Reasons: reasons}
}

// Throttling reports whether a sample knows what slows the clock, whether anything does, and what.
func Throttling(m *schemas.Sample) (known, yes bool, mask int64) {
	if m.ThrottleReasons == nil {
		return false, false, 0
	}
	return true, *m.ThrottleReasons&schemas.Throttled != 0, *m.ThrottleReasons
}
