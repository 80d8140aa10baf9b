package report

import (
	"fmt"

	"github.com/dpsight/dpsight/schemas/store"
)

// NewModel begins the report of a selection: its title, and notes on what it leaves out. leftOut says which runs
// were removed.
func NewModel(sel *store.Selection, leftOut []string) Model {
	m := Model{Title: "dpsight report", Notes: append(sel.Gaps(), leftOut...)}
	if sel.Suite != nil {
		m.Title += ": suite " + sel.Suite.Name
	}
	return m
}

// SupersededNote says that runs were left out because they were made again.
func SupersededNote(runs int) string {
	if runs == 1 {
		return "1 superseded run is left out: it did not end well, and its experiment was run again; " +
			"named by its id it is shown"
	}
	return fmt.Sprintf("%d superseded runs are left out: they did not end well, and their experiments were run again; "+
		"named by its id each is shown", runs)
}

// TrialsNote says that runs were left out because a search tried them.
func TrialsNote(runs int) string {
	if runs == 1 {
		return "1 trial of a search of dpsight predict --vary is left out: it is a value that was tried, and no " +
			"experiment; named by its id it is shown"
	}
	return fmt.Sprintf("%d trials of searches of dpsight predict --vary are left out: they are values that were tried, "+
		"and no experiments; named by its id each is shown", runs)
}
