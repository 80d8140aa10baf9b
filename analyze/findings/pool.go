package findings

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/repeats"
	"github.com/dpsight/dpsight/schemas"
)

// Experiment pools the findings of the repeats of one experiment, each finding once. Run represents the repeats: the
// first one recorded in full, else the first. A run that did not end well is not pooled.
type Experiment struct {
	Run      *Run
	RunIDs   []string
	Findings []Pooled
}

// Pooled is a finding as the first of the repeats has it. The run that represents all repeats comes before the
// others.
type Pooled struct {
	Finding
	RunID     string
	In        int      // how many of the repeats have the finding
	Low, High *float64 // range of the finding's sizes in these repeats: milliseconds, else bytes; nil without a size
}

// Experiments pools the findings that all repeats share, so that they are not repeated for each run. Runs keep
// their own findings.
func (d *Found) Experiments() []Experiment {
	var out []Experiment
	at := map[string]int{}
	members := map[string][]*Run{}
	for i := range d.Runs {
		r := &d.Runs[i]
		key := cmp.Or(r.experiment, r.RunID)
		k, known := at[key]
		if !known {
			k = len(out)
			at[key] = k
			out = append(out, Experiment{Run: r})
		}
		x := &out[k]
		if x.Run.Bare() && !r.Bare() {
			x.Run = r
		}
		x.RunIDs = append(x.RunIDs, r.RunID)
		members[key] = append(members[key], r)
	}
	for key, k := range at {
		x := &out[k]
		for _, r := range slices.Concat([]*Run{x.Run}, slices.DeleteFunc(members[key],
			func(r *Run) bool { return r == x.Run })) {
			x.add(r)
		}
	}
	return out
}

// add takes the findings of one more run.
func (x *Experiment) add(r *Run) {
	before, counted := len(x.Findings), map[int]bool{}
	for i := range r.Findings {
		f := &r.Findings[i]
		size := f.size()
		k := slices.IndexFunc(x.Findings[:before], func(p Pooled) bool { return p.like(f) })
		if k < 0 {
			x.Findings = append(x.Findings, Pooled{*f, r.RunID, 1, size, size})
			continue
		}
		p := &x.Findings[k]
		if !counted[k] { // a run may have a finding twice: two requests that failed
			counted[k] = true
			p.In++
		}
		if size != nil && (p.Low == nil || *size < *p.Low) {
			p.Low = size
		}
		if size != nil && (p.High == nil || *size > *p.High) {
			p.High = size
		}
	}
}

// like reports whether a finding of another run is the same one.
func (f *Finding) like(o *Finding) bool {
	return f.ID == o.ID && (f.Device == nil) == (o.Device == nil) && (f.Device == nil || *f.Device == *o.Device &&
		*f.Rank == *o.Rank)
}

// size returns the finding's size: milliseconds, else bytes.
func (f *Finding) size() *float64 {
	if f.MS != nil {
		return f.MS
	}
	return compare.Whole(f.Bytes)
}

// repeatsOf returns, by the id of each run that ended well, the runs of its experiment that ended well: their
// findings are pooled. A bare run is not pooled if its experiment's suite did not ask for the run: somebody made it
// to be looked at alone.
func repeatsOf(all []analyze.Summary) map[string][]*analyze.Summary {
	var good []*analyze.Summary
	for i := range all {
		if all[i].Status == schemas.StatusOK {
			good = append(good, &all[i])
		}
	}
	out := map[string][]*analyze.Summary{}
	for _, group := range repeats.Experiments(good) {
		for _, r := range group {
			out[r.RunID] = group
		}
	}
	return out
}
