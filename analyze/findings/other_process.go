package findings

import (
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// otherProcess reports timed steps during which another process was on the GPU.
func (x *evidence) otherProcess() []Finding {
	t := timing.Of(x.in)
	shared, sampled, _ := timing.During(x.in, &t, func(m *schemas.Sample) (known, yes bool, mask int64) {
		return true, m.OtherProcesses > 0, 0
	})
	if len(shared) == 0 {
		return nil
	}
	f := Finding{ID: OtherProcess}
	f.Facts = f.againstOthers(&t, shared, sampled)
	return []Finding{f}
}
