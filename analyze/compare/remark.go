package compare

import (
	"reflect"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
)

// A Remark is a reason not to take figures at face value, or not to compare them with a baseline's. The comment beside
// each [RemarkKind] says which fields are set.
type Remark struct {
	Kind RemarkKind
	// Run is a remark about a single run, and Breakdown a remark about a run's breakdown.
	Run       *analyze.Remark
	Breakdown *memory.Remark
	// Now is the run's value, Baseline the baseline's value.
	What, Now, Baseline string
	// OfBaseline is true if the remark is about the baseline and not about the run.
	OfBaseline bool
	N, Of      int // N of the Of repeats
	// Low and High are in bytes. Freed is the difference of two peaks in bytes if both loops freed .grad, and Kept
	// the difference as measured; both are nil if unknown. If Freed is nil, High is an upper bound for what .grad
	// holds.
	Low, High   int64
	Freed, Kept *int64
	Names       []string // names of scripts or runs
	Endings     []Ending
	Settings    []Setting
	Throttled   [2]timing.Throttle // throttling of the run, and of its baseline
	Held        *HeldByHooks
	Ratios      [2]float64 // the lowest and the highest ratio
	Rules       [2]int     // versions of the rules, for the run and its baseline; 0 = unknown
}

// An Ending says how many of an experiment's repeats ended with a status.
type Ending struct {
	Status string
	N      int
}

// A Setting is one key in which two long settings, each a JSON object, differ.
type Setting struct{ Key, Now, Baseline string }

// A RemarkKind is the subject of a remark.
type RemarkKind string

// Remarks on runs and their repeats.
const (
	RemarkOfRun       RemarkKind = "run"         // Run has an [analyze.Remark]
	RemarkOfBreakdown RemarkKind = "breakdown"   // Breakdown has a [memory.Remark]
	RemarkEnergyLent  RemarkKind = "energy"      // a bare run of the same experiment lent its energy
	RemarkPeaksDiffer RemarkKind = "peaks"       // peaks of the N repeats lie between Low and High
	RemarkBadRepeats  RemarkKind = "bad repeats" // N of Of repeats ended badly, as Endings tells
	RemarkClocks      RemarkKind = "clocks"      // N of Of repeats have times by the clock What
	RemarkWallLeftOut RemarkKind = "wall"        // Names: runs whose wall times are left out, beside runs with GPU times
	RemarkExperiments RemarkKind = "experiments" // N experiments share one cell; Names tells how they differ
	RemarkPooled      RemarkKind = "pooled"      // What: revision or dpsight; Names: of N repeats with equal content
	RemarkCodeUnknown RemarkKind = "code"        // the code of N of Of repeats is unknown
	RemarkCode        RemarkKind = "other code"  // Names: files that differ from the baseline's; Now, Baseline: revisions
	RemarkEndedEarly  RemarkKind = "ended early" // the run ended early, and its figures are not compared
	RemarkOtherWork   RemarkKind = "other work"  // no other run here does the same work
	RemarkIsBaseline  RemarkKind = "is baseline" // no other run has this run as its baseline
	RemarkNoBaseline  RemarkKind = "no baseline" // there is no vanilla run of the same work
	RemarkHeldByHooks RemarkKind = "held"        // Held: what DP hooks hold
	// One of the peaks is bounded. Ratios are the bounds of the peaks' ratio, and Low and High the bounds of their
	// difference.
	RemarkBoundedRatio RemarkKind = "bounded"
	RemarkTimes        RemarkKind = "times"      // the run's times come from another clock than the baseline's
	RemarkArguments    RemarkKind = "arguments"  // Now, Baseline: the arguments that differ
	RemarkSource       RemarkKind = "source"     // Now, Baseline: the sources of the two
	RemarkBare         RemarkKind = "bare"       // one run is bare; with OfBaseline the baseline is
	RemarkBaseEnded    RemarkKind = "base ended" // Baseline: the baseline's status
	RemarkFact         RemarkKind = "fact"       // What: a fact that has the value Now here and Baseline there
	RemarkRules        RemarkKind = "rules"      // Rules: the versions that made the categories of the two
	RemarkSettings     RemarkKind = "settings"   // What: settings that differ; Settings or else Now and Baseline
	RemarkOneMethod    RemarkKind = "one method" // only one of the two runs names its method
	RemarkNormOnly     RemarkKind = "norms"      // only norms are private; with OfBaseline in the baseline
	RemarkPoisson      RemarkKind = "poisson"    // batches are drawn by Poisson sampling; with OfBaseline in the baseline
	RemarkThrottled    RemarkKind = "throttled"  // Throttled: the GPU was slowed down
	RemarkKept         RemarkKind = "kept .grad" // a run keeps .grad (OfBaseline: the baseline); Freed and Kept, or High
)

// A Said is a remark with the place that it is about: the values of a row and a column, or a label.
type Said struct {
	Remark
	Place []string
}

// RemarksOf returns the remarks about a single run.
func RemarksOf(s *analyze.Summary) (out []Remark) {
	for i := range s.Remarks {
		out = append(out, Remark{Kind: RemarkOfRun, Run: &s.Remarks[i]})
	}
	if s.EnergyLent {
		out = append(out, Remark{Kind: RemarkEnergyLent})
	}
	return out
}

// mergeRemarks returns the remarks on all the runs, equal ones only once.
func mergeRemarks(runs []*analyze.Summary) (out []Remark) {
	for _, r := range runs {
		for _, m := range RemarksOf(r) {
			if !slices.ContainsFunc(out, func(o Remark) bool { return reflect.DeepEqual(o, m) }) {
				out = append(out, m)
			}
		}
	}
	return out
}
