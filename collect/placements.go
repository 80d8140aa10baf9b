package collect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// Placements says how to make one experiment several times, each time with the allocator's segments in other places.
type Placements struct {
	Runs int // how many; the last one has the profile's own policy of addresses
	// Collections are made of the last run.
	Collections Collections
	// Begin is called before each run except the last.
	Begin    func(i, of int, policy string)
	Deciding Deciding
	// End makes the tables of a run and returns what it adds to the range of reserved.
	End func(*Result) (schemas.Placement, error)
}

// runPlacements makes the runs on a phantom GPU and returns the last, whose manifest lists the others. runPlacements
// stops at a run that was interrupted or not fully recorded, and returns that run and its error. The result is nil if
// no run can be looked at.
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
	// Broken are the ids of the runs that were not recorded as they should have been.
	Broken []string
}

// RunOn makes the runs on each machine, until it is interrupted. RunOn calls back with a machine before its run, and
// with the error of a run that was not recorded properly.
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
	return schemas.WithHint(errors.New("the run was not recorded as it should have been: "+strings.Join(p.Broken, ", ")),
		"its output is kept in "+p.Dirs[len(p.Dirs)-1])
}
