package report

import (
	"fmt"

	"github.com/dpsight/dpsight/schemas/store"
)

// NewModel returns a model of a report on the selected runs, with its title and notes on the runs that are left out.
// leftOut has further such notes.
func NewModel(sel *store.Selection, leftOut []string) Model {
	m := Model{Title: "dpsight report", Notes: append(sel.Gaps(), leftOut...)}
	if sel.Suite != nil {
		m.Title += ": suite " + sel.Suite.Name
	}
	return m
}

// SupersededNote says that failed runs were left out because they were rerun.
func SupersededNote(runs int) string {
	if runs == 1 {
		return "skipped 1 failed run whose experiment was run again; name its run id to include it"
	}
	return fmt.Sprintf("skipped %d failed runs whose experiments were run again; name a run id to include it", runs)
}

// TrialsNote says that runs were left out because they are trials of a search.
func TrialsNote(runs int) string {
	if runs == 1 {
		return "skipped 1 search trial of dpsight predict --vary; name its run id to include it"
	}
	return fmt.Sprintf("skipped %d search trials of dpsight predict --vary; name a run id to include it", runs)
}
