// Package timeline has the allocated bytes over the events of a run: as columns that keep each extreme, for a figure,
// and by category over a range of events, for export.
package timeline
