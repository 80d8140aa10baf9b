package trend

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/repeats"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// Schema is the version of [Document].
const Schema = "dpsight.trend/1"

// Over says what each point of a trend stands for: a revision or a day.
type Over string

// The values of [Over].
const (
	Revision Over = "revision" // revisions by the date of their commit, or else of their first run
	Date     Over = "date"     // one point for each day, in UTC, and each state of the code on that day
)

// ParseOver reads the value of --over.
func ParseOver(s string) (Over, error) {
	if o := Over(s); o == Revision || o == Date {
		return o, nil
	}
	return "", fmt.Errorf("--over %q is not one of %s, %s", s, Revision, Date)
}

// Document is what "dpsight compare --over revision --format json" prints.
type Document struct {
	Schema      string       `json:"schema"`
	Over        Over         `json:"over"`
	Value       string       `json:"value"` // name of a metric: "peak", "category:gradients"
	Unit        compare.Unit `json:"unit"`
	Experiments []Experiment `json:"experiments"`
	// Unplaced are the runs that belong to no point, since their revision is not known.
	Unplaced []string `json:"unplaced_run_ids"`
	Warnings []string `json:"warnings"` // sentences that report makes of the experiments' remarks
	Twins    []string `json:"-"`        // bare runs whose full runs are compared here
}

// Experiment is the history of the value for one experiment: its points, oldest first, and the jumps between them.
type Experiment struct {
	Label   string         `json:"label"`
	Name    string         `json:"name"`
	Source  string         `json:"source"`
	Profile *string        `json:"profile"`
	Params  map[string]any `json:"params"`
	Points  []Point        `json:"points"`
	Steps   []Step         `json:"steps"`
	// Spread is the largest difference between repeats at one point. Spread is null if no point has repeats, and for
	// times.
	Spread *float64 `json:"spread"`
	// Undecided is true if there are so few times that no rank test could find a jump.
	Undecided bool `json:"undecided"`
	// OtherClock is how many runs are left out because another clock measured their times.
	OtherClock int `json:"other_clock_runs,omitempty"`

	Identity identity.Identity `json:"-"` // identity of the experiment's first run
}

// Point has the values of the runs of one revision, or of one day.
type Point struct {
	Revision  *string    `json:"revision"`  // twelve digits of the revision, and a plus if files were changed since
	Committed *time.Time `json:"committed"` // null if the runs do not record it
	Started   time.Time  `json:"started"`   // start of the point's first run
	RunIDs    []string   `json:"run_ids"`
	// the runs of RunIDs that did not end well: their values do not count
	Failed []compare.FailedRun `json:"failed"`
	N      int                 `json:"n"`     // number of runs that have the value
	Value  *float64            `json:"value"` // the median; for bytes the lower of the two middle values
	Low    *float64            `json:"low"`
	High   *float64            `json:"high"`

	values []float64          // values of the runs, in order
	runs   []*analyze.Summary // runs that have these values
}

// At returns the point's place in time: the date of its commit if known, else the start of its first run.
func (p *Point) At() time.Time {
	if p.Committed != nil {
		return *p.Committed
	}
	return p.Started
}

// middle returns the run that represents the point: one that has the point's value, with a breakdown if possible.
func (p *Point) middle(value compare.Metric) *analyze.Summary {
	best := p.runs[0]
	for _, r := range p.runs {
		if *value.ValueIn(r) == *p.Value && (!best.BrokenDown() || *value.ValueIn(best) != *p.Value) {
			best = r
		}
	}
	return best
}

// Of follows each experiment of some runs over the chosen axis.
func Of(summaries []analyze.Summary, over Over, value compare.Metric) (Document, error) {
	doc := Document{Schema: Schema, Over: over, Value: value.String(), Unit: value.Unit(), Experiments: []Experiment{},
		Unplaced: []string{}, Warnings: []string{}}
	runs, twins, _ := compare.BesideTwins(summaries, value)
	doc.Twins = twins
	slices.SortStableFunc(runs, func(a, b *analyze.Summary) int { return a.Started.Compare(b.Started) })
	var placed []*analyze.Summary
	valued := false
	for _, r := range runs {
		if over == Revision && r.Origin.Revision() == nil {
			doc.Unplaced = append(doc.Unplaced, r.RunID)
			continue
		}
		placed = append(placed, r)
		valued = valued || value.ValueIn(r) != nil
	}
	switch {
	case len(placed) == 0 && len(runs) > 0:
		return doc, errors.New("no run has a revision: a run has one if its script is in a Git repository")
	case !valued:
		return doc, compare.NoValue(placed, value)
	}
	for _, group := range experiments(placed) {
		doc.Experiments = append(doc.Experiments, experiment(group, over, value))
	}
	label(doc.Experiments)
	return doc, nil
}

