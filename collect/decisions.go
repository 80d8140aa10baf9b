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
	// decisionsVariable is the variable that tells the phantom GPU which reads get the other answer, as a list in JSON.
	decisionsVariable = "PHANTOM_DECISIONS"
	// mostDecisions is the most repetitions of a prediction with another answer. mostInVain is the most answers without
	// effect, after which the script seems to fail for a reason of its own.
	mostDecisions = 8
	mostInVain    = 2
)

// Deciding is called after each failed run, before the run is repeated with another answer d. A Deciding makes the
// failed run's tables. If a Deciding returns an error, there are no further runs.
type Deciding func(failed *Result, d schemas.Decision) error

// RunDeciding is [Run] for an experiment that may fail because of a value that the phantom GPU does not compute. For
// example, a script may check such a value with an assert. If a run fails after a read of an unknown value, RunDeciding
// repeats the run with the other answer to that read. Answers that help are kept in e.Decisions.
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

// suspicion returns a text for the end of a failed run's reason, if the run may have failed because of an unknown
// value.
func suspicion(suspects []string) string {
	if len(suspects) == 0 {
		return ""
	}
	return "; " + suspects[0] + schemas.SuspectedRead
}

// suspects returns the unknown reads of the process that failed first: the first process that an exception ended, or
// else the first that exited with a non-zero status.
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

// places encodes reads in the form that the phantom GPU accepts.
func places(decisions []schemas.Decision) string {
	names := []string{}
	for _, d := range decisions {
		names = append(names, d.Place)
	}
	text, err := json.Marshal(names)
	if err != nil {
		panic(err) // encoding text cannot fail
	}
	return string(text)
}
