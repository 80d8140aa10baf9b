package analyze

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// throttle is in how many timed steps NVML reported a slowed clock, and why.
type throttle struct {
	slowed, sampled, steps int   // sampled steps have a reading: one that is shorter than the interval may have none
	reasons                int64 // NVML's mask, of all slowed steps together
}

// String is empty where no step was slowed down, or none is known to.
func (t throttle) String() string {
	if t.slowed == 0 {
		return ""
	}
	of := fmt.Sprintf("%d timed steps", t.steps)
	if t.sampled < t.steps {
		of = fmt.Sprintf("%d timed steps that were sampled", t.sampled)
	}
	return fmt.Sprintf("%d of %s (%s)", t.slowed, of, strings.Join(schemas.ThrottleNames(t.reasons), ", "))
}

// add counts another run's steps too.
func (t *throttle) add(o throttle) {
	t.slowed += o.slowed
	t.sampled += o.sampled
	t.steps += o.steps
	t.reasons |= o.reasons
}

// throttled looks at the samples within each timed step.
func (in *Input) throttled(t *times) throttle {
	slowed, sampled, reasons := in.during(t, throttling)
	return throttle{slowed: len(slowed), sampled: len(sampled), steps: len(t.steps), reasons: reasons}
}

// throttling reports whether a sample says what slows the clock, whether anything does, and what.
func throttling(m *schemas.Sample) (known, yes bool, mask int64) {
	if m.ThrottleReasons == nil {
		return false, false, 0
	}
	return true, *m.ThrottleReasons&schemas.Throttled != 0, *m.ThrottleReasons
}
