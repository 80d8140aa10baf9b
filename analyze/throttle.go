package analyze

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// throttled says in how many of the timed steps NVML reported a slowed clock, and why; empty where in none, or where
// nothing was sampled.
func (in *Input) throttled(t *times) string {
	devices := map[int32]bool{}
	for _, d := range in.nvmlDevices() {
		devices[d] = true
	}
	steps, reasons := 0, int64(0)
	k := 0 // samples and steps are both in the order of time
	for i := range t.steps {
		st := &t.steps[i]
		var seen int64
		for k < len(in.Samples) && in.Samples[k].TimeNS < st.startNS {
			k++
		}
		for j := k; j < len(in.Samples) && in.Samples[j].TimeNS <= st.endNS; j++ {
			if s := &in.Samples[j]; s.ThrottleReasons != nil && devices[s.Device] {
				seen |= *s.ThrottleReasons
			}
		}
		if seen&schemas.Throttled != 0 {
			steps++
			reasons |= seen
		}
	}
	if steps == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d timed steps (%s)", steps, len(t.steps), strings.Join(schemas.ThrottleNames(reasons), ", "))
}
