package store

import "github.com/dpsight/dpsight/schemas"

// A Window is a range of events of one device.
type Window struct {
	Rank, Device int32
	From, To     int64 // both events belong to the window; event 0 is the state before the first
}

// on reports whether a row belongs to the window's device.
func (w *Window) on(rank, device int64) bool {
	return rank == int64(w.Rank) && device == int64(w.Device)
}

// live reports whether a block counts just after some event of the window. A block that was never freed has free = 0.
func (w *Window) live(alloc, free int64) bool { return alloc <= w.To && (free == 0 || free > w.From) }

// LoadWithin is [Load], but returns only the blocks that live in the window, and their owners. So the memory that
// LoadWithin takes depends on the window's blocks, not on all blocks of the run.
func LoadWithin(r Run, want schemas.Want, w Window) (*schemas.Tables, error) {
	return load(r, want, &w)
}
