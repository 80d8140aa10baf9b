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
	devices := map[int32]bool{}
	for _, d := range in.nvmlDevices() {
		devices[d] = true
	}
	out := throttle{steps: len(t.steps)}
	k := 0 // samples and steps are both in the order of time
	for i := range t.steps {
		st := &t.steps[i]
		var seen int64
		sampled := false
		for k < len(in.Samples) && in.Samples[k].TimeNS < st.startNS {
			k++
		}
		for j := k; j < len(in.Samples) && in.Samples[j].TimeNS <= st.endNS; j++ {
			if s := &in.Samples[j]; s.ThrottleReasons != nil && devices[s.Device] {
				seen |= *s.ThrottleReasons
				sampled = true
			}
		}
		if sampled {
			out.sampled++
		}
		if seen&schemas.Throttled != 0 {
			out.slowed++
			out.reasons |= seen
		}
	}
	return out
}
