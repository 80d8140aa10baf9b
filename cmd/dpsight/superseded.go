package main

import (
	"fmt"
	"io"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// withoutSuperseded leaves out of a selection what was made again after it did not end well, and says so.
func withoutSuperseded(errw io.Writer, sel *store.Selection) {
	before := len(sel.Runs)
	sel.Runs = analyze.WithoutSuperseded(sel.Runs, func(r store.Run) *schemas.Manifest { return r.Manifest },
		sel.IsNamed, func() []*schemas.Manifest { return manifests(sel) })
	if sel.Superseded = before - len(sel.Runs); sel.Superseded > 0 {
		fmt.Fprintln(errw, "dpsight: note: "+supersededNote(sel.Superseded))
	}
}

func supersededNote(n int) string {
	if n == 1 {
		return "1 superseded run is left out: it did not end well, and its experiment was run again; named by its id " +
			"it is shown"
	}
	return fmt.Sprintf("%d superseded runs are left out: they did not end well, and their experiments were run "+
		"again; named by its id each is shown", n)
}

// withoutTrials leaves out of a selection what a search tried and the baseline, where there is one, has not, and says
// so.
func withoutTrials(errw io.Writer, sel *store.Selection, baseline *schemas.Baseline) {
	before := len(sel.Runs)
	sel.Runs = analyze.WithoutTrials(sel.Runs, func(r store.Run) *schemas.Manifest { return r.Manifest }, sel.IsNamed,
		baseline)
	if sel.Trials = before - len(sel.Runs); sel.Trials > 0 {
		fmt.Fprintln(errw, "dpsight: note: "+trialsNote(sel.Trials))
	}
}

func trialsNote(n int) string {
	if n == 1 {
		return "1 trial of a search of dpsight predict --vary is left out: it is a value that was tried, and no " +
			"experiment; named by its id it is shown"
	}
	return fmt.Sprintf("%d trials of searches of dpsight predict --vary are left out: they are values that were "+
		"tried, and no experiments; named by its id each is shown", n)
}
