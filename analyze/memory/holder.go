package memory

import (
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// A Holder says what keeps a block: a variable, a graph or another object, as the agent found it.
type Holder struct {
	Kind schemas.HolderKind `json:"kind"`
	Path string             `json:"path"` // path such as "global kept[17]"; empty = only C++ keeps the block
	// ViewBytes is how many of StorageBytes the kept tensors show. ViewBytes equals StorageBytes if the tensors show
	// all of them.
	ViewBytes    int64 `json:"view_bytes"`
	StorageBytes int64 `json:"storage_bytes"`
	// Since is the event after which a search for holders found this holder.
	Since int64 `json:"-"`
}

// rounded returns a request in units of 512 bytes, rounded up as the allocator does. A copy of a view saves nothing if
// it is rounded to the same size as the whole.
func rounded(bytes int64) int64 { return (bytes + 511) / 512 }

// Holders has the holders of the blocks of one device.
type Holders struct {
	by map[int64][]*schemas.Holder // holders by block, in the order in which they were found
}

// NewHolders collects the holders of a device's blocks from the table of holders.
func NewHolders(in *schemas.Tables, p identity.Place) *Holders {
	h := &Holders{map[int64][]*schemas.Holder{}}
	for i := range in.Holders {
		if r := &in.Holders[i]; r.Rank == p.Rank && r.Device == p.Device {
			h.by[r.AllocID] = append(h.by[r.AllocID], r)
		}
	}
	return h
}

// Of returns what keeps a block, or nil if no search found it. The result of the last search counts for every moment: a
// variable that is assigned again releases the block, and the block's real keeper still has it at the last search.
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
