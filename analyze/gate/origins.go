package gate

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// Passed describes the runs of an experiment that were passed over because their origins differ from the runs that
// count.
type Passed struct {
	Label string
	Runs  int
	// Apart lists the parts in which their origins differ from the origin of the runs that count.
	Apart []identity.Apart
}

// OneOrigin keeps only the runs of one origin for each experiment, since figures from two cards or from two states of
// the code have no meaningful median. OneOrigin prefers an origin with the GPU that the experiment's prediction names,
// then an origin with the prediction's code, then the origin of the newest run. OneOrigin reports the runs that it
// passed over.
func OneOrigin(runs []analyze.Summary, predicted []schemas.BaselineExperiment) (kept []analyze.Summary,
	passed []Passed) {
	groups := groupsOf(runs)
	list := make([]schemas.BaselineExperiment, len(groups))
	for i, g := range groups {
		list[i] = experimentOf(g)
	}
	wanted := make([]schemas.Versions, len(groups))
	for i, j := range MatchExperiments(predicted, list, false) {
		wanted[j] = predicted[i].Versions
	}
	labels := ExperimentLabels(list)
	for i, g := range groups {
		origins := byOrigin(g)
		slices.SortStableFunc(origins, func(a, b []*analyze.Summary) int {
			return cmp.Or(cmp.Compare(likeness(b, &wanted[i]), likeness(a, &wanted[i])), b[0].Started.Compare(a[0].Started))
		})
		for _, r := range origins[0] {
			kept = append(kept, *r)
		}
		if p := (Passed{Label: labels[i], Runs: len(g) - len(origins[0])}); p.Runs > 0 {
			for _, other := range origins[1:] {
				for _, apart := range origins[0][0].Origin.Differs(&other[0].Origin) {
					if !slices.Contains(p.Apart, apart) {
						p.Apart = append(p.Apart, apart)
					}
				}
			}
			passed = append(passed, p)
		}
	}
	return kept, passed
}

// byOrigin splits the repeats of an experiment into groups whose known origins do not differ, the newest run of each
// group first.
func byOrigin(runs []*analyze.Summary) (origins [][]*analyze.Summary) {
	newestFirst := slices.SortedStableFunc(slices.Values(runs), func(a, b *analyze.Summary) int {
		return b.Started.Compare(a.Started)
	})
	for _, r := range newestFirst {
		i := slices.IndexFunc(origins, func(o []*analyze.Summary) bool {
			return !slices.ContainsFunc(o, func(p *analyze.Summary) bool { return len(r.Origin.Differs(&p.Origin)) > 0 })
		})
		if i < 0 {
			origins = append(origins, []*analyze.Summary{r})
		} else {
			origins[i] = append(origins[i], r)
		}
	}
	return origins
}

// likeness rates how well runs of one origin suit a prediction: the same GPU counts more than the same code.
func likeness(runs []*analyze.Summary, wanted *schemas.Versions) (n int) {
	same := func(a, b *string) bool { return a != nil && b != nil && *a == *b }
	if same(runs[0].FactOrNull("GPU"), wanted.GPU) {
		n += 2
	}
	if same(runs[0].Origin.Digest(), wanted.Code) {
		n++
	}
	return n
}
