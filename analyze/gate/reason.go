package gate

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/schemas"
)

// A Reason says why two values were not compared, or why an exceeded threshold does not count.
type Reason struct {
	Why        Why
	OfBaseline bool    // the baseline lacks the value; if false, the run does
	Source     string  // source of the side that lacks the value, for [NotMeasured]
	Table      string  // file that this side lacks, for [NotKept]
	P          float64 // p-value of the rank test, for [NotSignificant]
	Runs       [2]int  // numbers of runs, here and in the baseline, for [NotSignificant]
	Rules      [2]int  // versions of the rules, here and in the baseline, for [NotOneRules]; 0 = unknown
}

// Why is the kind of a [Reason].
type Why string

// First come reasons that one side lacks something, then reasons that the two sides differ in something.
const (
	NotMeasured   Why = "not measured"
	NotBrokenDown Why = "not broken-down"
	NotAPhase     Why = "no phase" // there is no phase of that name
	NotKnown      Why = "not known"
	NotKept       Why = "not kept" // somebody removed the table that the value needs
	NotOneClock   Why = "other clocks"
	NotOneRules   Why = "other rules" // different rules made the categories
	NotExact      Why = "not exact"   // the value is only known within bounds, and the threshold lies between them
	NotWellInBoth Why = "not well"    // the experiment ended well on neither side
	NotInBoth     Why = "not there"
	// NotSignificant: the times of several runs exceed the threshold, but a rank test finds no difference from the
	// baseline's times.
	NotSignificant Why = "not significant"
)

// incomparable returns why two values cannot be compared, and whether that fails the check. A value of memory that the
// baseline has must also be known for the run, by the same rules. A table that the value needs must exist. Without the
// table, a check would pass without having seen the value.
func incomparable(base, now *schemas.BaselineExperiment, m compare.Metric, before, after *float64) (reason *Reason,
	fault bool) {
	memory := m.Name == compare.MetricPeak || m.Name == compare.MetricReserved || m.Name == compare.MetricCategory ||
		m.Name == compare.MetricPhasePeak
	lacks := NotKnown
	switch m.Name {
	case compare.MetricCategory:
		lacks = NotBrokenDown
	case compare.MetricPhasePeak:
		lacks = NotAPhase
	}
	switch {
	case !memory && now.Source != schemas.Measured && after == nil:
		return &Reason{Why: NotMeasured, Source: now.Source}, false
	case !memory && base.Source != schemas.Measured && before == nil:
		return &Reason{Why: NotMeasured, OfBaseline: true, Source: base.Source}, false
	case goneTable(m, base) != "":
		return &Reason{Why: NotKept, OfBaseline: true, Table: goneTable(m, base)}, true
	case goneTable(m, now) != "":
		return &Reason{Why: NotKept, Table: goneTable(m, now)}, true
	case m.Name == compare.MetricCategory && now.OtherRules(base):
		return &Reason{Why: NotOneRules, Rules: [2]int{now.RulesVersion(), base.RulesVersion()}}, true
	case before == nil:
		return &Reason{Why: lacks, OfBaseline: true}, false
	case after == nil:
		return &Reason{Why: lacks}, lacks != NotAPhase && (memory || m.Name == compare.MetricTime)
	case m.Timed() && base.StepMS != nil && now.StepMS != nil && base.StepMS.Clock != now.StepMS.Clock:
		return &Reason{Why: NotOneClock}, false
	}
	return nil, false
}

// goneTable returns the file of the removed table that a metric needs, or "" if no table that it needs was removed.
func goneTable(m compare.Metric, e *schemas.BaselineExperiment) string {
	table := ""
	switch m.Name {
	case compare.MetricTime, compare.MetricSamples, compare.MetricTokens, compare.MetricEnergy:
		table = schemas.Steps.File()
	case compare.MetricPhasePeak, compare.MetricPhase:
		table = schemas.Phases.File()
	}
	if !slices.Contains(e.Gone, table) {
		return ""
	}
	return table
}
