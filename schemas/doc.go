// Package schemas defines the tables and documents that dpsight writes to disk.
//
// A run is a folder ([Manifest] in run.json, [IngestReport] in ingest.json, a Parquet file for each [Table]). A table
// is defined in a file of this package: its row type, the unit of each column, its version. Each row has run_id and
// rank, so a query over many runs needs no join with a manifest.
//
// # Units
//
// Bytes and nanoseconds are int64. Times are nanoseconds since the Unix epoch (CLOCK_REALTIME). A value of an optional
// column is null if it was not observed. A default value does not stand for a missing observation.
//
// # Order
//
// Allocator events are ordered by (rank, device, seq). seq counts one device's events from 1, in the order in which the
// allocator made them under its own lock. 0 means "before recording began". Marks are ordered by (rank, k). Times do
// not order events: a fifth to a third of neighbouring allocator events share a microsecond.
//
// # Versions
//
// A file names its table and version ("steps/1"). Reading returns an error that names the file if it holds another
// table or an unknown version, or if a column is absent or has another type. Without these checks, parquet-go would
// fill absent columns with zeros.
//
// The package imports no other package of dpsight.
package schemas
