package join

import (
	"fmt"
	"slices"
	"strings"
)

// workspaceSizes are the sizes, in bytes, of the workspaces that torch gives cuBLAS and cuBLASLt: for cuBLAS 32 MiB on
// Hopper and later and 8.125 MiB on earlier GPUs, for cuBLASLt 1 MiB; and these with the 8 KiB that cuBLAS adds.
// CUBLAS_WORKSPACE_CONFIG may give further sizes: see [Workspaces].
var workspaceSizes = []int64{32 << 20, 32<<20 + 8<<10, 8<<20 + 128<<10, 8<<20 + 136<<10, 4 << 20, 1 << 20}

// ownSizes are the sizes of workspaces that a tensor is very unlikely to have.
var ownSizes = []int64{32<<20 + 8<<10, 8<<20 + 136<<10}

// perCallSizes are the sizes of the workspaces that newer releases of torch allocate for one call and free after it.
var perCallSizes = []int64{32 << 20, 8<<20 + 128<<10}

// Workspaces parses the value of CUBLAS_WORKSPACE_CONFIG (":4096:2:16:8": pairs of KiB and count) and returns the size
// of the workspace in bytes; 0 = the value gives none.
func Workspaces(config string) int64 {
	var total int64
	fields := strings.Split(strings.TrimPrefix(config, ":"), ":")
	for i := 0; i+1 < len(fields); i += 2 {
		var kib, n int64
		if _, err := fmt.Sscan(fields[i], &kib); err != nil || kib < 0 || kib > 1<<30 {
			return 0
		}
		if _, err := fmt.Sscan(fields[i+1], &n); err != nil || n < 0 || n > 1<<16 {
			return 0
		}
		total += kib * n << 10
	}
	return total
}

// workspaceFinder distinguishes workspaces from tensors of the same size.
//
// torch allocates one workspace for each thread and stream when the first matrix product there needs it, and keeps it.
// The first product may run anywhere: in the script's own code, or late, on a stream that the first step does not use.
// A script may also keep a tensor of the same size. So after set-up and the passes of the first step, a kept block of
// the size is a workspace only under two conditions. The block is the only one of its size on its thread and stream.
// And at least one of three signs distinguishes it from a tensor:
//   - no tensor has the block's size by chance;
//   - a survey of all that the script holds did not find the block;
//   - the same module's call made it where the first step made a workspace, just after a block of the same size.
type workspaceFinder struct {
	f        *facts
	sizes    map[int64]bool
	perCall  map[int64]bool // sizes of workspaces that one call takes and frees
	complete bool           // some step is complete
	lastEnd  int64          // last event of the last step
	taken    map[workspaceKey]bool
	sites    map[workspaceSite]bool // sites at which the first step made workspaces
	later    map[workspaceKey][]int // allocations of later steps that may be workspaces, in order
}

// workspaceKey is the thread, the stream and the size for which torch keeps one workspace.
type workspaceKey struct {
	thread uint16
	stream uint64
	size   int64
}

// workspaceSite says where a workspace is made: in the call of which module, and after a block of which size, the
// call's result.
type workspaceSite struct {
	size, before int64
	family       family
	module       uint32
}

// findWorkspaces reports, for each allocation, whether it has no owner so far and is a workspace.
func findWorkspaces(f *facts, tagged lists[owner], m *matches) []bool {
	w := &workspaceFinder{f: f, sizes: map[int64]bool{}, perCall: map[int64]bool{}, taken: map[workspaceKey]bool{},
		sites: map[workspaceSite]bool{}, later: map[workspaceKey][]int{}}
	for _, s := range workspaceSizes {
		w.sizes[s] = true
	}
	for _, s := range perCallSizes {
		w.perCall[s] = true
	}
	if s := f.context.rank.Workspace; s > 0 {
		w.sizes[s], w.perCall[s] = true, true
	}
	if n := len(f.context.rank.Steps.Steps); n > 0 {
		w.complete, w.lastEnd = true, f.marks.seqAt(f.context.rank.Steps.Steps[n-1].EndK)
	}
	w.look()
	out := make([]bool, len(f.allocs))
	for i := range f.allocs {
		a := &f.allocs[i]
		if f.untraced(i) || len(tagged.of(i)) > 0 {
			continue
		}
		if w.perCall[a.Requested] && a.FreeRequestedSeq == a.AllocSeq+1 {
			out[i] = true
		} else if _, matched := m.of(i); w.sizes[a.Requested] && !matched {
			if _, bucket := reducerBucket(f, i); !bucket {
				out[i] = w.claim(i)
			}
		}
	}
	return out
}

