package compare

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// studySchema is the version of [StudyDocument].
const studySchema = "dpsight.report/1"

// Study is a set of runs compared with a baseline. Study has the data that a report shows.
type Study struct {
	Runs   []analyze.Summary
	Labels []string // label of each run: its cell's label, which repeats share
	// Cells are the experiments: runs of the same content are one experiment. Bare twins of experiments are not among
	// Cells.
	Cells    []Cell
	Baseline *Cell // baseline of most cells; nil if there is none to compare with
	// BaselineLabel is the baseline's label. BaselineLabel includes the badge unless all runs share the badge.
	BaselineLabel string
	Overhead      *OverheadDocument // has as many runs as Runs; nil if there is no baseline
	// SeveralBaselines is true if not all cells are compared with the same baseline.
	SeveralBaselines bool
	// Nearest is true if there are several baselines and some cell's baseline differs from the cell in parameters other
	// than those that make a baseline.
	Nearest bool
	// Uncompared says why no run is compared with another if all runs do different work; otherwise it is nil.
	Uncompared    *OtherWork
	Configuration Configuration
	Twins         []string // bare runs that only the table of costs shows
}

// NewStudy compares runs with one baseline, which may be nil.
func NewStudy(runs []analyze.Summary, baseline *analyze.Summary) Study {
	s := newStudy(runs)
	if baseline == nil {
		return s
	}
	// If the baseline run is one of several repeats of an experiment, the cell of all repeats is the baseline's cell.
	base := NewCell([]*analyze.Summary{baseline})
	base.Label = baseline.Title()
	found := &base
	for i := range s.Cells {
		for _, id := range s.Cells[i].RunIDs {
			if id == baseline.RunID {
				found = &s.Cells[i]
			}
		}
	}
	for i := range s.Cells {
		s.Cells[i].Baseline = found
	}
	s.compare(found, nil)
	return s
}

// NewMatchedStudy compares each experiment with the baseline of the same parameters. A baseline's parameters contain
// all of match (a suite's baseline), or its method is vanilla. If no baseline has the same parameters, NewMatchedStudy
// takes the baseline that differs in the fewest conditions, and the comparison names these conditions. A suite's
// baseline applies only to the suite's runs, since their store may also hold other runs. suite is the suite's id, or ""
// if all runs belong to the suite. Without a stated baseline, no run is compared with a run that does other work. Runs
// that all do different work are not compared at all.
func NewMatchedStudy(runs []analyze.Summary, match map[string]any, suite string) Study {
	s := newStudy(runs)
	summaries := make([]analyze.Summary, len(s.Cells))
	for i := range s.Cells {
		summaries[i] = s.Cells[i].Summary
	}
	first := DefaultBaseline(summaries, match)
	if first < 0 {
		return s
	}
	said, baseline := len(match) > 0, match
	asked := func(c *Cell) bool { return said && (suite == "" || c.SuiteID == suite) }
	if !said {
		match = map[string]any{"method": s.Cells[first].Params["method"]}
	}
	differ, compared := (*OtherWork)(nil), false
	for i := range s.Cells {
		c := &s.Cells[i]
		best, bestBare, bestFar := (*Cell)(nil), true, [2]int{1 << 30, 1 << 30}
		var like *Cell // the first cell with the same work, which may be c itself
		for k := range s.Cells {
			b := &s.Cells[k]
			if b.Status != schemas.StatusOK || b.PeakBytes == nil {
				continue
			}
			if other := otherWork(&b.Summary, &c.Summary); other != nil && !(asked(b) && asked(c)) {
				differ = cmp.Or(differ, other)
				continue
			}
			if like == nil {
				like = b
			}
			if !holds(b.Params, match) && k != first {
				continue
			}
			far, bare := distance(c, b, match), b.Bare() && !c.Bare()
			if best == nil || !bare && bestBare || bare == bestBare && (far[0] < bestFar[0] || far[0] == bestFar[0] &&
				far[1] < bestFar[1]) {
				best, bestBare, bestFar = b, bare, far
			}
		}
		c.Baseline = cmp.Or(best, like, c) // c itself if no other run of its work ended well
		if asked(c) {
			c.Baseline = cmp.Or(best, like, &s.Cells[first])
		}
		compared = compared || c.Baseline != c && c.PeakBytes != nil && (best != nil || like != nil)
	}
	if differ != nil && !compared {
		for i := range s.Cells {
			s.Cells[i].Baseline = nil
		}
		s.Uncompared = differ
		return s
	}
	s.compare(&s.Cells[first], baseline)
	return s
}

