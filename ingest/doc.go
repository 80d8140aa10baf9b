// Package ingest turns recordings into the tables of schemas. Package ingest reads a run's journals ([Run]), or a
// snapshot that torch itself wrote ([Import]). Package ingest composes the packages below it: torchsnap decodes, replay
// finds the blocks, steps finds steps and phases, modelnames tells models of the same names apart, join finds owners.
// Everything that ingest writes can be derived again from the journals or the snapshot. ingest.json is written last and
// says whether the tables beside it are reliable. While a run is being ingested, it has no ingest.json.
package ingest
