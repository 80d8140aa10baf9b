package memory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// A FailedRequest is a request for memory that failed because memory was short, with a breakdown of the memory in use.
type FailedRequest struct {
	RunID  string `json:"run_id"`
	Device string `json:"device"`
	Rank   int32  `json:"rank"`
	Fatal  bool   `json:"fatal"` // the run died of the failed request; otherwise the run went on
	// EndUnknown is true if it is unknown whether the process continued.
	EndUnknown bool `json:"end_unknown,omitempty"`
	Absorbed   bool `json:"absorbed"` // torch itself recovered and took less; if false, the script had to recover
	// more than 1 only for requests at one place that torch recovered from; the largest of them is shown
	Requests       int     `json:"requests"`
	RequestedBytes int64   `json:"requested_bytes"`
	Module         *string `json:"module"` // module that asked; null outside of modules
	// At is the moment of the failure. If its event is 0, the events around the failure are not in the journal, and the
	// other fields about memory are not known.
	At             Moment `json:"at"`
	AllocatedBytes *int64 `json:"allocated_bytes"`
	CachedBytes    *int64 `json:"cached_bytes"` // bytes that torch's cache held free
	Sentence       string `json:"sentence"`     // the sentence about the request, which report makes

	OOM   *schemas.OOM `json:"-"`
	Index int          `json:"-"` // index of the request in the report
	Nth   int64        `json:"-"` // number of the request on its device, from 1: the number after --at
	Whole bool         `json:"-"` // the limit is all memory of the device
	// ReservedBytes are the bytes that torch had reserved at the moment of the failure; nil if not known.
	ReservedBytes *int64 `json:"-"`
	// Breakdown is the breakdown of the failure's moment, or nil if the journal does not have the events around it.
	// layout is nil if the cache is not known.
	Breakdown *DeviceBreakdown `json:"-"`
	Layout    *Layout          `json:"-"`
}

// mostFailed is the largest number of failed requests for which a summary has a breakdown: a script may try a thousand
// times.
const mostFailed = 10

// Failed returns the failed requests of a run's summary, and how many it leaves out. Requests that ended the run come
// first.
func Failed(in *schemas.Tables, ledgers *Ledgers) (out []FailedRequest, more int) {
	if in.Report == nil {
		return nil, 0
	}
	order := failureGroups(in)
	slices.SortStableFunc(order, func(a, b []int) int { return cmp.Compare(weight(in, a), weight(in, b)) })
	for k, group := range order {
		if k < mostFailed {
			out = append(out, failure(in, group, ledgers))
		} else {
			more += len(group)
		}
	}
	return out, more
}

// FailedCount returns the number of failed requests that torch did not recover from, or nil if failures were not
// recorded.
func FailedCount(in *schemas.Tables) *int {
	if in.Report == nil || in.Report.FailuresUnread(in.Manifest) || in.Manifest.FiguresOnly() {
		return nil
	}
	n := 0
	for i := range in.Report.OOMs {
		if !in.Report.OOMs[i].Absorbed() {
			n++
		}
	}
	return &n
}

// weight returns a group's place in the order of failed requests: first requests that ended the run, last requests from
// which torch recovered unnoticed by the script.
func weight(in *schemas.Tables, group []int) int {
	switch o := &in.Report.OOMs[group[0]]; {
	case o.Fatal:
		return 0
	case o.Absorbed():
		return 2
	}
	return 1
}

// failureGroups returns groups of the report's failed requests, by their indexes. Requests at one place that torch
// itself recovered from form one group, since a convolution may try dozens of algorithms in each step. The largest
// request of a group comes first.
func failureGroups(in *schemas.Tables) (groups [][]int) {
	type site struct {
		identity.Place
		module, phase string
	}
	at := map[site]int{}
	for i := range in.Report.OOMs {
		o := &in.Report.OOMs[i]
		if !o.Absorbed() {
			groups = append(groups, []int{i})
			continue
		}
		s := site{identity.Place{Rank: o.Rank, Device: o.Device}, o.Module, o.Phase}
		k, ok := at[s]
		if !ok {
			k = len(groups)
			at[s], groups = k, append(groups, nil)
		}
		groups[k] = append(groups[k], i)
	}
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b int) int {
			return cmp.Compare(in.Report.OOMs[b].RequestedBytes, in.Report.OOMs[a].RequestedBytes)
		})
	}
	return groups
}

