package findings

import (
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
)

// OOMFacts are the facts of an [OOM] finding.
type OOMFacts struct {
	Request    *memory.FailedRequest
	Expandable bool // torch already has expandable segments
}

// failures returns a finding for each failed request for memory that the run's summary lists.
func (x *evidence) failures() (out []Finding) {
	for _, r := range memory.FailedRequests(x.in, x.ledgers) {
		f := Finding{ID: OOM, Device: &r.Device, Rank: &r.Rank, Facts: OOMFacts{&r, expandable(x.in)}}
		f.of(r.OOM.RequestedBytes, r.OOM.LimitBytes, OfLimit)
		if l := grouping.LinesOf(x.in, r.Rank)[r.OOM.Line]; l != nil {
			f.Line = &LinePart{l, r.OOM.RequestedBytes}
		}
		f.OfBlocks = true
		if r.Breakdown != nil {
			f.At = &r.At
		}
		out = append(out, f)
	}
	return out
}
