package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// failedWords say what failed because memory was short, and what held the memory.
func failedWords(r *memory.FailedRequest) string {
	o := r.OOM
	ended := "and the script continued"
	switch {
	case o.Fatal:
		ended = "and this ended the run"
	case o.EndUnknown:
		ended = "and it is unknown whether the run continued"
	case o.Absorbed():
		ended = "and torch continued without it: it tries cuDNN's algorithms in turn, and uses the first whose " +
			"workspace fits"
	}
	text := fmt.Sprintf("A %s failed %s, %s", requestWords(o), when(&r.At), ended)
	if r.Requests > 1 {
		text = fmt.Sprintf("%d requests for up to %s failed, the largest %s, %s", r.Requests,
			strings.TrimPrefix(requestWords(o), "request for "), when(&r.At), ended)
	}
	d, lay := r.Breakdown, r.Layout
	if d == nil {
		return text + ". The journal lacks the events around it."
	}
	const most = 4
	var names []string
	var rest int64
	for i, c := range r.Holders() {
		if i < most {
			names = append(names, units.MiB(c.Bytes)+" of "+prose.Words(c.Category))
		} else {
			rest += c.Bytes
		}
	}
	if rest > 0 {
		names = append(names, units.MiB(rest)+" of others")
	}
	text += fmt.Sprintf(". The %s: %s were allocated", limitWords(r), units.MiB(d.AllocatedBytes))
	if len(names) > 0 {
		text += " (" + prose.JoinWords(names) + ")"
	}
	if lay == nil {
		return text + "."
	}
	text += fmt.Sprintf(", and %s were cached and free, the largest piece %s.", units.MiB(lay.Free()),
		units.MiB(lay.Largest))
	if lay.Free() >= o.RequestedBytes {
		text += " The cache had as many bytes as requested, but not in one piece."
	}
	if short := r.ShortOf(); short > 0 {
		text += fmt.Sprintf(" It was %s short.", units.MiB(short))
	}
	return text
}

// requestWords say how many bytes were requested, and by which module or line.
func requestWords(o *schemas.OOM) string {
	text := "request for " + units.MiB(o.RequestedBytes)
	if o.Module != "" {
		text += " by module " + o.Module
	}
	return text
}

// diedWords describe the failed request that ended a run, beside the breakdown of its peak.
func diedWords(r *memory.FailedRequest) string {
	text := fmt.Sprintf("a failed %s ended the run %s", requestWords(r.OOM), when(&r.At))
	if r.OOM.Seq != 0 {
		text += fmt.Sprintf("; the figures are of its peak until then, and %s shows the moment of failure", atFailure(r))
	}
	return text
}

// failedHereWords say which request failed at the moment of a breakdown.
func failedHereWords(device string, r *memory.FailedRequest) string {
	text := fmt.Sprintf("%s: a %s failed here; the %s", device, requestWords(r.OOM), limitWords(r))
	if r.OOM.LimitBytes > 0 {
		text += fmt.Sprintf(", and %s were free on the device", units.MiB(r.OOM.DeviceFreeBytes))
	}
	return text
}

// atFailure returns the option that selects a failed request's moment.
func atFailure(r *memory.FailedRequest) string { return "--at " + memory.At{OOM: &r.Nth}.String() }

// limitWords say how much of the memory limit tensors could use. If the limit is the whole device, limitWords also name
// what used the rest. If the script has set the limit, other processes use nothing of it.
func limitWords(r *memory.FailedRequest) string {
	limit := r.OOM.LimitBytes
	if limit == 0 {
		return "limit is not known, and " + units.MiB(r.OOM.DeviceFreeBytes) + " were free on the device"
	}
	text := "limit is " + units.MiB(limit)
	taken := r.BesideTensors()
	switch {
	case r.Whole && r.ReservedBytes == nil:
		text += ", which includes what the CUDA context and others take"
	case r.Whole && taken > 0:
		text += fmt.Sprintf("; the CUDA context, the driver and other processes took %s, leaving %s for "+
			"tensors", units.MiB(taken), units.MiB(limit-taken))
	case taken > 0:
		text += fmt.Sprintf("; %s were left for tensors", units.MiB(limit-taken))
	}
	return text
}

// tellFailed writes the sentence of each failed request.
func tellFailed(requests []memory.FailedRequest) []memory.FailedRequest {
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Sentence = failedWords(&requests[i])
	}
	return requests
}