// alone returns a remark if there are several cells, but this cell is compared only with itself and no other cell is
// compared with it. Otherwise alone returns nil. match has the parameter values of the stated baseline.
func (s *Study) alone(c *Cell, match map[string]any) []Remark {
	if !c.IsBaseline() || len(s.Cells) < 2 || slices.ContainsFunc(s.Cells, func(o Cell) bool {
		return o.RunID != c.RunID && o.Baseline.RunID == c.RunID
	}) {
		return nil
	}
	switch {
	case !slices.ContainsFunc(s.Cells, func(o Cell) bool {
		return o.RunID != c.RunID && otherWork(&o.Summary, &c.Summary) == nil
	}):
		return []Remark{{Kind: RemarkOtherWork}}
	case c.Method() == "vanilla" || holds(c.Params, match):
		return []Remark{{Kind: RemarkIsBaseline}}
	}
	return []Remark{{Kind: RemarkNoBaseline}}
}

// distance returns two counts: the conditions, and the other parameters, in which a cell differs from a baseline.
// distance ignores the parameters in match, which make a cell a baseline.
func distance(c, b *Cell, match map[string]any) (far [2]int) {
	for _, f := range c.RunFacts {
		if _, ok := match[f.What]; ok && f.Param {
			continue
		}
		if theirs := b.RunFact(f.What); theirs != nil && !f.Equals(theirs) {
			if f.Condition {
				far[0]++
			} else {
				far[1]++
			}
		}
	}
	if b.Source != c.Source {
		far[0]++
	}
	far[0] += len(otherOrigin(&b.Summary, &c.Summary))
	return far
}

func newStudy(runs []analyze.Summary) Study {
	s := Study{Runs: runs}
	all := Cells(runs)
	byRun := map[string]string{}
	for i := range all {
		for _, id := range all[i].RunIDs {
			byRun[id] = all[i].Label
		}
	}
	for i := range runs {
		s.Labels = append(s.Labels, byRun[runs[i].RunID])
	}
	s.Cells, s.Twins = withoutTwins(all)
	s.Configuration = configure(s.Cells)
	return s
}

// compare fills in the overheads once each cell has its baseline. main is the baseline that the document names. match
// has the parameter values of the stated baseline.
func (s *Study) compare(main *Cell, match map[string]any) {
	s.Baseline = main
	doc := OverheadDocument{Schema: overheadSchema, Baseline: main.RunID, Runs: []OverheadRun{},
		BaselineWarnings: []string{}, Cells: []overheadCell{}}
	if !slices.ContainsFunc(s.Runs, func(r analyze.Summary) bool { return r.RunID == main.RunID }) {
		doc.BaselineRemarks = main.Remarks
	}
	ofRun := map[string]*Cell{}
	for i := range s.Cells {
		c := &s.Cells[i]
		o := besideBaseline(&c.Baseline.Summary, &c.Summary, c.Remarks)
		o.Remarks = append(o.Remarks, s.alone(c, match)...)
		c.Overhead = &o
		doc.Cells = append(doc.Cells, overheadCell{Label: c.Label, RunIDs: c.RunIDs, PeakLowBytes: c.PeakLow,
			PeakHighBytes: c.PeakHigh, OverheadRun: o})
		s.SeveralBaselines = s.SeveralBaselines || c.Baseline.RunID != main.RunID
		for _, id := range c.RunIDs {
			ofRun[id] = c.Baseline
		}
	}
	for i := range s.Runs {
		base := ofRun[s.Runs[i].RunID]
		if base == nil { // a bare twin, or a cell that is a baseline
			base = main
			for k := range s.Cells {
				if bare := NewCell([]*analyze.Summary{&s.Runs[i]}); bare.experiment() == s.Cells[k].experiment() {
					base = s.Cells[k].Baseline
				}
			}
		}
		doc.Runs = append(doc.Runs, besideBaseline(&base.Summary, &s.Runs[i], RemarksOf(&s.Runs[i])))
	}
	s.Overhead = &doc
	s.BaselineLabel = main.Label
	if badge := StatusBadge(&main.Summary.Identity); badge != "" && badge != s.CommonBadge() {
		s.BaselineLabel += " [" + badge + "]"
	}
	for i := range s.Cells {
		c := &s.Cells[i]
		s.Nearest = s.Nearest || s.SeveralBaselines && (len(c.UnlikeBaseline()) > 0 ||
			(c.Method() == "") != (c.Baseline.Method() == ""))
	}
}

