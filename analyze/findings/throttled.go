package findings

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// throttled looks at how many timed steps the GPU was slowed down in.
func (x *evidence) throttled() []Finding {
	t := timing.Of(x.in)
	slowed, sampled, reasons := timing.During(x.in, &t, timing.Throttling)
	n := len(slowed)
	if n == 0 {
		return nil
	}
	f := Finding{ID: Throttled}
	f.count("timed steps slowed down", n, "samples.parquet: throttle_reasons, within steps of steps.parquet")
	f.count("timed steps sampled", len(sampled), "the same")
	f.Sentence = fmt.Sprintf(
		"The GPU ran slower than its set clock in %d of %d timed steps that were sampled (%s).", n, len(sampled),
		strings.Join(schemas.ThrottleNames(reasons), ", "))
	f.Change = "compare only runs with the same limits and temperatures, or lock the clocks (nvidia-smi " +
		"--lock-gpu-clocks) below where the limit sets in"
	f.againstOthers(&t, slowed, sampled, "not slowed down")
	return []Finding{f}
}
