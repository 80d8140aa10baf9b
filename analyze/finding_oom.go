package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// A FailedRequest is an allocation that failed for want of memory, and what was in its way.
type FailedRequest struct {
	RunID    string `json:"run_id"`
	Device   string `json:"device"`
	Rank     int32  `json:"rank"`
	Fatal    bool   `json:"fatal"`    // the run died of it; else something went on
	Absorbed bool   `json:"absorbed"` // that was torch itself, which took less; else the script
	// several only of what torch went on without at one place; the largest is told
	Requests       int     `json:"requests"`
	RequestedBytes int64   `json:"requested_bytes"`
	Module         *string `json:"module"` // null outside of modules
	// event 0: the events around it are not in the journal, and the rest is not known
	At             Moment `json:"at"`
	AllocatedBytes *int64 `json:"allocated_bytes"`
	CachedBytes    *int64 `json:"cached_bytes"` // and free
	Sentence       string `json:"sentence"`
}

// mostFailed bounds the failures that a summary breaks down: a script may try a thousand times.
const mostFailed = 10

// failed gives the failures of a summary, those that ended the run first, and how many it leaves out.
func (in *Input) failed(ledgers *ledgers) (out []FailedRequest, more int) {
	if in.Report == nil {
		return nil, 0
	}
	order := in.failureGroups()
	slices.SortStableFunc(order, func(a, b []int) int { return cmp.Compare(in.weight(a), in.weight(b)) })
	for k, group := range order {
		if k < mostFailed {
			out = append(out, *in.failure(group, ledgers).failed)
		} else {
			more += len(group)
		}
	}
	return out, more
}

// weight puts first what ended the run, and last what it did not notice.
func (in *Input) weight(group []int) int {
	switch o := &in.Report.OOMs[group[0]]; {
	case o.Fatal:
		return 0
	case o.Absorbed():
		return 2
	}
	return 1
}

