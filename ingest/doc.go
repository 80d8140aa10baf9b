// Package ingest turns recordings into the tables of schemas. Package ingest reads a run's journals ([Run]), or a
// snapshot that torch itself wrote ([Import]). Package ingest combines its subpackages: torchsnap decodes snapshots,
// replay finds the blocks, steps finds steps and phases, modelnames renames models with equal names, and join finds
// owners. ingest can derive all its files again from the journals or the snapshot. ingest writes ingest.json last,
// which says whether the tables beside it are reliable. While a run is being ingested, it has no ingest.json.
package ingest
