package collect

import (
	"context"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// Placements says how to make one experiment several times, each time with the allocator's segments in other places.
type Placements struct {
	Runs int // how many; the last one has the profile's own policy of addresses
	// Begin is told of each run but the last before it is made.
	Begin func(i, of int, policy string)
	// End makes the tables of a run and gives what it adds to the range of what is reserved.
	End func(*Result) (schemas.Placement, error)
}

// RunPlacements makes the runs on a phantom GPU and gives the last: its manifest knows of the others. A run that was
// interrupted, or not recorded as it should have been, is the last; the error is of that recording. Where the result is
// nil no run can be looked at.
func RunPlacements(ctx context.Context, e Experiment, p Placements) (*Result, error) {
	m := e.Machine
	policies := m.Policies(p.Runs)
	for i, policy := range policies {
		x, last := e, i == len(policies)-1
		if !last {
			p.Begin(i, len(policies), policy)
			x.Machine, x.Params = m.Placed(policy), maps.Clone(e.Params)
			x.Params["placement"] = policy
		}
		r, recording := Run(ctx, x)
		if r == nil {
			return nil, recording
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
