package gate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/schemas"
)

// A held is a threshold resolved to a single metric of a single experiment.
type held struct {
	Threshold
	given string // the category or the phase as the user gave it, perhaps a glob
	place int    // position in the order of all values
}

// expand returns the thresholds for a pair of experiments with these names: one for each metric, in the order in
// which they were given.
func expand(thresholds []Threshold, base, now *schemas.BaselineExperiment, names ...string) []Threshold {
	var all []held
	for i, t := range thresholds {
		if t.Experiment != "" && !slices.ContainsFunc(names, func(s string) bool { return matches(t.Experiment, s) }) {
			continue
		}
		for _, of := range singles(t.Metric, base, now) {
			h := held{t, t.Metric.Of, i}
			h.Metric.Of = of
			all = append(all, h)
		}
	}
	var out []Threshold
	for i := range all {
		if !slices.ContainsFunc(all, func(o held) bool { return o.Metric == all[i].Metric && o.before(&all[i]) }) {
			out = append(out, all[i].Threshold)
		}
	}
	return out
}

// before reports whether a threshold takes precedence over another threshold on the same metric. The command line comes
// before the file. If both come from the same place, a threshold for an experiment's name comes before a threshold for
// a glob, and a glob comes before a threshold for all experiments. A threshold for the name of a category or phase also
// comes before a threshold for a glob. Of otherwise equal thresholds, the one given last wins.
func (h *held) before(o *held) bool {
	file := func(place string) int { return min(1, len(place)) }
	return cmp.Or(cmp.Compare(file(o.Place), file(h.Place)), cmp.Compare(exactness(h.Experiment), exactness(o.Experiment)),
		cmp.Compare(exactness(h.given), exactness(o.given)), cmp.Compare(h.place, o.place)) > 0
}

// exactness returns 2 for a name, 1 for a glob, and 0 for a glob that matches everything.
func exactness(glob string) int {
	switch {
	case glob == "" || glob == compare.EveryCategory:
		return 0
	case isGlob(glob):
		return 1
	}
	return 2
}

// singles returns the categories or phases that a metric's name matches. If categories cannot be compared, singles
// returns the glob itself, so that a row of the check says so. For a bare run, which has no categories, singles returns
// none.
func singles(m compare.Metric, base, now *schemas.BaselineExperiment) (names []string) {
	switch {
	case !isGlob(m.Of):
		return []string{m.Of}
	case m.Name == compare.MetricPhasePeak:
		phases := maps.Clone(base.PhasePeaks)
		if phases == nil {
			phases = map[string]int64{}
		}
		maps.Copy(phases, now.PhasePeaks)
		names = slices.Sorted(maps.Keys(phases))
	case base.Categories == nil && now.Categories == nil:
		return nil
	case base.Categories == nil || now.Categories == nil || now.OtherRules(base):
		return []string{m.Of}
	default:
		for _, c := range schemas.Categories {
			if base.Categories[c] != 0 || now.Categories[c] != 0 {
				names = append(names, c)
			}
		}
	}
	return slices.DeleteFunc(names, func(s string) bool { return !matches(m.Of, s) })
}

// isGlob reports whether a name contains a star or a question mark, and so may match several names.
func isGlob(name string) bool { return strings.ContainsAny(name, "*?") }

// matches reports whether a glob matches a name. A star matches any text, even an empty one, and a question mark
// one letter.
func matches(glob, name string) bool {
	g, n := []rune(glob), []rune(name)
	// star is the place of the last star in the glob. from is the place in the name where matching continues.
	star, from := -1, 0
	i, k := 0, 0
	for k < len(n) {
		switch {
		case i < len(g) && g[i] == '*':
			star, from = i, k
			i++
		case i < len(g) && (g[i] == '?' || g[i] == n[k]):
			i++
			k++
		case star >= 0: // the star matches one letter more
			from++
			i, k = star+1, from
		default:
			return false
		}
	}
	for i < len(g) && g[i] == '*' {
		i++
	}
	return i == len(g)
}
