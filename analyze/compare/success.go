package compare

import (
	"path"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// SuccessSchema is the version of [SuccessDocument].
const SuccessSchema = "dpsight.success/1"

// SuccessDocument says, by method, how many runs ended well, how much memory and time these took, and why the other
// runs did not end well.
type SuccessDocument struct {
	Schema  string       `json:"schema"`
	Runs    int          `json:"runs"`
	OK      int          `json:"ok"`
	Methods []SuccessRow `json:"methods"` // one row for each method and source, in the order of their first runs
}

// SuccessRow is one method on one kind of device. Measured and predicted runs are separate, since their peaks have no
// common mean. Runs without a parameter "method" are listed by name. The means are over all runs of the row that ended
// well, even if other parameters differ. A SuccessRow is an overview; use a comparison for single experiments.
type SuccessRow struct {
	Method        string    `json:"method"`
	Source        string    `json:"source"`  // measured, predicted or imported
	Profile       *string   `json:"profile"` // device profile of predicted runs
	Runs          int       `json:"runs"`
	Bare          int       `json:"bare"` // number of the Runs that are bare
	OK            int       `json:"ok"`
	SuccessRate   float64   `json:"success_rate"`
	MeanPeakBytes *int64    `json:"mean_peak_bytes"`   // null if no run ended well, or if no run has a peak
	Bounded       int       `json:"bounded,omitempty"` // number of bounded peaks among them: the mean may be higher
	MeanStepMS    *float64  `json:"mean_step_ms"`      // mean of the runs' medians; null for predicted runs
	Failures      []Failure `json:"failures"`
}

// Failure describes a run that did not end well.
type Failure struct {
	RunID     string `json:"run_id"`
	Name      string `json:"name"`
	Status    string `json:"status"`
	Reason    string `json:"reason"`
	Log       string `json:"log"`        // the file with the run's standard error, relative to the store's folder
	PeakBytes *int64 `json:"peak_bytes"` // highest allocated until the run ended
}

// Success tabulates summaries by method.
func Success(runs []analyze.Summary) SuccessDocument {
	doc := SuccessDocument{Schema: SuccessSchema, Runs: len(runs), Methods: []SuccessRow{}}
	type kind struct{ method, source, profile string }
	index := map[kind]int{}
	var peaks [][]int64
	var steps [][]float64
	for i := range runs {
		s := &runs[i]
		method, ok := s.Params["method"].(string)
		if !ok || method == "" {
			method = s.Title()
		}
		k := kind{method: method, source: s.Source}
		if s.Profile != nil {
			k.profile = *s.Profile
		}
		at, known := index[k]
		if !known {
			at = len(doc.Methods)
			index[k] = at
			doc.Methods = append(doc.Methods, SuccessRow{Method: method, Source: s.Source, Profile: s.Profile,
				Failures: []Failure{}})
			peaks, steps = append(peaks, nil), append(steps, nil)
		}
		row := &doc.Methods[at]
		row.Runs++
		if s.Bare() {
			row.Bare++
		}
		if s.Status != schemas.StatusOK {
			row.Failures = append(row.Failures, Failure{RunID: s.RunID, Name: s.Title(), Status: s.Status,
				Reason: s.Reason,
				Log:    path.Join(s.RunID, schemas.StderrFile), PeakBytes: s.PeakBytes})
			continue
		}
		row.OK++
		doc.OK++
		if s.PeakBytes != nil {
			peaks[at] = append(peaks[at], *s.PeakBytes)
			if s.Bounded() {
				row.Bounded++
			}
		}
		if s.StepMS != nil {
			steps[at] = append(steps[at], s.StepMS.Median)
		}
	}
	for i := range doc.Methods {
		row := &doc.Methods[i]
		row.SuccessRate = float64(row.OK) / float64(row.Runs)
		row.MeanPeakBytes, row.MeanStepMS = meanOf(peaks[i]), meanOf(steps[i])
	}
	return doc
}

// Badge says whether the row's runs were predicted or imported, in the form of [identity.Identity.Badge]; it is empty
// for measured runs.
func (r *SuccessRow) Badge() string {
	id := identity.Identity{Source: r.Source, Profile: r.Profile}
	return id.Badge()
}

// meanOf returns the mean, or nil without values. A mean of integers is rounded down: the sum of integers is exact,
// so the mean of equal values is that value.
func meanOf[T int64 | float64](values []T) *T {
	if len(values) == 0 {
		return nil
	}
	var sum T
	for _, v := range values {
		sum += v
	}
	sum /= T(len(values))
	return &sum
}
