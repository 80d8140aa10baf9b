package findings

import (
	"github.com/dpsight/dpsight/analyze/timing"
)

// notIsolated looks at whether the GPU was known to be free when a run began whose steps were timed.
func (x *evidence) notIsolated() []Finding {
	i := x.in.Manifest.Isolation
	if t := timing.Of(x.in); len(t.Steps) == 0 || i == nil || i.Verified || i.Reason == "" {
		return nil
	}
	f := Finding{ID: NotIsolated}
	f.Sentence = "The GPU was not known to be free when the run began: " + i.Reason + "."
	if i.OtherProcesses != nil {
		f.count("other processes", *i.OtherProcesses, "run.json: isolation.other_processes")
	}
	if i.IdleBytes != nil {
		f.bytes("device memory in use before the run", *i.IdleBytes, "run.json: isolation.idle_bytes")
	}
	f.Change = "free the GPU before the run; dpsight collect waits for it"
	return []Finding{f}
}
