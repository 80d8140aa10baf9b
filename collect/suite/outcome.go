package suite

import (
	"fmt"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
	"github.com/dpsight/dpsight/schemas/units"
)

// Outcome is the result of running a suite.
type Outcome struct {
	Suite   *store.Suite
	Results []*collect.Result // results of the runs made in this call
	// Runs are the runs that count, from this call or earlier ones, in the order of the plan. Planned is the number of
	// runs that there should be.
	Runs    []store.Run
	Planned int
	// Failures lists the experiments that could not be recorded, and the runs without tables. A manifest records
	// how its run ended.
	Failures []error
	// Interrupted is true if the suite was stopped before its end.
	Interrupted bool
}

// Err returns nil if every experiment was recorded, has tables, and ended well.
func (o *Outcome) Err() error {
	var unwell []string
	for _, r := range o.Runs {
		if r.Manifest.Status != schemas.StatusOK {
			unwell = append(unwell, fmt.Sprintf("%s (%s)", r.Manifest.Name, r.Manifest.Status))
		}
	}
	planned := units.Plural(o.Planned, "experiment", "experiments")
	const most = 8 // most names in a line
	const kept = "dpsight runs lists the recorded runs"
	switch {
	case o.Interrupted:
		return schemas.WithHint(fmt.Errorf("the suite was interrupted after %d of %s", len(o.Runs), planned),
			kept+"; --resume records the others")
	case len(unwell) > 0:
		return schemas.WithHint(fmt.Errorf("%d of %s did not end well: %s", len(unwell), planned,
			schemas.Shortlist(unwell, most)), kept+"; --resume --retry-failed repeats the failed ones")
	case len(o.Failures) > 0 || len(o.Runs) != o.Planned:
		return schemas.WithHint(fmt.Errorf("dpsight could not record or ingest %d of %s",
			len(o.Failures), planned), kept)
	}
	return nil
}
