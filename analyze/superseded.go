package analyze

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// Supersede marks the listed runs that a newer run among all has superseded. [WithoutSuperseded] leaves out the same
// runs, except runs that the user named.
func (d *RunsDocument) Supersede(all []*schemas.Manifest) {
	by := superseded(all)
	for i := range d.Runs {
		if m := by[d.Runs[i].RunID]; m != nil {
			d.Runs[i].SupersededBy = &m.RunID
		}
	}
}

// WithoutSuperseded leaves out runs that did not end well and were made again later by some run among all. Runs that
// the user named stay. Runs that ended well also stay, even if made again: they are repeats of their experiment, or
// runs from before a change of torch. WithoutSuperseded calls all only if some run that the user did not name ended
// badly.
func WithoutSuperseded[R any](runs []R, manifest func(R) *schemas.Manifest, named func(R) bool,
	all func() []*schemas.Manifest) []R {
	if !slices.ContainsFunc(runs, func(r R) bool { return manifest(r).Status != schemas.StatusOK && !named(r) }) {
		return runs
	}
	by := superseded(all())
	return slices.DeleteFunc(slices.Clone(runs), func(r R) bool { return !named(r) && by[manifest(r).RunID] != nil })
}

// superseded returns, for the id of each run that did not end well and was made again, the run that replaces it. The
// replacement is the newest run of the same experiment. If that run is from the same suite, the replacement is the run
// with the same repetition number: a run that ended well, else the newest one.
func superseded(all []*schemas.Manifest) map[string]*schemas.Manifest {
	failed := map[[2]string]bool{} // keys of experiments with failed runs; usually few
	some := func(m *schemas.Manifest) [2]string {
		if m.Suite != nil && m.Suite.Key != "" {
			return [2]string{"suite", m.Suite.Key}
		}
		return [2]string{"name", m.Name}
	}
	for _, m := range all {
		if m.Status != schemas.StatusOK && m.Status != schemas.StatusRunning {
			failed[some(m)] = true
		}
	}
	if len(failed) == 0 {
		return nil
	}
	newest, slots := map[string]*schemas.Manifest{}, map[slot]*schemas.Manifest{}
	for _, m := range all {
		if !madeAgain(m) || !failed[some(m)] {
			continue
		}
		id := experimentOfManifest(m)
		if n := newest[id]; n == nil || laterThan(m, n) {
			newest[id] = m
		}
		if m.Suite != nil {
			s := slot{m.Suite.ID, m.Suite.Repetition, id}
			if n := slots[s]; n == nil || outranks(m, n) {
				slots[s] = m
			}
		}
	}
	out := map[string]*schemas.Manifest{}
	for _, m := range all {
		switch m.Status {
		case schemas.StatusOK, schemas.StatusRunning: // it is not known yet how the run will end
			continue
		}
		if !madeAgain(m) {
			continue
		}
		id := experimentOfManifest(m)
		by := newest[id]
		if m.Suite != nil && by.Suite != nil && m.Suite.ID == by.Suite.ID {
			by = slots[slot{m.Suite.ID, m.Suite.Repetition, id}]
		}
		if by != m {
			out[m.RunID] = by
		}
	}
	return out
}

// madeAgain reports whether a run can be replaced by another run of the same experiment. Imported files of one name
// need not hold the same experiment, and several recordings of an attached process show different moments.
func madeAgain(m *schemas.Manifest) bool { return m.Source != schemas.Imported && m.Attached == nil }

// slot is a repetition of an experiment in a suite.
type slot struct {
	suite      string
	repetition int
	experiment string
}

func laterThan(a, b *schemas.Manifest) bool {
	return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.RunID, b.RunID)) > 0
}

func outranks(a, b *schemas.Manifest) bool {
	if ok := a.Status == schemas.StatusOK; ok != (b.Status == schemas.StatusOK) {
		return ok
	}
	return laterThan(a, b)
}

// experimentOfManifest returns a key that is equal for a run and the run that replaces it. In a suite the experiment's
// key decides. Outside of a suite the whole command counts: the same script with other arguments is another experiment.
func experimentOfManifest(m *schemas.Manifest) string {
	said := m.Name + "\x00" + identity.ParamsText(m.Params) + "\x00" + identity.CommandText(identity.CommandOf(m))
	if m.Suite != nil && m.Suite.Key != "" {
		said = "suite\x00" + m.Suite.Key + identity.ToldText(m.Params)
	}
	parts := []string{said, m.Source, "", deviceKinds(m)}
	if m.Profile != nil {
		parts[2] = *m.Profile
	}
	if m.Bare {
		parts = append(parts, "bare")
	}
	return strings.Join(parts, "\x00")
}

// deviceKinds returns the kinds of GPUs that a run was measured on, with their memory to the nearest GiB, since
// drivers report it a little differently. A run that fits on a larger card does not replace a run that did not fit on
// a smaller card. deviceKinds returns "" if no GPU is known. For a predicted run it returns the profile and the
// memory that the run was given.
func deviceKinds(m *schemas.Manifest) string {
	var kinds []string
	for _, g := range m.GPUs {
		kinds = append(kinds, g.Name+"\x00"+strconv.FormatInt((g.TotalBytes+1<<29)>>30, 10))
	}
	slices.Sort(kinds)
	return strings.Join(slices.Compact(kinds), "\x00")
}