// look decides which sizes belong to workspaces of single calls, and collects the blocks of later steps that may be
// workspaces. torch up to 2.14 keeps a workspace for each thread and stream. Newer releases of torch allocate a
// workspace for each call. A recording has workspaces of only one of the two kinds, so if a block of a size stays, the
// size is not one of single calls.
func (w *workspaceFinder) look() {
	for i := range w.f.allocs {
		a := &w.f.allocs[i]
		if !w.sizes[a.Requested] {
			continue
		}
		step := w.f.birthSpan(i).Step
		if a.AllocSeq > 0 && step <= 0 && w.stays(i) {
			delete(w.perCall, a.Requested)
		}
		if !w.f.untraced(i) && a.FreeRequestedSeq == 0 && step > 0 {
			key := w.key(i)
			w.later[key] = append(w.later[key], i)
		}
	}
}

// claim reports whether a block that has the size of a workspace is a workspace, and records its thread and stream. The
// caller must ask about blocks in order of birth.
func (w *workspaceFinder) claim(alloc int) bool {
	key := w.key(alloc)
	if !w.stays(alloc) || w.taken[key] {
		return false
	}
	site, known := w.site(alloc)
	if w.f.birthSpan(alloc).Step > 0 {
		if len(w.later[key]) != 1 || w.later[key][0] != alloc {
			return false
		}
		return known && w.sites[site] || w.isNoTensor(alloc)
	}
	switch w.f.family(alloc) {
	case forwardFamily, backwardFamily, evalFamily:
	default:
		if !w.isNoTensor(alloc) {
			return false
		}
	}
	w.taken[key] = true
	if known {
		w.sites[site] = true
	}
	return true
}

// isNoTensor reports whether an untagged allocation is almost certainly no tensor of the script: tensors do not have
// its size, or a survey found no holder.
func (w *workspaceFinder) isNoTensor(alloc int) bool {
	a := &w.f.allocs[alloc]
	if slices.Contains(ownSizes, a.Requested) {
		return true
	}
	return slices.ContainsFunc(w.f.context.surveys, func(k uint32) bool {
		seq := w.f.marks.seqAt(k)
		return w.f.context.recordingAt(k) && seq > a.AllocSeq && seq < w.f.end(alloc)
	})
}

// stays reports whether a block outlives the last step or, if no step is complete, the recording.
func (w *workspaceFinder) stays(alloc int) bool {
	a := &w.f.allocs[alloc]
	if !w.complete {
		return a.FreeRequestedSeq == 0
	}
	return w.f.end(alloc) > w.lastEnd && w.lastEnd > a.AllocSeq
}

func (w *workspaceFinder) key(alloc int) workspaceKey {
	a := &w.f.allocs[alloc]
	return workspaceKey{w.f.context.thread[w.f.birthMark(alloc)], a.Stream, a.Requested}
}

// site returns where a block was made. site returns false if no block was made just before it in the same call.
func (w *workspaceFinder) site(alloc int) (workspaceSite, bool) {
	if alloc == 0 || w.f.untraced(alloc-1) {
		return workspaceSite{}, false
	}
	before, a := &w.f.allocs[alloc-1], &w.f.allocs[alloc]
	module := w.f.births[alloc].module
	if w.f.births[alloc-1].module != module || before.Stream != a.Stream ||
		w.f.birthSpan(alloc-1).Group != w.f.birthSpan(alloc).Group {
		return workspaceSite{}, false
	}
	return workspaceSite{size: a.Requested, before: before.Requested, family: w.f.family(alloc), module: module}, true
}
