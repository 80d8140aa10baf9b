package store

import (
	"fmt"
	"path/filepath"

	"github.com/dpsight/dpsight/schemas"
)

// Pending are the runs of a selection that have no tables although nothing records them any more.
type Pending struct {
	Runs []Run
	Of   int // runs in the selection
}

// Pending finds the runs without tables. recording reports whether a collector is still at work in a run folder.
func (sel *Selection) Pending(recording func(dir string) bool) Pending {
	p := Pending{Of: len(sel.Runs)}
	for _, r := range sel.Runs {
		if !r.Ingested() && !(r.Manifest.Status == schemas.StatusPartial && recording(r.Dir)) {
			p.Runs = append(p.Runs, r)
		}
	}
	return p
}

// Warning says which runs cannot be analysed yet and how to ingest them; it is empty where all can.
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

// Err is an error where not a single run has tables. Where some have, the others are only warned of: an analysis of
// runs without tables would be pages of dashes.
func (p Pending) Err() error {
	switch n := len(p.Runs); {
	case n == 0 || n < p.Of:
		return nil
	case n == 1:
		return &NotIngestedError{RunID: p.Runs[0].ID, Dir: p.Runs[0].Dir}
	default:
		return &NoneIngestedError{Runs: n, Folder: p.folder()}
	}
}

// folder is what to ingest: the run itself, or the store that all of them lie in.
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

// A NoneIngestedError says that several runs were selected and none has tables.
type NoneIngestedError struct {
	Runs   int
	Folder string // what to ingest
}

func (e *NoneIngestedError) Error() string {
	return fmt.Sprintf("none of %d runs has been ingested", e.Runs)
}
