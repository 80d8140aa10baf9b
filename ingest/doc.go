// Package ingest turns what was recorded into the tables of schemas: a run's journals ([Run]), or a snapshot that torch
// itself wrote ([Import]). It composes the packages below it: torchsnap decodes, replay finds the blocks, steps finds
// steps and phases, modelnames tells models of the same names apart, join gives owners. Everything it writes can be
// derived again; ingest.json, written last, says whether the tables beside it can be believed. While a run is being
// ingested it has none.
package ingest