// failureGroups are the failures of the report, by their places in it, those together that torch itself went on without
// at one place: a convolution may try dozens of algorithms in each step. The largest request of a group is its first.
func (in *Input) failureGroups() (groups [][]int) {
	type site struct {
		place
		module, phase string
	}
	at := map[site]int{}
	for i := range in.Report.OOMs {
		o := &in.Report.OOMs[i]
		if !o.Absorbed() {
			groups = append(groups, []int{i})
			continue
		}
		s := site{place{o.Rank, o.Device}, o.Module, o.Phase}
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

// failures gives a finding for each allocation that failed.
func (in *Input) failures(ledgers *ledgers) (out []Finding) {
	if in.Report == nil {
		return nil
	}
	for _, group := range in.failureGroups() {
		out = append(out, in.failure(group, ledgers))
	}
	return out
}

// failure is that of a group.
func (in *Input) failure(group []int, ledgers *ledgers) Finding {
	i := group[0]
	o := &in.Report.OOMs[i]
	p := place{o.Rank, o.Device}
	from := fmt.Sprintf("ingest.json: ooms[%d]", i)
	at := in.failureMoment(p, i)
	f := Finding{ID: FindingOOM, Device: new(p.String()), Rank: new(o.Rank),
		failed: &FailedRequest{RunID: in.Manifest.RunID, Device: p.String(), Rank: o.Rank, Fatal: o.Fatal,
			Absorbed: o.Absorbed(), Requests: len(group), RequestedBytes: o.RequestedBytes, Module: orNull(o.Module),
			At: at}}
	f.of(o.RequestedBytes, o.LimitBytes, OfLimit)
	f.bytes("requested", o.RequestedBytes, from)
	f.bytes("limit of the process", o.LimitBytes, from)
	f.bytes("free on the device", o.DeviceFreeBytes, from)
	ended := "and the script went on"
	switch {
	case o.Fatal:
		ended = "and the run died of it"
	case o.Absorbed():
		ended = "and torch itself went on without: it tries cuDNN's algorithms one after the other, and takes the " +
			"first whose workspace can be had"
	}
	f.Sentence = fmt.Sprintf("A %s failed %s, %s", requestWords(o), when(&at), ended)
	if n := len(group); n > 1 {
		f.Sentence = fmt.Sprintf("%d requests for at most %s failed, the largest %s, %s", n,
			strings.TrimPrefix(requestWords(o), "request for "), when(&at), ended)
	}
	if o.Seq == 0 { // the process died before its last drain
		f.Sentence += "; the events around it are not in the journal."
	} else {
		f.At = &at
		d := in.breakdownAt(p, ledgers.of(p), at, -1)
		f.holders(&d, o, in.layoutAt(p, ledgers.of(p), o.Seq), in.nth(i), in.wholeDevice(o.LimitBytes))
	}
	f.failed.Sentence = f.Sentence
	return f
}

// requestWords say what was asked, and by whom.
func requestWords(o *schemas.OOM) string {
	text := "request for " + mib(o.RequestedBytes)
	if o.Module != "" {
		text += " by module " + o.Module
	}
	return text
}

// diedOf says of what a run died that is broken down at its peak; empty where it did not run out of memory.
func (in *Input) diedOf() string {
	if in.Report == nil {
		return ""
	}
	for i := range in.Report.OOMs {
		o := &in.Report.OOMs[i]
		if !o.Fatal {
			continue
		}
		at := in.failureMoment(place{o.Rank, o.Device}, i)
		text := fmt.Sprintf("the run died of a %s that failed %s", requestWords(o), when(&at))
		if o.Seq != 0 {
			text += fmt.Sprintf("; this is its peak until then, and %s is that moment", atFailure(in.nth(i)))
		}
		return text
	}
	return ""
}

// nth is which of its device's failures the i-th of the report is, from 1: what --at counts.
func (in *Input) nth(i int) (n int64) {
	o := &in.Report.OOMs[i]
	for _, x := range in.Report.OOMs[:i+1] {
		if x.Rank == o.Rank && x.Device == o.Device {
			n++
		}
	}
	return n
}

// atFailure is the option that names a device's n-th failure.
func atFailure(n int64) string {
	if n == 1 {
		return "--at oom"
	}
	return fmt.Sprintf("--at oom=%d", n)
}

// failureMoment is when the i-th failure of the report happened.
func (in *Input) failureMoment(p place, i int) Moment {
	o := &in.Report.OOMs[i]
	m := in.momentOf(p, o.Seq)
	if o.Phase != "" { // by the mark, which is set before the request's last event
		m.Step, m.Phase = nil, new(o.Phase)
		if o.Step >= 0 {
			m.Step = new(o.Step)
		}
	}
	return m
}

// holders says what was in the way of the device's nth request that failed; whole is whether the limit is all of the
// device.
func (f *Finding) holders(d *DeviceBreakdown, o *schemas.OOM, lay *layout, nth int64, whole bool) {
	held := slices.Clone(d.Categories)
	slices.SortStableFunc(held, func(a, b CategoryBytes) int { return cmp.Compare(b.Bytes, a.Bytes) })
	const most = 4
	var names []string
	var rest int64
	for i, c := range held {
		if c.Bytes == 0 {
			continue
		}
		f.bytes("held as "+c.Category, c.Bytes, fmt.Sprintf("owners.parquet and allocations.parquet: category %s "+
			"after event %d", c.Category, d.At.Event))
		if i < most {
			names = append(names, mib(c.Bytes)+" of "+words(c.Category))
		} else {
			rest += c.Bytes
		}
	}
	if rest > 0 {
		names = append(names, mib(rest)+" of others")
	}
	f.failed.AllocatedBytes = &d.AllocatedBytes
	f.bytes("allocated", d.AllocatedBytes, fmt.Sprintf("allocations.parquet: block_bytes live after event %d",
		d.At.Event))
	if taken := besideTensors(o, d.ReservedBytes); taken > 0 {
		from := fmt.Sprintf("ingest.json: limit_bytes less device_free_bytes, less what events.parquet has reserved "+
			"after event %d", d.At.Event)
		if whole {
			f.bytes("limit taken by contexts, driver and others", taken, from)
		}
		f.bytes("limit left for tensors", o.LimitBytes-taken, from)
	}
	f.Sentence += fmt.Sprintf(". The %s: %s were allocated", limitWords(o, d.ReservedBytes, whole),
		mib(d.AllocatedBytes))
	if len(names) > 0 {
		f.Sentence += " (" + joinWords(names) + ")"
	}
	f.Change = "hold less at that moment: what holds most is named; dpsight analyze breakdown " + atFailure(nth) +
		" --by category,module says where"
	if o.Absorbed() {
		f.Change = "nothing has to change; with more memory, or less held at that moment, the module may take a " +
			"faster algorithm"
	}
	if lay == nil {
		f.Sentence += "."
		return
	}
	from := fmt.Sprintf("events.parquet: segments after event %d, less the blocks in them", d.At.Event)
	f.bytes("reserved", lay.reserved, from)
	f.bytes("cached and free", lay.free(), from)
	f.failed.CachedBytes = new(lay.free())
	f.bytes("largest free piece", lay.largest, from)
	f.Sentence += fmt.Sprintf(", and %s were cached and free, the largest piece of them %s.", mib(lay.free()),
		mib(lay.largest))
	if lay.free() >= o.RequestedBytes {
		f.Sentence += " The cache had as many bytes as were asked for, but not in one piece."
		f.Change = expandable + "; " + f.Change
	}
	// What is left is by the process's own limit, where it has set one, or what others and the context leave of the
	// device.
	if short := o.RequestedBytes - min(o.LimitBytes-lay.reserved, o.DeviceFreeBytes); short > 0 {
		f.bytes("short of", short, "requested less what is free on the device, or below the limit")
		f.Sentence += fmt.Sprintf(" With %s less held or cached it would have been served.", mib(short))
	}
}

// besideTensors is what of a failure's limit the allocator could not have, 0 where that is nothing or not known.
// Torch's limit is all of the device, the CUDA context included, unless the script set a lower one; what "dpsight
// predict" calls memory leaves the context out.
func besideTensors(o *schemas.OOM, reserved *int64) int64 {
	if reserved == nil {
		return 0
	}
	return max(0, o.LimitBytes-o.DeviceFreeBytes-*reserved)
}

// leastWhole is how much of what NVML calls a device's memory torch can have at least, in percent: what the driver
// keeps for itself is between 0.4 (H200) and 3 (T4).
const leastWhole = 97

// wholeDevice is whether a limit is all of a device, and not one that the script has set; false where no device's
// memory is known.
func (in *Input) wholeDevice(limit int64) bool {
	return slices.ContainsFunc(in.Manifest.GPUs, func(g schemas.GPU) bool {
		if in.Manifest.Source == schemas.Predicted { // torch's own figure
			return limit == g.TotalBytes
		}
		return g.TotalBytes > 0 && limit <= g.TotalBytes && atLeast(limit, g.TotalBytes, leastWhole)
	})
}

// limitWords say of a failure's limit how much of it tensors could have. Who took the rest is known only of all of the
// device: of a limit that the script has set others take nothing.
func limitWords(o *schemas.OOM, reserved *int64, whole bool) string {
	text := "limit is " + mib(o.LimitBytes)
	taken := besideTensors(o, reserved)
	switch {
	case whole && reserved == nil:
		text += ", with what the CUDA context and others take of it"
	case whole && taken > 0:
		text += fmt.Sprintf(", of which the CUDA context, the driver and other processes took %s, so that %s were "+
			"left for tensors", mib(taken), mib(o.LimitBytes-taken))
	case taken > 0:
		text += fmt.Sprintf(", of which %s were left for tensors", mib(o.LimitBytes-taken))
	}
	return text
}

// failureAt is the moment of the device's n-th request that failed, from 1.
func (in *Input) failureAt(p place, n int64) (found, error) {
	var seen int64
	if in.Report == nil {
		return found{}, fmt.Errorf("%s has not been ingested: nothing says whether it ran out of memory", p)
	}
	for i := range in.Report.OOMs {
		o := &in.Report.OOMs[i]
		if o.Rank != p.rank || o.Device != p.device {
			continue
		}
		if seen++; seen < n {
			continue
		}
		if o.Seq == 0 {
			return found{}, fmt.Errorf("%s ran out of memory %s, and the events before that are not in the journal", p,
				when(new(in.failureMoment(p, i))))
		}
		note := fmt.Sprintf("%s: a %s failed here; the %s, and %s were free on the device", p, requestWords(o),
			limitWords(o, in.reservedAt(p, o.Seq), in.wholeDevice(o.LimitBytes)), mib(o.DeviceFreeBytes))
		return found{at: in.failureMoment(p, i), allocated: -1, warnings: []string{note}}, nil
	}
	if seen == 0 {
		return found{}, fmt.Errorf("%s did not run out of memory", p)
	}
	return found{}, fmt.Errorf("%s ran out of memory %s, not %d times", p, timesText(int(seen)), n)
}
