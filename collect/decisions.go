package collect

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

const (
	// decisionsVariable names the reads that the phantom GPU answers the other way, as a list in JSON.
	decisionsVariable = "PHANTOM_DECISIONS"
	// mostDecisions bounds how often a prediction is repeated with another answer. mostInVain bounds how many
	// answers may change nothing, since the script then fails for a reason of its own.
	mostDecisions = 8
	mostInVain    = 2
)

// Deciding is called after each failed run, before the run is repeated with another answer d. Deciding makes the failed
// run's tables. An error of Deciding ends the runs.
type Deciding func(failed *Result, d schemas.Decision) error

// RunDeciding is [Run] for an experiment that may fail because of a value that the phantom GPU does not compute. A
// script with an assert on such a value may fail. If a run fails after a read of an unknown value, RunDeciding repeats
// the run with the other answer to that read. Answers that help are kept in e.Decisions.
func RunDeciding(ctx context.Context, e *Experiment, told Deciding) (*Result, error) {
	tried, inVain := map[string]bool{}, 0
	last := "" // the read whose answer was changed for this run
	for {
		r, err := Run(ctx, *e)
		if r == nil || err != nil || r.Interrupted || r.Manifest.Status != schemas.StatusFailed {
			return r, err
		}
		failure := strings.TrimSuffix(r.Manifest.Reason, suspicion(r.Suspects))
		if last != "" && slices.Contains(r.Suspects, last) && failure == e.Decisions[len(e.Decisions)-1].Error {
			e.Decisions = e.Decisions[:len(e.Decisions)-1]
			inVain++
		}
		next := slices.IndexFunc(r.Suspects, func(s string) bool {
			return !tried[s] && !slices.ContainsFunc(e.Decisions, func(d schemas.Decision) bool { return d.Place == s })
		})
		if next < 0 || len(tried) == mostDecisions || inVain == mostInVain {
			return r, nil
		}
		last = r.Suspects[next]
		tried[last] = true
		d := schemas.Decision{Place: last, Error: failure, RunID: r.Manifest.RunID}
		if err := told(r, d); err != nil {
			return r, err
		}
		e.Decisions = append(slices.Clip(e.Decisions), d)
	}
}

// suspicion returns the end of a failed run's reason if the run may have failed because of an unknown value.
func suspicion(suspects []string) string {
	if len(suspects) == 0 {
		return ""
	}
	return "; " + suspects[0] + schemas.SuspectedRead
}

// suspects returns the unknown reads of the process that failed first: the first that an exception ended, else the
// first that exited with a non-zero status.
func suspects(journals []*spool.Journal) []string {
	var exited []string
	for _, j := range inOrderOfTheirEnds(journals) {
		var asked []string
		if j.Prediction != nil {
			asked = j.Prediction.Suspects
		}
		if j.Exception != nil && !j.Exception.OOM {
			return asked
		}
		if exited == nil {
			exited = asked
		}
	}
	return exited
}

// places are the reads as the phantom GPU takes them.
func places(decisions []schemas.Decision) string {
	names := []string{}
	for _, d := range decisions {
		names = append(names, d.Place)
	}
	text, err := json.Marshal(names)
	if err != nil {
		panic(err) // text is always encoded
	}
	return string(text)
}
