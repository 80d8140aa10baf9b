// Package schemas holds every table and document of dpsight that touches disk.
//
// A run is a folder ([Manifest] in run.json, [IngestReport] in ingest.json, a Parquet file for each [Table]). Each
// table has one file in this package: its row type, the unit of every column, its version. Every row carries run_id
// and rank, so a query over many runs needs no join with a manifest.
//
// # Units
//
// Bytes and nanoseconds are int64, everywhere. Times are nanoseconds since the Unix epoch (CLOCK_REALTIME). A value
// of an optional column is null if the fact is absent. A default never stands in for an observation.
//
// # Order
//
// Allocator events are ordered by (rank, device, seq). seq counts one device's events from 1, in the order in which
// the allocator made them under its own lock. 0 means "before recording began". Marks are ordered by (rank, k).
// Clocks give no order: a fifth to a third of neighbouring allocator events share a microsecond.
//
// # Versions
//
// Every file names its table and version ("steps/1"). Reading returns an error that names the file if it holds
// another table or an unknown version, or if a column is absent or has another type. parquet-go alone would fill in
// zeros.
//
// The package imports no other package of dpsight.
package schemas
