// Package schemas holds every table and document of dpsight that touches disk.
//
// A run is a folder ([Manifest] in run.json, [IngestReport] in ingest.json, a Parquet file a [Table]).
// Each table has one file here: its row type, the unit of every column, its version. Every row carries
// run_id and rank, so that one query over many runs needs no join with a manifest.
//
// # Units
//
// Bytes and nanoseconds are int64, everywhere. Times are nanoseconds since the Unix epoch (CLOCK_REALTIME).
// A column marked optional is null where the fact is absent; a default never stands in for an observation.
//
// # Order
//
// Allocator events are ordered by (rank, device, seq). seq counts one device's events from 1, in the order in which
// the allocator made them under its own lock; 0 stands for "before recording began". Marks are ordered by (rank, k).
// Clocks order nothing: a fifth to a third of neighbouring allocator events share a microsecond.
//
// # Versions
//
// Every file names its table and version ("steps/1"). Reading refuses, by name, a file of another table, of a
// version it does not know, or with a column absent or of another type: parquet-go by itself would fill in zeros.
//
// The package imports no other package of dpsight.
package schemas
