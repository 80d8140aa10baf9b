package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// otherProcess looks at how many timed steps another process was on the GPU in.
func (x *evidence) otherProcess() []Finding {
	t := timing.Of(x.in)
	shared, sampled, _ := timing.During(x.in, &t, func(m *schemas.Sample) (known, yes bool, mask int64) {
		return true, m.OtherProcesses > 0, 0
	})
	n := len(shared)
	if n == 0 {
		return nil
	}
	f := Finding{ID: OtherProcess}
	f.count("timed steps with another process", n,
		"samples.parquet: other_processes, within steps of steps.parquet")
	f.count("timed steps sampled", len(sampled), "the same")
	f.Sentence = fmt.Sprintf("Another process was on the GPU in %d of %d timed steps that were sampled.", n,
		len(sampled))
	f.Change = "time the run again on a GPU of its own"
	f.againstOthers(&t, shared, sampled, "without another process")
	return []Finding{f}
}