// experiments groups runs of the same content, whatever their code and versions. Runs on different GPUs belong to
// different experiments, and so do bare and full runs.
func experiments(runs []*analyze.Summary) (groups [][]*analyze.Summary) {
	at, placed := map[string]int{}, analyze.Once(repeats.Placed)
	for _, r := range runs {
		key := fmt.Sprint(placed(r), "\x00", r.Bare(), "\x00", r.Origin.Fact("GPU"))
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// label gives the experiments names that tell them apart.
func label(list []Experiment) {
	ids, started := make([]identity.Identity, len(list)), make([]time.Time, len(list))
	for i := range list {
		ids[i], started[i] = list[i].Identity, list[i].Points[0].Started
		// Values that differ between revisions do not distinguish experiments.
		ids[i].Origin = ids[i].Origin.Without(string(identity.PartRevision), string(identity.PartDpsight),
			string(identity.PartHost))
		ids[i].Status = ""
	}
	for i, text := range identity.Labels(ids, started) {
		list[i].Label = text
	}
}

// experiment makes the history of one experiment from all its runs.
func experiment(runs []*analyze.Summary, over Over, value compare.Metric) Experiment {
	first := runs[0]
	e := Experiment{Name: first.Name, Source: first.Source, Profile: first.Profile, Params: first.Params,
		Points: []Point{}, Steps: []Step{}, Identity: first.Identity}
	by := clockOf(runs, value)
	at := map[string]int{}
	for _, r := range runs {
		key := pointKey(r, over)
		i, ok := at[key]
		if !ok {
			i = len(e.Points)
			at[key] = i
			e.Points = append(e.Points, Point{Revision: r.Origin.Revision(), Started: r.Started, RunIDs: []string{},
				Failed: []compare.FailedRun{}})
		}
		p := &e.Points[i]
		if g := r.Origin.Git; g != nil && g.Committed != nil {
			p.Committed = g.Committed
		}
		p.RunIDs = append(p.RunIDs, r.RunID)
		v := value.ValueIn(r)
		switch {
		case r.Status != schemas.StatusOK:
			p.Failed = append(p.Failed, compare.FailedRun{RunID: r.RunID, Status: r.Status})
		case v != nil && clock(r, value) != by:
			e.OtherClock++
		case v != nil:
			p.values, p.runs = append(p.values, *v), append(p.runs, r)
		}
	}
	if over == Revision {
		slices.SortStableFunc(e.Points, func(a, b Point) int {
			return cmp.Or(a.At().Compare(b.At()), a.Started.Compare(b.Started))
		})
	}
	for i := range e.Points {
		e.Points[i].reduce(value)
	}
	if value.Timed() || value.Unit() == compare.UnitJoules {
		e.timeSteps(value)
	} else {
		e.byteSteps(value)
	}
	return e
}

// pointKey returns a key that is equal for the runs of one point. If files were changed since the commit, the key also
// has the digest of the code, since the revision does not identify it.
func pointKey(r *analyze.Summary, over Over) string {
	revision := ""
	if r := r.Origin.Revision(); r != nil {
		revision = *r
	}
	code := ""
	if d := r.Origin.Digest(); d != nil && (over == Date || r.Origin.Git != nil && r.Origin.Git.Dirty) {
		code = *d
	}
	if over == Date {
		return r.Started.UTC().Format(time.DateOnly) + "\x00" + revision + "\x00" + code
	}
	return revision + "\x00" + code
}

// clock returns the clock that measured a run's time; "" if the value is no time.
func clock(r *analyze.Summary, value compare.Metric) string {
	if !value.Timed() || r.StepMS == nil {
		return ""
	}
	return r.StepMS.Clock
}

// clockOf returns the clock for an experiment's times: the GPU's if any run was timed by it, else the runs' clock.
func clockOf(runs []*analyze.Summary, value compare.Metric) (by string) {
	for _, r := range runs {
		if r.Status != schemas.StatusOK || value.ValueIn(r) == nil {
			continue
		}
		if c := clock(r, value); by == "" || c == timing.ClockGPU {
			by = c
		}
	}
	return by
}

// reduce sets the point's value, the median of its runs, and their range.
func (p *Point) reduce(value compare.Metric) {
	if p.N = len(p.values); p.N == 0 {
		return
	}
	slices.Sort(p.values)
	low, high, m := p.values[0], p.values[p.N-1], timing.Middle(p.values)
	if value.Unit() == compare.UnitBytes {
		m = p.values[(p.N-1)/2]
	}
	p.Value, p.Low, p.High = &m, &low, &high
}