// FailedRequests lists all failed requests, one for each group.
func FailedRequests(in *schemas.Tables, ledgers *Ledgers) (out []FailedRequest) {
	if in.Report == nil {
		return nil
	}
	for _, group := range failureGroups(in) {
		out = append(out, failure(in, group, ledgers))
	}
	return out
}

// failure returns the failed request that a group of records describes.
func failure(in *schemas.Tables, group []int, ledgers *Ledgers) FailedRequest {
	r := request(in, group[0])
	r.Requests = len(group)
	if r.OOM.Seq != 0 { // 0 = the process died before its last drain
		p := identity.Place{Rank: r.OOM.Rank, Device: r.OOM.Device}
		d := BreakdownAt(in, p, ledgers.Of(p), r.At, -1)
		r.Breakdown, r.Layout = &d, LayoutAt(in, p, ledgers.Of(p), r.OOM.Seq)
		r.AllocatedBytes = &d.AllocatedBytes
	}
	if r.Layout != nil {
		r.CachedBytes = new(r.Layout.Free())
	}
	return r
}

// request returns the i-th failed request of the report, without a breakdown of the memory in use.
func request(in *schemas.Tables, i int) FailedRequest {
	o := &in.Report.OOMs[i]
	p := identity.Place{Rank: o.Rank, Device: o.Device}
	r := FailedRequest{RunID: in.Manifest.RunID, Device: p.String(), Rank: o.Rank, Fatal: o.Fatal,
		EndUnknown: o.EndUnknown, Absorbed: o.Absorbed(),
		Requests: 1, RequestedBytes: o.RequestedBytes, Module: identity.OrNull(o.Module),
		At: failureMoment(in, p, i), OOM: o, Index: i, Nth: Nth(in, i), Whole: WholeDevice(in, o.LimitBytes)}
	if o.Seq != 0 {
		r.ReservedBytes = ReservedAt(in, p, o.Seq)
	}
	return r
}

