package timing

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// Throttle is in how many timed steps NVML reported a slowed clock, and why.
type Throttle struct {
	slowed, Sampled, Steps int   // sampled steps have a reading: one that is shorter than the interval may have none
	reasons                int64 // NVML's mask, of all slowed steps together
}

// String is empty where no step was slowed down, or none is known to.
func (t Throttle) String() string {
	if t.slowed == 0 {
		return ""
	}
	of := fmt.Sprintf("%d timed steps", t.Steps)
	if t.Sampled < t.Steps {
		of = fmt.Sprintf("%d timed steps that were sampled", t.Sampled)
	}
	return fmt.Sprintf("%d of %s (%s)", t.slowed, of, strings.Join(schemas.ThrottleNames(t.reasons), ", "))
}

// Add counts another run's steps too.
func (t *Throttle) Add(o Throttle) {
	t.slowed += o.slowed
	t.Sampled += o.Sampled
	t.Steps += o.Steps
	t.reasons |= o.reasons
}

// Throttled looks at the samples within each timed step.
func Throttled(in *schemas.Tables, t *Times) Throttle {
	slowed, sampled, reasons := During(in, t, Throttling)
	return Throttle{slowed: len(slowed), Sampled: len(sampled), Steps: len(t.Steps), reasons: reasons}
}

// Throttling reports whether a sample says what slows the clock, whether anything does, and what.
func Throttling(m *schemas.Sample) (known, yes bool, mask int64) {
	if m.ThrottleReasons == nil {
		return false, false, 0
	}
	return true, *m.ThrottleReasons&schemas.Throttled != 0, *m.ThrottleReasons
}
