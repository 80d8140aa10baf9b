package identity

import (
	"maps"
	"slices"
)

// A ByRules lists the runs whose categories were made by the same version of the rules.
type ByRules struct {
	Rules int   // version of the rules; 0 = unknown
	Runs  []int // indexes of the runs with these rules
}

// RulesApart groups runs by the rules that made their categories, the oldest version first. RulesApart returns nil if
// all runs that have categories share one version.
func RulesApart(ids []*Identity) []ByRules {
	by := map[int][]int{}
	for i, id := range ids {
		if id.Rules != nil {
			by[*id.Rules] = append(by[*id.Rules], i)
		}
	}
	if len(by) < 2 {
		return nil
	}
	var out []ByRules
	for _, rules := range slices.Sorted(maps.Keys(by)) {
		out = append(out, ByRules{rules, by[rules]})
	}
	return out
}
