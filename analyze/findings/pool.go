package findings

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/repeats"
	"github.com/dpsight/dpsight/schemas"
)

// Experiment pools the findings of all repeats of one experiment, so that each finding appears once. Run represents the
// repeats: the first repeat recorded in full, else the first repeat. A run that did not end well is not pooled.
type Experiment struct {
	Run      *Run
	RunIDs   []string
	Findings []Pooled
}

// Pooled is a finding that some of an experiment's repeats have. The figures of a Pooled come from the representing run
// if that has the finding, else from the first repeat that has it.
type Pooled struct {
	Finding
	RunID     string
	In        int      // number of repeats that have the finding
	Low, High *float64 // range of the finding's sizes in these repeats, in ms or bytes; nil without a size
}

// Experiments pools the findings of each experiment's repeats, so that a report shows each finding once. The runs in d
// keep their own findings.
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

// add adds the findings of one more run to the pool.
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
		if !counted[k] { // a run may have a finding twice, for example two requests that failed
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

// like reports whether two findings of different runs are about the same thing.
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

// repeatsOf returns, for the id of each run that ended well, all runs of its experiment that ended well. The findings
// of all runs of one experiment are pooled. A bare run that no suite asked for is not pooled, since somebody made it to
// look at it alone.
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
