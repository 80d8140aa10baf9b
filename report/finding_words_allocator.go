package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas/units"
)

const (
	expandable = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: segments then grow in place, and free bytes " +
		"are not split among them"
	expandableAlready = " Expandable segments are already on. No other setting of the allocator is known to help."
	smallerWorkspaces = "make workspaces smaller: CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8"
)

func cachedWords(w *wording, x findings.CachedFacts) {
	lay := &x.Layout
	w.Title = fmt.Sprintf("%s of the %s that torch reserved were unused", units.MiB(lay.Free()), units.MiB(lay.Reserved))
	from := fmt.Sprintf("events.parquet: segments after event %d, less the blocks of allocations.parquet in them",
		x.Event)
	w.bytes("reserved", lay.Reserved, from)
	w.bytes("free in segments without blocks", lay.Idle, from)
	w.bytes("free between blocks", lay.Gaps, from)
	w.bytes("largest free piece", lay.Largest, from)
	w.peakFigure()
	highest := "Reserved memory was highest"
	if w.Of == findings.OfRecordedReserved {
		highest = "Reserved memory had the highest recorded value"
	}
	w.say("%s %s: %s. Of it, %s (%s) were unused: %s in segments without any block, and %s between blocks, which "+
		"empty_cache cannot free.", highest, when(w.At), units.MiB(lay.Reserved), units.MiB(lay.Free()),
		prose.Share(float64(lay.Free()), float64(lay.Reserved)), units.MiB(lay.Idle), units.MiB(lay.Gaps))
	if x.Expandable {
		w.say(expandableAlready)
		return
	}
	w.Change = expandable
	w.Assumption = "at most: reserved memory would never exceed the peak allocated"
}

func fragmentationWords(w *wording, x findings.FragmentationFacts) {
	title, most := "peak reserved", "at most"
	if w.Of == findings.OfRecordedReserved {
		title, most = "highest recorded reserved", "at the highest recorded moment"
	}
	w.Title = "The cache is fragmented: torch reserved " + units.MiB(*w.Bytes) + " while as much was free"
	from := "events.parquet: segment_alloc and segment_map; allocations.parquet: blocks not yet completely freed"
	w.bytes("reserved again while as much was free", *w.Bytes, from)
	w.count("times", x.Times, from)
	w.bytes("free at the last of them", x.FreeBytes, fmt.Sprintf("the same, before event %d", x.Event))
	w.bytes(title, x.ReservedBytes, "events.parquet: segments")
	often := prose.Times(x.Times) + ","
	if x.Times > 1 {
		often += " the last time"
	}
	w.say("Torch reserved %s while its cache had as many free bytes. That is %s of the %s that it reserved %s. The free "+
		"pieces were too small, or belonged to another stream or pool. This happened %s %s, with %s free.",
		units.MiB(*w.Bytes), prose.Share(float64(*w.Bytes), float64(x.ReservedBytes)), units.MiB(x.ReservedBytes), most,
		often, when(w.At), units.MiB(x.FreeBytes))
	if x.Expandable {
		w.say(expandableAlready)
		return
	}
	w.Change = expandable
	w.Assumption = "at most: the free pieces would have served all these requests"
}

func slackWords(w *wording, x findings.SlackFacts) {
	w.Title = "Blocks are larger than requested: " + units.MiB(*w.Bytes)
	w.bytes("slack", *w.Bytes, fmt.Sprintf("allocations.parquet: block_bytes less requested_bytes after event %d",
		w.event()))
	w.peakFigure()
	w.say("%s (%s) of %s were never requested: torch rounds requests up, and leaves a remainder of up to 1 MiB in a "+
		"large block.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	const roundup = "remove roundup_power2_divisions from torch's allocator settings"
	switch {
	case x.Expandable && x.RoundsUp:
		w.Change = roundup
	case x.Expandable:
		w.say(expandableAlready)
		return
	default:
		w.Change = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: torch then splits remainders of 512 bytes or " +
			"more off a block"
		if x.RoundsUp {
			w.Change += "; " + roundup
		}
	}
	w.Assumption = "at most: each block is as large as its request"
}

func streamWorkspacesWords(w *wording, x findings.StreamWorkspacesFacts) {
	w.Title = fmt.Sprintf("cuBLAS has workspaces on %d streams: %s more than on one", x.Streams, units.MiB(*w.Bytes))
	w.bytes("workspaces", x.TotalBytes, w.workspaces())
	w.bytes("on the stream with the most", x.LargestBytes, w.workspaces())
	w.count("streams", x.Streams, w.workspaces())
	w.peakFigure()
	others := "the second stream"
	if x.Streams > 2 {
		others = fmt.Sprintf("the %d others", x.Streams-1)
	}
	w.say("cuBLAS has workspaces on %d streams. %s of %s belong to %s.", x.Streams, units.MiB(*w.Bytes), w.peak,
		others)
	w.Change = "run matrix products on one stream, or " + smallerWorkspaces
	w.Assumption = "no matrix product runs on another stream; all other allocations stay as they are"
}

func threadWorkspacesWords(w *wording, x findings.ThreadWorkspacesFacts) {
	w.Title = "cuBLAS has a workspace for each thread: " + units.MiB(*w.Bytes) + " more than for one"
	w.bytes("workspaces", x.TotalBytes, w.workspaces())
	w.bytes("of a size that the stream has already", *w.Bytes, w.workspaces())
	w.peakFigure()
	w.say("One stream has %s of workspaces. One thread would need %s. The other %s (%s of %s) exist because cuBLAS has "+
		"a handle for each thread, and backward runs in a thread of its own.",
		units.MiB(x.StreamBytes), units.MiB(x.StreamBytes-*w.Bytes), units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "run backward in the calling thread (torch.autograd.set_multithreading_enabled(False)), or " +
		smallerWorkspaces
	w.Assumption = "all threads use the first workspace; all other allocations stay as they are"
}

// workspaces names the source of the figures of workspaces.
func (w *wording) workspaces() string {
	return fmt.Sprintf("allocations.parquet: stream, requested_bytes; owners.parquet: category workspace after "+
		"event %d",
		w.event())
}
