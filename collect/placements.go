package collect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// Placements says how one experiment is repeated with the allocator's segments at other addresses.
type Placements struct {
	Runs int // number of runs; the last one has the profile's own address policy
	// Collections says how the last run is repeated.
	Collections Collections
	// Begin is called before each run except the last.
	Begin    func(i, of int, policy string)
	Deciding Deciding
	// End makes the tables of a run and returns what the run adds to the range of reserved bytes.
	End func(*Result) (schemas.Placement, error)
}

// runPlacements makes the runs on a phantom GPU and returns the last one, whose manifest lists the others.
// runPlacements stops at a run that was interrupted or not fully recorded, and returns that run with its error. The
// result is nil if a run was not made, or if its tables or its repetitions failed.
func runPlacements(ctx context.Context, e Experiment, p Placements) (*Result, error) {
	m := e.Machine
	policies := m.Policies(p.Runs)
	for i, policy := range policies {
		x, last := e, i == len(policies)-1
		if !last {
			p.Begin(i, len(policies), policy)
			x.Machine, x.Params = m.placed(policy), maps.Clone(e.Params)
			x.Params["placement"] = policy
		}
		r, recording := RunDeciding(ctx, &x, p.Deciding)
		e.Decisions = x.Decisions
		if r == nil {
			return nil, recording
		}
		if last && recording == nil {
			if err := runCollections(ctx, e, p.Collections, r); err != nil {
				return nil, err
			}
		}
		placement, err := p.End(r)
		if err != nil {
			return nil, err
		}
		if last || recording != nil || r.Interrupted {
			return r, recording
		}
		e.Placements = append(slices.Clip(e.Placements), placement)
	}
	return nil, nil
}

// Predictions are the runs of one experiment on several phantom GPUs.
type Predictions struct {
	Dirs []string // folders of the runs, in the order of the machines
	// Broken has the ids of the runs that were not properly recorded.
	Broken []string
}

// RunOn makes the runs on one machine after another, until a run is interrupted. RunOn calls tell with a machine before
// that machine's run, and with the error of a run that was not properly recorded.
func RunOn(ctx context.Context, e Experiment, machines []*Machine, p Placements,
	tell func(*Machine, error)) (Predictions, error) {
	var made Predictions
	for _, m := range machines {
		tell(m, nil)
		e.Machine = m
		r, err := runPlacements(ctx, e, p)
		if r == nil {
			return made, err
		}
		e.Decisions = r.Manifest.Phantom.Decisions // the next device needs the same decisions
		if err != nil {
			tell(m, err)
			made.Broken = append(made.Broken, r.Manifest.RunID)
		}
		if made.Dirs = append(made.Dirs, r.Dir); r.Interrupted {
			break
		}
	}
	return made, nil
}

// Err returns an error that names the runs that were not recorded properly, or nil.
func (p *Predictions) Err() error {
	if len(p.Broken) == 0 {
		return nil
	}
	return schemas.WithHint(errors.New("the recording failed: "+strings.Join(p.Broken, ", ")),
		"see the run's output in "+p.Dirs[len(p.Dirs)-1])
}
