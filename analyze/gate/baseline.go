package gate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// BaselineOf reduces runs to one entry for each experiment, sorted by name and parameters. The result is the document
// that --write-baseline writes, and a check compares two such documents. Repeats of an experiment are runs of one key
// or, without a suite, of one name, parameters and command. Repeats of an experiment may have run on different
// versions, since a check should show the effect of a new torch or another commit. Measured and predicted runs are
// different experiments, since their figures have no common median, and so are predictions for different devices.
func BaselineOf(runs []analyze.Summary, version string) schemas.Baseline {
	doc := schemas.Baseline{Version: version, Experiments: []schemas.BaselineExperiment{}}
	for _, g := range groupsOf(runs) {
		doc.Experiments = append(doc.Experiments, experimentOf(g))
	}
	slices.SortStableFunc(doc.Experiments, func(a, b schemas.BaselineExperiment) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(identity.ParamsText(a.Params),
			identity.ParamsText(b.Params)),
			strings.Compare(identity.CommandText(a.Command), identity.CommandText(b.Command)),
			strings.Compare(a.Source, b.Source))
	})
	return doc
}

// groupsOf returns the runs of each experiment, in the order of the experiments' first runs.
func groupsOf(runs []analyze.Summary) (groups [][]*analyze.Summary) {
	at, gated := map[string]int{}, gated()
	for i := range runs {
		id := gated(&runs[i])
		g, known := at[id]
		if !known {
			g = len(groups)
			at[id], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], &runs[i])
	}
	return groups
}

// gated returns a function that returns a run's experiment as a string: equal for runs that a check counts as repeats.
func gated() func(s *analyze.Summary) string {
	once := analyze.Once(gatedContent)
	return func(s *analyze.Summary) string {
		if s.Name == "" { // the id distinguishes runs without a name
			return gatedContent(s)
		}
		return once(s)
	}
}

func gatedContent(s *analyze.Summary) string {
	id := s.Key + identity.ToldText(s.Params)
	if s.Key == "" {
		id = s.Title() + "\x00" + identity.ParamsText(s.Params) + "\x00" + identity.CommandText(s.Command)
	}
	id += "\x00" + s.Source
	if p := s.Profile; p != nil {
		id += "\x00" + *p
	}
	return id
}

// LeftOut is how many runs of one name were left out because their experiment has newer runs.
type LeftOut struct {
	Name string
	Runs int
}

// Newest keeps the newest run of each experiment, with its repeats if a suite made it, and reports what it left out. A
// store that is kept from check to check has runs from before and after a change, and so has a suite that was resumed
// after a change. The median over old and new runs would hide a growth.
func Newest(runs []analyze.Summary) (kept []analyze.Summary, left []LeftOut) {
	newest, gated := map[string]*analyze.Summary{}, gated()
	for i := range runs {
		id := gated(&runs[i])
		if n := newest[id]; n == nil || !runs[i].Started.Before(n.Started) {
			newest[id] = &runs[i]
		}
	}
	older := map[string]int{}
	var newer []*analyze.Summary
	for i := range runs {
		r, n := &runs[i], newest[gated(&runs[i])]
		if r == n || r.SuiteID != "" && r.SuiteID == n.SuiteID && r.Origin.Alike(&n.Origin) {
			newer = append(newer, r)
		} else {
			older[r.Title()]++
		}
	}
	kept = make([]analyze.Summary, len(newer))
	for i, r := range newer {
		kept[i] = *r
	}
	for _, name := range identity.SortedKeys(older) {
		left = append(left, LeftOut{name, older[name]})
	}
	return kept, left
}

// experimentOf reduces the repeats of one experiment to its entry in a baseline.
func experimentOf(runs []*analyze.Summary) schemas.BaselineExperiment {
	c := compare.NewCell(runs)
	e := schemas.BaselineExperiment{Key: identity.OrNull(c.Key), Name: c.Title(), Params: c.Params, Command: c.Command,
		Source: c.Source, Profile: c.Profile, Confidence: c.Confidence, Doubts: c.Doubts, Status: schemas.StatusOK,
		Runs: c.Good, RunID: c.RunID,
		Versions: schemas.Versions{Torch: c.FactOrNull("torch"), CUDA: c.FactOrNull("CUDA"),
			Opacus: c.FactOrNull("Opacus"), GPU: c.FactOrNull("GPU"), Driver: c.FactOrNull("driver"),
			Revision: c.Origin.Revision(), Code: c.Origin.Digest(), Agent: c.Origin.Agent()}}
	for _, r := range runs {
		if r.Status != schemas.StatusOK {
			e.Status, e.Reason = r.Status, r.Reason
			break
		}
	}
	for _, r := range runs {
		for k := range r.Remarks {
			if m := &r.Remarks[k]; m.Kind == analyze.RemarkTableGone && !slices.Contains(e.Gone, m.Name) {
				e.Gone = append(e.Gone, m.Name)
			}
		}
	}
	if c.Good == 0 { // the bytes until a run's early end do not show what the experiment needs
		return e
	}
	e.PeakBytes, e.PeakReservedBytes, e.PeakDeviceBytes = c.PeakBytes, c.PeakReservedBytes, c.PeakDeviceBytes
	e.Allocations, e.PeakHighBytes = c.Allocations, c.PeakHighBytes
	if c.BrokenDown() {
		e.Categories = map[schemas.Category]int64{}
		for _, b := range c.Main().Categories {
			if b.Bytes != 0 {
				e.Categories[b.Category] = b.Bytes
			}
		}
		e.Rules = knownRules(c.Rules)
	}
	for i := range c.Phases.Phases {
		m := compare.Metric{Name: compare.MetricPhasePeak, Of: c.Phases.Phases[i].Phase}
		if v := m.ValueIn(&c.Summary); v != nil {
			if e.PhasePeaks == nil {
				e.PhasePeaks = map[string]int64{}
			}
			e.PhasePeaks[m.Of] = int64(*v)
		}
	}
	if t := c.StepMS; t != nil {
		e.StepMS = &schemas.BaselineTime{Median: t.Median, Low: t.Low, High: t.High, Clock: t.Clock}
		if c.Good > 1 {
			for _, r := range runs {
				if r.Status == schemas.StatusOK && r.StepMS != nil && r.StepMS.Clock == t.Clock {
					e.StepMS.Runs = append(e.StepMS.Runs, r.StepMS.Median)
				}
			}
		}
	}
	e.SamplesPerS, e.TokensPerS, e.JoulesPerSample = c.SamplesPerS, c.TokensPerS, c.JoulesPerSample
	return e
}

// knownRules returns rules, or nil if rules points to 0, the unknown version.
func knownRules(rules *int) *int {
	if rules == nil || *rules == 0 {
		return nil
	}
	return rules
}

// A Gap is the part of a baseline's experiment that a check cannot see: all of the experiment if it did not end well
// or has no peak, or else the values that need removed tables.
type Gap struct {
	Label  string
	Status string
	Gone   []string // files of the removed tables; nil if the whole experiment is unknown
}

// Gaps returns the parts of a baseline's experiments that a check cannot see.
func Gaps(b *schemas.Baseline) (gaps []Gap) {
	labels := ExperimentLabels(b.Experiments)
	for i := range b.Experiments {
		if e := &b.Experiments[i]; e.Status != schemas.StatusOK || e.PeakBytes == nil {
			gaps = append(gaps, Gap{Label: labels[i], Status: e.Status})
		} else if len(e.Gone) > 0 {
			gaps = append(gaps, Gap{labels[i], e.Status, e.Gone})
		}
	}
	return gaps
}
