package findings

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

const (
	workspacePercent = 1        // of the peak
	leastWorkspace   = 32 << 20 // one of cuBLAS on Hopper: of another stream, it is a finding in any run
)

// workspaces looks for those that a run has more than once: torch keeps one for each thread and stream.
func (x *evidence) workspaces() []Finding {
	streams := map[uint64]int64{}
	var first, largest uint64 // of the first block, of the most bytes
	sizes := map[int64]int{}  // of the blocks on one stream
	var total, again int64
	blocks := 0
	place := memory.CategoryPlace(schemas.Workspace)
	live := func(each func(*schemas.Allocation)) {
		for i, a := range x.l.Allocs {
			if !a.LiveAt(x.d.At.Event) {
				continue
			}
			if now, _ := x.l.Owner(i, x.d.At.Event); now == place {
				each(a)
			}
		}
	}
	live(func(a *schemas.Allocation) {
		if blocks++; blocks == 1 {
			first = a.Stream
		}
		streams[a.Stream] += a.RequestedBytes
		total += a.RequestedBytes
	})
	if blocks < 2 {
		return nil
	}
	largest = first
	for s, b := range streams {
		if b > streams[largest] || b == streams[largest] && s < largest {
			largest = s
		}
	}
	live(func(a *schemas.Allocation) {
		if a.Stream == largest {
			if sizes[a.RequestedBytes]++; sizes[a.RequestedBytes] > 1 {
				again += a.RequestedBytes
			}
		}
	})
	var out []Finding
	from := fmt.Sprintf("allocations.parquet: stream, requested_bytes; owners.parquet: category workspace after "+
		"event %d", x.d.At.Event)
	if other := total - streams[largest]; len(streams) > 1 && (other >= leastWorkspace ||
		memory.AtLeast(other, x.d.AllocatedBytes, workspacePercent)) {
		f := x.finding(StreamWorkspaces)
		x.of(&f, other)
		f.bytes("workspaces", total, from)
		f.bytes("on the stream with the most", streams[largest], from)
		f.count("streams", len(streams), from)
		x.peakFigure(&f)
		f.Sentence = fmt.Sprintf("cuBLAS has workspaces on %d streams: %s of %s are those of %s.", len(streams),
			prose.MiB(other), x.peak, otherStreams(len(streams)-1))
		f.Change = "run matrix products on one stream, or make workspaces smaller with CUBLAS_WORKSPACE_CONFIG, as " +
			"in :4096:2:16:8"
		voids := x.held(schemas.Workspace, func(a *schemas.Allocation) bool { return a.Stream != largest })
		x.savesWithout(&f, voids, x.looked, "no matrix product runs on another stream; all other allocations stay as "+
			"they are")
		out = append(out, f)
	}
	if memory.AtLeast(again, x.d.AllocatedBytes, workspacePercent) {
		f := x.finding(ThreadWorkspaces)
		x.of(&f, again)
		f.bytes("workspaces", total, from)
		f.bytes("of a size that the stream has already", again, from)
		x.peakFigure(&f)
		f.Sentence = fmt.Sprintf("One stream has %s of workspaces, of which %s (%s of %s) are of a size that it has "+
			"already: cuBLAS has a handle in each thread, and backward runs in a thread of its own.",
			prose.MiB(streams[largest]), prose.MiB(again), prose.Share(float64(again), float64(x.d.AllocatedBytes)),
			x.peak)
		f.Change = "run backward in the calling thread, with torch.autograd.set_multithreading_enabled(False), or " +
			"make workspaces smaller with CUBLAS_WORKSPACE_CONFIG, as in :4096:2:16:8"
		seen := map[int64]bool{}
		voids := x.held(schemas.Workspace, func(a *schemas.Allocation) bool {
			if a.Stream != largest || !a.LiveAt(x.d.At.Event) {
				return false
			}
			was := seen[a.RequestedBytes]
			seen[a.RequestedBytes] = true
			return was
		})
		x.savesWithout(&f, voids, x.looked, "all threads use the first workspace; all other allocations stay as "+
			"they are")
		out = append(out, f)
	}
	return out
}

func otherStreams(n int) string {
	if n == 1 {
		return "the second stream"
	}
	return fmt.Sprintf("the %d others", n)
}
