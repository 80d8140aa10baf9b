package store

import (
	"fmt"
	"path/filepath"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// Pending has the runs of a selection that have no tables.
type Pending struct {
	Runs []Run // runs that no process records any more
	Of   int   // number of runs in the selection
	// Running lists the runs that have not ended.
	Running []Run
}

// Pending finds the selected runs without tables. Pending lists runs that are still running separately, in Running.
func (sel *Selection) Pending() Pending {
	p := Pending{Of: len(sel.Runs)}
	for _, r := range sel.Runs {
		switch {
		case r.Ingested():
		case r.Manifest.Status == schemas.StatusRunning:
			p.Running = append(p.Running, r)
		default:
			p.Runs = append(p.Runs, r)
		}
	}
	return p
}

// Warning returns a sentence on how many runs must be ingested before they can be analysed, and by which command; it is
// empty if there are none.
func (p Pending) Warning() string {
	switch {
	case len(p.Runs) == 0:
		return ""
	case p.Of == 1:
		return p.Err().Error()
	}
	return fmt.Sprintf("%d of %d runs have not been ingested, so there is nothing to analyse of them: dpsight ingest %s",
		len(p.Runs), p.Of, p.folder())
}

// Note returns a sentence on which runs are still running; it is empty if there are none.
func (p Pending) Note() string {
	switch n := len(p.Running); n {
	case 0:
		return ""
	case 1:
		return p.Running[0].running().Error()
	default:
		return fmt.Sprintf("%d of %d runs are still running: their tables are made when they end", n, p.Of)
	}
}

// Err returns an error if no run has tables, since the analysis would consist of dashes. If some runs have tables, a
// warning about the runs without tables suffices.
func (p Pending) Err() error {
	switch n := len(p.Runs); {
	case len(p.Running) > 0 && len(p.Running) == p.Of:
		return p.Running[0].running()
	case n == 0 || n < p.Of:
		return nil
	case n == 1:
		return &NotIngestedError{RunID: p.Runs[0].ID, Dir: p.Runs[0].Dir}
	default:
		return &NoneIngestedError{Runs: n, Folder: p.folder()}
	}
}

// folder returns the folder to ingest: a run's folder if only one run has no tables, else the store that contains all
// these runs.
func (p Pending) folder() string {
	if len(p.Runs) == 1 {
		return p.Runs[0].Dir
	}
	dir := filepath.Dir(p.Runs[0].Dir)
	for _, r := range p.Runs {
		if filepath.Dir(r.Dir) != dir {
			return "FOLDER"
		}
	}
	return dir
}

// A NoneIngestedError says that several runs were selected and none of these has tables.
type NoneIngestedError struct {
	Runs   int
	Folder string // the folder to ingest
}

func (e *NoneIngestedError) Error() string {
	return "none of " + units.Plural(e.Runs, "run", "runs") + " has been ingested"
}
