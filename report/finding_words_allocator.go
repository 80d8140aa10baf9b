package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas/units"
)

const (
	expandable = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, so that segments grow in place and free " +
		"bytes are not split among them"
	smallerWorkspaces = "make workspaces smaller with CUBLAS_WORKSPACE_CONFIG, as in :4096:2:16:8"
)

func cachedWords(w *wording, x findings.CachedFacts) {
	lay := &x.Layout
	w.Title = fmt.Sprintf("%s of %s reserved held nothing", units.MiB(lay.Free()), units.MiB(lay.Reserved))
	from := fmt.Sprintf("events.parquet: segments after event %d, less the blocks of allocations.parquet in them",
		x.Event)
	w.bytes("reserved", lay.Reserved, from)
	w.bytes("free in segments without blocks", lay.Idle, from)
	w.bytes("free between blocks", lay.Gaps, from)
	w.bytes("largest free piece", lay.Largest, from)
	w.peakFigure()
	highest := "highest"
	if w.Of == findings.OfRecordedReserved {
		highest = "the highest recorded"
	}
	w.say("When what torch reserved was %s, %s %s, %s (%s) of it held nothing: %s in segments without any block, "+
		"and %s "+
		"between blocks, which no call of empty_cache gives back.", highest, units.MiB(lay.Reserved), when(w.At),
		units.MiB(lay.Free()), prose.Share(float64(lay.Free()), float64(lay.Reserved)), units.MiB(lay.Idle),
		units.MiB(lay.Gaps))
	w.Change = expandable
	w.Assumption = "at most: reserved would have to follow allocated to the byte, so that the highest of both are equal"
}

func fragmentationWords(w *wording, x findings.FragmentationFacts) {
	title, most := "peak reserved", "at most"
	if w.Of == findings.OfRecordedReserved {
		title, most = "highest recorded reserved", "at the highest recorded moment"
	}
	w.Title = "The cache is split into pieces: " + units.MiB(*w.Bytes) + " were reserved while as much was free"
	from := "events.parquet: segment_alloc and segment_map; allocations.parquet: blocks not yet completely freed"
	w.bytes("reserved again while as much was free", *w.Bytes, from)
	w.count("times", x.Times, from)
	w.bytes("free at the last of them", x.FreeBytes, fmt.Sprintf("the same, before event %d", x.Event))
	w.bytes(title, x.ReservedBytes, "events.parquet: segments")
	often := prose.Times(x.Times) + ","
	if x.Times > 1 {
		often += " the last time"
	}
	w.say("%s (%s) of the %s that torch reserved %s were reserved while the cache held as many free bytes, in pieces "+
		"that were too small or of another stream or pool: %s %s with %s free.", units.MiB(*w.Bytes),
		prose.Share(float64(*w.Bytes), float64(x.ReservedBytes)), units.MiB(x.ReservedBytes), most, often,
		when(w.At), units.MiB(x.FreeBytes))
	w.Change = expandable
	w.Assumption = "at most: every request that found its bytes free in pieces would have been served from them, and " +
		"nothing reserved later for their sake"
}

func slackWords(w *wording) {
	w.Title = "Blocks are larger than what was asked for: " + units.MiB(*w.Bytes)
	w.bytes("slack", *w.Bytes, fmt.Sprintf("allocations.parquet: block_bytes less requested_bytes after event %d",
		w.event()))
	w.peakFigure()
	w.say("%s (%s) of %s were never asked for: requests are rounded up, and a remainder of up to 1 MiB stays with a "+
		"large block.", units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, which splits off remainders from 512 bytes on; " +
		"check roundup_power2_divisions if it is set"
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
	w.say("cuBLAS has workspaces on %d streams: %s of %s belong to %s.", x.Streams, units.MiB(*w.Bytes), w.peak,
		others)
	w.Change = "run matrix products on one stream, or " + smallerWorkspaces
	w.Assumption = "no matrix product runs on another stream; all other allocations stay as they are"
}

func threadWorkspacesWords(w *wording, x findings.ThreadWorkspacesFacts) {
	w.Title = "cuBLAS has a workspace for each thread: " + units.MiB(*w.Bytes) + " more than for one"
	w.bytes("workspaces", x.TotalBytes, w.workspaces())
	w.bytes("of a size that the stream has already", *w.Bytes, w.workspaces())
	w.peakFigure()
	w.say("One stream has %s of workspaces. For one thread, %s would do; the other %s (%s of %s) are there because "+
		"cuBLAS has a handle in each thread, and backward runs in a thread of its own.",
		units.MiB(x.StreamBytes), units.MiB(x.StreamBytes-*w.Bytes), units.MiB(*w.Bytes), w.share(*w.Bytes), w.peak)
	w.Change = "run backward in the calling thread, with torch.autograd.set_multithreading_enabled(False), or " +
		smallerWorkspaces
	w.Assumption = "all threads use the first workspace; all other allocations stay as they are"
}

// workspaces says where their figures come from.
func (w *wording) workspaces() string {
	return fmt.Sprintf("allocations.parquet: stream, requested_bytes; owners.parquet: category workspace after "+
		"event %d",
		w.event())
}