// UnlikeBaseline returns remarks on the conditions in which the cell differs from its baseline.
func (c *Cell) UnlikeBaseline() []Remark {
	if c.Baseline == nil {
		return nil
	}
	return unlike(&c.Baseline.Summary, &c.Summary)
}

// CommonBadge returns the badge of several runs if they all have the same badge and ended well, so that it can be shown
// once. Otherwise CommonBadge returns "", and each run shows its own badge.
func CommonBadge(ids ...*identity.Identity) string {
	if len(ids) < 2 {
		return ""
	}
	badge := StatusBadge(ids[0])
	for _, id := range ids {
		if id.Status != schemas.StatusOK || StatusBadge(id) != badge {
			return ""
		}
	}
	return badge
}

// CommonBadge returns the badge that all cells of the study share, or "".
func (s *Study) CommonBadge() string {
	ids := make([]*identity.Identity, len(s.Cells))
	for i := range s.Cells {
		ids[i] = &s.Cells[i].Identity
	}
	return CommonBadge(ids...)
}

// StatusBadge returns a run's badge, followed by its status if the status is not ok. Callers show it beside every
// figure of the run.
func StatusBadge(id *identity.Identity) string {
	badge := id.Badge()
	if id.Status == schemas.StatusOK {
		return badge
	}
	if badge != "" {
		badge += ", "
	}
	return badge + id.Status
}

// StudyDocument is a report's results.json: it contains all other JSON documents about the same runs.
type StudyDocument struct {
	Schema        string                 `json:"schema"`
	Configuration Configuration          `json:"configuration"`
	Runs          []analyze.RunsRow      `json:"runs"`
	Breakdown     []memory.BreakdownRun  `json:"breakdown"`
	Phases        []analyze.PhasesRun    `json:"phases"`
	Overhead      *OverheadDocument      `json:"overhead"`
	Cost          []analyze.CostRun      `json:"cost"`
	Success       SuccessDocument        `json:"success"`
	Failed        []memory.FailedRequest `json:"failed_requests"`
	// number of failed requests that Failed leaves out; "dpsight findings" lists them all
	FailedMore int                       `json:"failed_requests_left_out"`
	Shared     []memory.SharedActivation `json:"shared_hook_activations"`
	Notes      []string                  `json:"notes"` // sentences that report makes
}

// Document combines the study's documents into one.
func (s *Study) Document() StudyDocument {
	doc := StudyDocument{Schema: studySchema, Configuration: s.Configuration, Runs: analyze.Runs(s.Runs).Runs,
		Breakdown: []memory.BreakdownRun{}, Phases: []analyze.PhasesRun{},
		Overhead: s.Overhead, Cost: []analyze.CostRun{}, Success: Success(s.Runs), Failed: []memory.FailedRequest{},
		Shared: []memory.SharedActivation{}, Notes: []string{}}
	for i := range s.Runs {
		doc.Breakdown = append(doc.Breakdown, s.Runs[i].Breakdown)
		doc.Phases = append(doc.Phases, s.Runs[i].Phases)
		doc.Cost = append(doc.Cost, s.Runs[i].Cost)
		doc.Failed = append(doc.Failed, s.Runs[i].Failed...)
		doc.FailedMore += s.Runs[i].FailedMore
		for k := range s.Runs[i].Breakdown.Devices {
			if sh := s.Runs[i].Breakdown.Devices[k].SharedHookActivations(); sh != nil {
				sh.RunID = s.Runs[i].RunID
				doc.Shared = append(doc.Shared, *sh)
			}
		}
	}
	return doc
}
