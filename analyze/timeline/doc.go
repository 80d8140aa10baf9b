// Package timeline gives what was allocated over a whole run: as columns that lose no extreme, for a figure, and by
// category at every event of a range, for export.
package timeline
