package join

import (
	"slices"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// holder is the holder of an allocation that one search found.
type holder struct {
	alloc int32
	look  int32 // index of the look in the rank's looks
	seq   int64
	kind  schemas.HolderKind
	path  string
	view  int64 // bytes that the tensors show; 0 = all of the block
}

// needsNoHolder lists the categories that already say what keeps a block.
var needsNoHolder = []categoryIndex{parameters, index(schemas.Buffers), gradients, optimizerState}

// findHolders finds the allocations that the agent's searches for holders name. If an allocation outlives a step, and a
// complete search at the step's end does not find it, only C++ keeps it.
func findHolders(f *facts, owners lists[owner]) (found []holder) {
	looks := f.context.rank.Holders
	if len(looks) == 0 {
		return nil
	}
	index := indexAddresses(f, countHolders(looks), func(yield func(uint64) bool) {
		for i := range looks {
			for k := range looks[i].Blocks {
				if !yield(looks[i].Blocks[k].Address) {
					return
				}
			}
		}
	})
	w, native := newBindingWindow(f), &nativeFinder{facts: f, told: make([]bool, len(f.allocs))}
	for i := range looks {
		look := &looks[i]
		if int(look.K) >= len(f.context.thread) || !f.context.recordingAt(look.K) {
			continue
		}
		seq := f.marks.seqAt(look.K)
		lo := min(w.doneBefore(look.K), seq)
		for k := range look.Blocks {
			b := &look.Blocks[k]
			tag := spool.Tag{K: look.K, Address: b.Address, Bytes: b.Bytes}
			alloc, ok := named(f, index.of(b.Address), &tag, lo, seq)
			if !ok { // several allocations fit the record, and it is unknown which is meant
				for _, candidate := range index.of(b.Address) {
					native.told[candidate] = native.told[candidate] || f.allocs[candidate].AllocSeq <= seq
				}
				continue
			}
			native.told[alloc] = true
			if b.Kind != schemas.HeldByException && keeperIsKnown(owners.of(int(alloc)), seq) {
				continue
			}
			found = append(found, holder{alloc, int32(i), seq, b.Kind, b.Path, b.View})
		}
		if look.Complete && (look.Moment == schemas.HeldAtStep || look.Moment == schemas.HeldAtExit) {
			found = native.appendAt(found, int32(i), seq, owners)
		}
	}
	slices.SortStableFunc(found, func(a, b holder) int { return int(a.alloc) - int(b.alloc) })
	return found
}

// A nativeFinder finds the allocations that are live just after an event and that no search has reported. Callers must
// ask about events in rising order.
type nativeFinder struct {
	facts *facts
	told  []bool  // allocations whose holder a search has found
	next  int     // the first allocation that no search has covered yet
	open  []int32 // allocations before next that a later search may find
}

func (n *nativeFinder) appendAt(found []holder, look int32, seq int64, owners lists[owner]) []holder {
	for ; n.next < len(n.facts.allocs) && n.facts.allocs[n.next].AllocSeq <= seq; n.next++ {
		n.open = append(n.open, int32(n.next))
	}
	n.open = slices.DeleteFunc(n.open, func(alloc int32) bool {
		if n.told[alloc] || n.facts.end(int(alloc)) <= seq {
			return true
		}
		if keeperIsKnown(owners.of(int(alloc)), seq) { // the holder counts until another category owns the allocation
			return false
		}
		found = append(found, holder{alloc, look, seq, schemas.HeldByCpp, "", 0})
		return true
	})
	return found
}

// keeperIsKnown reports whether the category of an allocation just after an event says what keeps the allocation.
func keeperIsKnown(owners []owner, seq int64) bool {
	return slices.ContainsFunc(owners, func(o owner) bool {
		return slices.Contains(needsNoHolder, o.category) && o.begin <= seq && endOf(o.end) > seq
	})
}

func countHolders(looks []spool.HoldersInfo) (n int) {
	for i := range looks {
		n += len(looks[i].Blocks)
	}
	return n
}

// Holders returns the rows of holders.parquet.
func (r *Result) Holders() []schemas.Holder {
	rows := make([]schemas.Holder, 0, len(r.holders))
	for i := range r.holders {
		h, rank := &r.holders[i], r.facts.context.rank
		rows = append(rows, schemas.Holder{RunID: rank.RunID, Rank: rank.Rank, Device: r.facts.device.Device,
			AllocID: int64(h.alloc) + 1, Seq: h.seq, Moment: rank.Holders[h.look].Moment, Kind: h.kind, Path: h.path,
			ViewBytes: h.view})
	}
	return rows
}
