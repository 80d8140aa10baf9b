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
	N, Of      int // so many of so many repeats
	// Low and High are in bytes. Freed is the difference of two peaks in bytes if both loops freed .grad, and Kept
	// the difference as measured; both are nil if unknown. If Freed is nil, High is an upper bound for what .grad
	// holds.
	Low, High   int64
	Freed, Kept *int64
	Names       []string // of scripts or runs
	Endings     []Ending
	Settings    []Setting
	Throttled   [2]timing.Throttle // of the run and of its baseline
	Held        *HeldByHooks
	Ratios      [2]float64 // lowest and highest
	Rules       [2]int     // versions, of the run and of its baseline; 0 = unknown
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
	RemarkOfRun       RemarkKind = "run"         // Run
	RemarkOfBreakdown RemarkKind = "breakdown"   // Breakdown
	RemarkEnergyLent  RemarkKind = "energy"      // by a bare run of the same experiment
	RemarkPeaksDiffer RemarkKind = "peaks"       // N, Low, High
	RemarkBadRepeats  RemarkKind = "bad repeats" // N, Of, Endings
	RemarkClocks      RemarkKind = "clocks"      // N, Of, What: the clock
	RemarkWallLeftOut RemarkKind = "wall"        // Names: runs with wall times among others with GPU times
	RemarkExperiments RemarkKind = "experiments" // N experiments share one cell; Names says how they differ
	RemarkPooled      RemarkKind = "pooled"      // What: revision or dpsight; Names: of N repeats with the same content
	RemarkCodeUnknown RemarkKind = "code"        // of N of Of repeats
	RemarkCode        RemarkKind = "other code"  // Names: files that differ from the baseline's; Now, Baseline: revisions
	RemarkEndedEarly  RemarkKind = "ended early" // and its figures are not compared
	RemarkOtherWork   RemarkKind = "other work"  // no other run here does the same work
	RemarkIsBaseline  RemarkKind = "is baseline" // no other run has this run as its baseline
	RemarkNoBaseline  RemarkKind = "no baseline" // no vanilla run of its work is here
	RemarkHeldByHooks RemarkKind = "held"        // Held
	// One of the peaks is bounded. Ratios are the bounds of the peaks' ratio, and Low and High the bounds of their
	// difference.
	RemarkBoundedRatio RemarkKind = "bounded"
	RemarkTimes        RemarkKind = "times"      // by other clocks than the baseline's
	RemarkArguments    RemarkKind = "arguments"  // Now, Baseline
	RemarkSource       RemarkKind = "source"     // Now, Baseline
	RemarkBare         RemarkKind = "bare"       // OfBaseline: one of the two is
	RemarkBaseEnded    RemarkKind = "base ended" // Baseline: its status
	RemarkFact         RemarkKind = "fact"       // What, Now, Baseline
	RemarkRules        RemarkKind = "rules"      // Rules: by which the categories of each were made
	RemarkSettings     RemarkKind = "settings"   // What; Settings or, if they cannot be read, Now and Baseline
	RemarkOneMethod    RemarkKind = "one method" // the other run does not say its own
	RemarkNormOnly     RemarkKind = "norms"      // OfBaseline
	RemarkPoisson      RemarkKind = "poisson"    // OfBaseline
	RemarkThrottled    RemarkKind = "throttled"  // Throttled
	RemarkKept         RemarkKind = "kept .grad" // OfBaseline; Freed and Kept, or High
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
