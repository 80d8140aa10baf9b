package memory

import (
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// A Holder says who keeps a block, as the agent found it.
type Holder struct {
	Kind schemas.HolderKind `json:"kind"`
	Path string             `json:"path"` // "global kept[17]"; empty = only C++ keeps it
	// ViewBytes is how much of StorageBytes the kept tensors show; ViewBytes equals StorageBytes if they show all.
	ViewBytes    int64 `json:"view_bytes"`
	StorageBytes int64 `json:"storage_bytes"`
	// Since is the event after which a look found the holder.
	Since int64 `json:"-"`
}

// rounded returns a request rounded up by the allocator: a copy of a view that is rounded to as much would save
// nothing.
func rounded(bytes int64) int64 { return (bytes + 511) / 512 }

// Holders are the holders of the blocks of one device.
type Holders struct {
	by map[int64][]*schemas.Holder // by block, in the order in which they were found
}

// NewHolders finds the holders of a device's blocks.
func NewHolders(in *schemas.Tables, p identity.Place) *Holders {
	h := &Holders{map[int64][]*schemas.Holder{}}
	for i := range in.Holders {
		if r := &in.Holders[i]; r.Rank == p.Rank && r.Device == p.Device {
			h.by[r.AllocID] = append(h.by[r.AllocID], r)
		}
	}
	return h
}

// Of returns who keeps a block, or nil if no search found it. The last search counts for every moment. A variable
// that is assigned again releases the block, and the block's real keeper is the one that still has it at the last
// search.
func (h *Holders) Of(a *schemas.Allocation) *Holder {
	rows := h.by[a.AllocID]
	if len(rows) == 0 {
		return nil
	}
	last := rows[len(rows)-1]
	held := &Holder{Kind: last.Kind, Path: last.Path, ViewBytes: a.RequestedBytes, StorageBytes: a.RequestedBytes,
		Since: last.Seq}
	if last.ViewBytes > 0 && rounded(last.ViewBytes) < rounded(a.RequestedBytes) {
		held.ViewBytes = last.ViewBytes
	}
	return held
}
