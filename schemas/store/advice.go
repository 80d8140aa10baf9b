package store

import (
	"errors"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// Errors of this package have a Hint if the user can do something about them.

// A ReadError says that a store's folder cannot be read.
type ReadError struct{ error }

func (e *ReadError) Unwrap() error { return e.error }

// Hint returns advice to name another store.
func (e *ReadError) Hint() string { return "name a folder of runs with --store" }

// Hint returns the names of folders that hold runs, or advice on how to make runs.
func (e *NoRunsError) Hint() string {
	if len(e.Below) > 0 {
		return "a store is the folder that the run folders lie in: " +
			strings.Join(e.Below[:min(len(e.Below), fewRuns)], ", ") + " has runs"
	}
	return "record one, as in dpsight collect python train.py, or name another store with --store"
}

// Hint returns advice on how to name the run that the user probably meant.
func (e *NotFoundError) Hint() string {
	switch {
	case e.Many:
		return "give more of the id"
	case e.File:
		return "dpsight ingest takes files; an analysis takes what it makes of them"
	}
	return "dpsight runs --store " + e.Store + " lists its runs; another store is named by its folder"
}

// Hint returns advice on what to do about a manifest that cannot be read.
func (d Damaged) Hint() string {
	var other *schemas.SchemaError
	if errors.As(d.Err, &other) && other.Newer() {
		return "what a newer dpsight recorded wants that dpsight; --store names another store"
	}
	return "a run is its folder: take it from a copy, or leave it out"
}

// Hint returns the command that makes the tables of a run again from its recording, if that is possible.
func (e *TablesError) Hint() string {
	var damaged *schemas.DamagedError
	if errors.As(e.Err, &damaged) && schemas.Sampled(damaged.File) {
		return damaged.Hint()
	}
	var pending *NotIngestedError
	var running *RunningError
	if errors.As(e.Err, &pending) || errors.As(e.Err, &running) { // the error itself says what to do next
		return ""
	}
	return "dpsight ingest --again " + e.Dir + " makes the tables again from the recording"
}

// Hint returns the command that ingests the runs.
func (e *NoneIngestedError) Hint() string { return "dpsight ingest " + e.Folder }

// Hint returns the command that makes all tables again.
func (e *NoneReadableError) Hint() string {
	return "dpsight ingest --again FOLDER makes the tables again from the recordings"
}

// Hint returns advice on how to name a single run.
func (e *NotOneError) Hint() string { return "name a run by its id, or by its own name" }
