package findings

import (
	"cmp"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/source"
	"github.com/dpsight/dpsight/schemas"
)

const exceptionPercent = 5 // least percentage of the peak that the frames of an exception keep

// keptException looks for blocks that the frames of an exception keep, at the search for holders that found most of
// them. The exception has ended the function, so its local variables are kept for nothing.
func (x *evidence) keptException() []Finding {
	live := func(a *schemas.Allocation, event int64) int64 {
		if h := x.exceptionOf(a); h == nil || h.Since > event || !a.LiveAt(event) {
			return 0
		}
		return a.RequestedBytes
	}
	held, event := int64(0), int64(0)
	tried := map[int64]bool{}
	for _, found := range x.l.Allocs {
		h := x.exceptionOf(found)
		if h == nil || tried[h.Since] {
			continue
		}
		tried[h.Since] = true
		var bytes int64
		for _, a := range x.l.Allocs {
			bytes += live(a, h.Since)
		}
		if bytes > held {
			held, event = bytes, h.Since
		}
	}
	if held == 0 || !memory.AtLeast(held, x.d.AllocatedBytes, exceptionPercent) {
		return nil
	}
	f := x.finding(KeptException)
	f.At = new(memory.MomentOf(x.in, x.p, event))
	x.of(&f, held)
	blocks, frames := 0, map[string]int64{}
	var voids []memory.Void
	x.line(&f, func(_ int, a *schemas.Allocation) int64 {
		bytes := live(a, event)
		if bytes > 0 {
			blocks++
			frames[grouping.FrameOf(x.exceptionOf(a).Path)] += bytes
			voids = append(voids, memory.Void{From: x.failedBefore(a, event), To: cmp.Or(a.FreeRequestedSeq, 1<<62),
				Bytes: a.BlockBytes})
		}
		return bytes
	})
	f.Holder = cmp.Or(f.Holder, mostOf(frames, held))
	f.Caught = source.Files(x.in.Sources).Caught(f.Holder)
	f.Facts = HeldFacts{Blocks: blocks}
	x.savesWithout(&f, voids, []memory.Span{{From: -1, To: 1 << 62}}, AtLeast)
	// If the failed attempt also made the peak, releasing its frames hardly lowers the peak.
	if f.SavesBytes != nil && !memory.AtLeast(*f.SavesBytes, x.d.AllocatedBytes, exceptionPercent) {
		f.SavesBytes, f.Confidence = nil, NotKnown
	}
	return []Finding{f}
}

// failedBefore returns the event from which an exception has kept a block: that of the last failed request while the
// block lived and before the search for holders. Exceptions that are not failed requests leave no event. An exception
// without an event came, at the latest, at the end of the step that made the block.
func (x *evidence) failedBefore(a *schemas.Allocation, event int64) int64 {
	last := event
	if step := x.stepOf(a.AllocSeq); step != nil {
		last = min(last, step.To+1)
	}
	for i := range x.in.Report.OOMs {
		o := &x.in.Report.OOMs[i]
		if o.Rank == x.p.Rank && o.Device == x.p.Device && a.AllocSeq <= o.Seq && o.Seq < event {
			last = o.Seq
		}
	}
	return last
}

// exceptionOf returns the holder of a block if the last search for holders found that the frames of an exception keep
// the block; otherwise nil.
func (x *evidence) exceptionOf(a *schemas.Allocation) *memory.Holder {
	if h := x.holders.Of(a); h != nil && h.Kind == schemas.HeldByException {
		return h
	}
	return nil
}

// byException adds up the wanted bytes of the blocks that the frames of an exception were found to keep.
func (x *evidence) byException(wanted func(a *schemas.Allocation) int64) (bytes int64) {
	for _, a := range x.l.Allocs {
		if x.exceptionOf(a) != nil {
			bytes += wanted(a)
		}
	}
	return bytes
}
