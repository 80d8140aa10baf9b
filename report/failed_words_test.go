package report

import (
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// The report of a failed request names the categories that held the memory, and how much was cached, as far as the
// recording shows it.
func TestFailedWords(t *testing.T) {
	oom := schemas.OOM{Seq: 5, RequestedBytes: 300 << 20, LimitBytes: 1 << 30, DeviceFreeBytes: 24 << 20, Module: "head"}
	at := memory.Moment{Step: new(int64(2)), Phase: new(schemas.PhaseForward)}
	held := &memory.DeviceBreakdown{AllocatedBytes: 600 << 20}
	for i, c := range []schemas.Category{schemas.Parameters, schemas.Gradients, schemas.PerSampleGradients,
		schemas.Activations, schemas.Buffers, schemas.Other} {
		held.Categories = append(held.Categories, memory.CategoryBytes{Category: c, Bytes: int64(i) * 40 << 20})
	}
	lay := &memory.Layout{Reserved: 1000 << 20, Idle: 300 << 20, Gaps: 100 << 20, Largest: 200 << 20}
	request := func(change func(*memory.FailedRequest, *schemas.OOM)) *memory.FailedRequest {
		o := oom
		r := &memory.FailedRequest{Requests: 1, At: at, OOM: &o}
		change(r, &o)
		return r
	}
	const asked = "A request for 300.00 MiB by module head failed in forward of step 2, "
	const holders = "600.00 MiB were allocated (200.00 MiB of other, 160.00 MiB of buffers, 120.00 MiB of activations, " +
		"80.00 MiB of per-sample gradients and 40.00 MiB of others)"
	for _, c := range []struct {
		request *memory.FailedRequest
		want    string
	}{
		{request(func(r *memory.FailedRequest, o *schemas.OOM) { o.Fatal = true }), asked +
			"and this ended the run. The journal lacks the events around it."},
		{request(func(r *memory.FailedRequest, o *schemas.OOM) { r.Breakdown = &memory.DeviceBreakdown{} }), asked +
			"and the script continued. The limit is 1,024.00 MiB: 0.00 MiB were allocated."},
		{request(func(r *memory.FailedRequest, o *schemas.OOM) { r.Breakdown, r.Whole = held, true }), asked +
			"and the script continued. The limit is 1,024.00 MiB, which includes what the CUDA context and others " +
			"take: " +
			holders + "."},
		{request(func(r *memory.FailedRequest, o *schemas.OOM) {
			r.Breakdown, r.Layout, r.ReservedBytes = held, lay, &lay.Reserved
		}), asked + "and the script continued. The limit is 1,024.00 MiB: " + holders + ", and 400.00 MiB were " +
			"cached and free, the largest piece 200.00 MiB. The cache had as many bytes as requested, but not in " +
			"one piece. It was 276.00 MiB short."},
		// A trace states neither the limit nor whether the script continued.
		{request(func(r *memory.FailedRequest, o *schemas.OOM) {
			r.Breakdown, r.Layout, o.LimitBytes, o.EndUnknown = held, lay, 0, true
		}), asked + "and it is unknown whether the run continued. The limit is not known, and 24.00 MiB were free " +
			"on the device: " + holders + ", and 400.00 MiB were cached and free, the largest piece 200.00 MiB. The cache " +
			"had as many bytes as requested, but not in one piece."},
		{request(func(r *memory.FailedRequest, o *schemas.OOM) { o.Raised, r.Requests = new(false), 3 }),
			"3 requests for up to 300.00 MiB by module head failed, the largest in forward of step 2, and torch " +
				"continued without it: it tries cuDNN's algorithms in turn, and uses the first whose workspace " +
				"fits. The journal lacks the events around it."},
	} {
		if got := failedWords(c.request); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		doc := tellStudy(&compare.Study{Runs: []analyze.Summary{{Failed: []memory.FailedRequest{*c.request}}}})
		if got := doc.Failed[0].Sentence; got != c.want {
			t.Errorf("of a study: %q", got)
		}
	}
}
