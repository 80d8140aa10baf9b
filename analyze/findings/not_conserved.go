package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

// notConserved looks for a recording that replay and the allocator's counters do not agree on.
func (x *evidence) notConserved() []Finding {
	c := &x.d.Conservation
	if c.Verdict == schemas.Exact {
		return nil
	}
	f := x.finding(NotConserved)
	f.bytes("residue", c.ResidueBytes, "ingest.json: devices[].residue_bytes")
	x.of(&f, c.ResidueBytes)
	f.Sentence = fmt.Sprintf("The recording is not proved whole (%s): replay and the allocator's counters differ "+
		"by up to %s.", conservationText(c), prose.MiB(c.ResidueBytes))
	f.Change = "record the run again: what is missing cannot be derived from the journal; until then quote its " +
		"figures with the residue"
	return []Finding{f}
}

func conservationText(c *memory.Conservation) string {
	if c.Reason != "" {
		return c.Verdict + ": " + c.Reason
	}
	return c.Verdict
}