// Holders returns the categories with bytes at the moment of the failure, the largest first.
func (r *FailedRequest) Holders() []CategoryBytes {
	held := slices.DeleteFunc(slices.Clone(r.Breakdown.Categories), func(c CategoryBytes) bool { return c.Bytes == 0 })
	slices.SortStableFunc(held, func(a, b CategoryBytes) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return held
}

// ShortOf returns how many bytes fewer would have had to be allocated or cached for the request to succeed. The limit
// is one that the process has set, or what other processes and the CUDA context leave of the device.
func (r *FailedRequest) ShortOf() int64 {
	if r.OOM.LimitBytes == 0 { // without a limit the cause is unknown
		return 0
	}
	return r.OOM.RequestedBytes - min(r.OOM.LimitBytes-r.Layout.Reserved, r.OOM.DeviceFreeBytes)
}

// diedOf returns the failed request that ended the run; nil if no failed request did.
func diedOf(in *schemas.Tables) *FailedRequest {
	if in.Report == nil {
		return nil
	}
	for i := range in.Report.OOMs {
		if in.Report.OOMs[i].Fatal {
			return new(request(in, i))
		}
	}
	return nil
}

// Nth returns the number, from 1, of the report's i-th failed request among the requests of the same device. The number
// that Nth returns is the N of --at oom=N.
func Nth(in *schemas.Tables, i int) (n int64) {
	o := &in.Report.OOMs[i]
	for _, x := range in.Report.OOMs[:i+1] {
		if x.Rank == o.Rank && x.Device == o.Device {
			n++
		}
	}
	return n
}

// failureMoment returns the moment of the report's i-th failed request.
func failureMoment(in *schemas.Tables, p identity.Place, i int) Moment {
	o := &in.Report.OOMs[i]
	m := MomentOf(in, p, o.Seq)
	if o.Phase != "" { // the phase comes from the mark, which is set before the request's last event
		m.Step, m.Phase = nil, new(o.Phase)
		if o.Step >= 0 {
			m.Step = new(o.Step)
		}
	}
	return m
}

// BesideTensors returns the part of a failed request's limit that the allocator could not use, or 0 if there is none or
// it is not known. torch's limit is the whole device including the CUDA context, unless the script set a lower limit.
// The memory that "dpsight predict" assumes excludes the context.
func (r *FailedRequest) BesideTensors() int64 {
	if r.ReservedBytes == nil {
		return 0
	}
	return max(0, r.OOM.LimitBytes-r.OOM.DeviceFreeBytes-*r.ReservedBytes)
}

// leastWhole is the smallest part, in per cent, of a device's memory by NVML that still counts as the whole device. The
// driver keeps between 0.4 (H200) and 3 (T4) per cent for itself.
const leastWhole = 97

// WholeDevice reports whether a limit is the memory of a whole device, and not a limit that the script has set.
// WholeDevice returns false if no device's memory is known.
func WholeDevice(in *schemas.Tables, limit int64) bool {
	return slices.ContainsFunc(in.Manifest.GPUs, func(g schemas.GPU) bool {
		if in.Manifest.Source == schemas.Predicted { // a predicted run has only torch's own figure
			return limit == g.TotalBytes
		}
		return g.TotalBytes > 0 && limit <= g.TotalBytes && AtLeast(limit, g.TotalBytes, leastWhole)
	})
}

// FailureAt returns the moment of the device's n-th failed request, counted from 1.
func FailureAt(in *schemas.Tables, p identity.Place, n int64) (ResolvedMoment, error) {
	var seen int64
	if in.Report == nil {
		return ResolvedMoment{}, fmt.Errorf("%s has not been ingested: nothing says whether it ran out of memory", p)
	}
	for i := range in.Report.OOMs {
		o := &in.Report.OOMs[i]
		if o.Rank != p.Rank || o.Device != p.Device {
			continue
		}
		if seen++; seen < n {
			continue
		}
		if o.Seq == 0 {
			return ResolvedMoment{}, fmt.Errorf("%s ran out of memory, and the events before that are not in the journal", p)
		}
		r := request(in, i)
		return ResolvedMoment{At: r.At, Allocated: -1, Failed: &r}, nil
	}
	if seen == 0 {
		return ResolvedMoment{}, noFailure(in, p)
	}
	if seen == 1 {
		return ResolvedMoment{}, fmt.Errorf("%s ran out of memory once, not %d times", p, n)
	}
	return ResolvedMoment{}, fmt.Errorf("%s ran out of memory %d times, not %d times", p, seen, n)
}

// noFailure returns the error for a device without a known failed request. The words of noFailure's error depend on
// whether failed requests were recorded at all.
func noFailure(in *schemas.Tables, p identity.Place) error {
	switch {
	case in.Report.FailuresUnread(in.Manifest):
		return fmt.Errorf("%s was imported by an older dpsight, which did not read out-of-memory events: dpsight ingest "+
			"--again reads them", p)
	case in.Manifest.Import != nil:
		return fmt.Errorf("the trace of %s has no out-of-memory event; what happened before it began or after it ended "+
			"is not known", p)
	case slices.ContainsFunc(in.Report.Ranks, func(r schemas.RankVerdict) bool {
		return r.Rank == p.Rank && !r.Complete
	}):
		return fmt.Errorf("%s did not run out of memory as far as its journal goes, which ends before the process did", p)
	}
	return fmt.Errorf("%s did not run out of memory", p)
}

// AtLeast reports whether part is at least percent of whole.
func AtLeast(part, whole int64, percent float64) bool {
	return part > 0 && float64(part) >= percent/100*float64(whole)
}
