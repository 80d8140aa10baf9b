package findings

import (
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const (
	workspacePercent = 1        // least percentage of the peak in workspaces
	leastWorkspace   = 32 << 20 // size of a cuBLAS workspace on Hopper: a second stream's is a finding in any run
)

// StreamWorkspacesFacts are the facts of a [StreamWorkspaces] finding. The finding's bytes are the workspaces of all
// streams except the stream with the most bytes.
type StreamWorkspacesFacts struct {
	TotalBytes, LargestBytes int64 // bytes of all streams, and of the stream with the most
	Streams                  int
}

// ThreadWorkspacesFacts are the facts of a [ThreadWorkspaces] finding. The finding's bytes are the workspaces for which
// the same stream has another workspace of the same size.
type ThreadWorkspacesFacts struct {
	TotalBytes, StreamBytes int64 // bytes of all streams, and of the stream with the most
}

// workspaces reports library workspaces that a run holds more than once, since torch keeps a workspace for each thread
// and stream.
func (x *evidence) workspaces() []Finding {
	streams := map[uint64]int64{}
	var first, largest uint64 // stream of the first block, and stream with the most bytes
	sizes := map[int64]int{}  // number of blocks of each size on one stream
	var total, again int64
	blocks := 0
	place := memory.CategoryPlace(schemas.Workspace)
	live := func(each func(*schemas.Allocation)) {
		for i, a := range x.l.Allocs {
			if !a.LiveAt(x.d.At.Event) {
				continue
			}
			if now, _ := x.l.Category(i, x.d.At.Event); now == place {
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
	repeated := map[int64]bool{} // blocks on that stream, except the first of each size
	live(func(a *schemas.Allocation) {
		if a.Stream == largest {
			if sizes[a.RequestedBytes]++; sizes[a.RequestedBytes] > 1 {
				again += a.RequestedBytes
				repeated[a.AllocID] = true
			}
		}
	})
	var out []Finding
	if other := total - streams[largest]; len(streams) > 1 && (other >= leastWorkspace ||
		memory.AtLeast(other, x.d.AllocatedBytes, workspacePercent)) {
		f := x.finding(StreamWorkspaces)
		x.of(&f, other)
		f.Facts = StreamWorkspacesFacts{TotalBytes: total, LargestBytes: streams[largest], Streams: len(streams)}
		onOthers := func(a *schemas.Allocation) bool { return a.Stream != largest }
		x.line(&f, x.counted(schemas.Workspace).where(onOthers))
		f.Module = nil // the module that calls cuBLAS first is not the cause
		voids := x.held(schemas.Workspace, onOthers)
		x.savesWithout(&f, voids, x.looked, Replayed)
		out = append(out, f)
	}
	if memory.AtLeast(again, x.d.AllocatedBytes, workspacePercent) {
		f := x.finding(ThreadWorkspaces)
		x.of(&f, again)
		f.Facts = ThreadWorkspacesFacts{TotalBytes: total, StreamBytes: streams[largest]}
		byOthers := func(a *schemas.Allocation) bool { return repeated[a.AllocID] }
		x.line(&f, x.counted(schemas.Workspace).where(byOthers))
		f.Module = nil
		voids := x.held(schemas.Workspace, byOthers)
		x.savesWithout(&f, voids, x.looked, Replayed)
		out = append(out, f)
	}
	return out
}
