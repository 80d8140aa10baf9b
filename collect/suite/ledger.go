package suite

import (
	"maps"
	"slices"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// A slot is one repetition of an experiment. For each slot, one run counts.
type slot struct {
	key        string
	repetition int
}

func slotOf(r store.Run) slot { return slot{r.Manifest.Suite.Key, r.Manifest.Suite.Repetition} }

// A ledger keeps a suite's document: for each slot, the run that counts and the runs that it supersedes.
type ledger struct {
	suite  *store.Suite
	counts map[slot]store.Run
}

// newLedger returns a ledger for a document without runs.
func newLedger(doc *store.Suite) *ledger { return &ledger{doc, map[slot]store.Run{}} }

// enter adds a run to the document. Runs must be added in the order of time. The run counts unless an earlier run of
// the same slot got further.
func (l *ledger) enter(r store.Run) {
	at := slotOf(r)
	x := l.suite.Experiment(at.key)
	if x == nil {
		return // the experiment was removed from the document by hand
	}
	before, taken := l.counts[at]
	switch {
	case taken && rank(r) < rank(before):
		x.Superseded = append(x.Superseded, r.ID)
		return
	case taken:
		x.Superseded = append(x.Superseded, before.ID)
	}
	l.counts[at] = r
	x.RunIDs = []string{}
	for _, at := range slices.SortedFunc(maps.Keys(l.counts), func(a, b slot) int {
		return a.repetition - b.repetition
	}) {
		if at.key == x.Key {
			x.RunIDs = append(x.RunIDs, l.counts[at].ID)
		}
	}
}

// runs lists the runs that count, in the order of a suite's plan.
func (l *ledger) runs(s *Suite) []store.Run {
	var out []store.Run
	for _, x := range s.Experiments {
		for i := range x.Repeats {
			if r, ok := l.counts[slot{x.Key, i}]; ok {
				out = append(out, r)
			}
		}
	}
	return out
}

// How far a run got, as [rank] returns it.
const (
	// cutShort means that the run was interrupted, or its collector was killed: how it would have ended is unknown.
	cutShort = iota
	failed   // the run ended by itself, but not well
	wentWell
)

func rank(r store.Run) int {
	switch m := r.Manifest; {
	case m.Status == schemas.StatusPartial || m.End == nil:
		return cutShort
	case m.Status == schemas.StatusOK: // the stop signal came just as the run ended
		return wentWell
	case m.Interrupted:
		return cutShort
	}
	return failed
}
