package gate

import (
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// MatchExperiments pairs the experiments of a baseline with the experiments of runs, and returns their indexes. The
// experiments' content decides, not their order. MatchExperiments tries, in turn: the suite's key; name, parameters and
// command; name and parameters; parameters under another name; the name, if all parameters that both have agree (a
// later dpsight records more of them). A pair must be the only possible pair at its level. At each level, experiments
// that were both measured, or both predicted, are paired first.
func MatchExperiments(base, now []schemas.BaselineExperiment, pair bool) map[int]int {
	pairs, taken := map[int]int{}, map[int]bool{}
	ours, theirs := Contents(now), Contents(base)
	// Only experiments with the same key are compared with each other, so that ten thousand experiments do not take a
	// hundred million comparisons.
	pass := func(key func(c *Content) string, same func(b, n *Content) bool) {
		type group struct{ base, now []int }
		groups, order := map[string]*group{}, []string{}
		of := func(c *Content) *group {
			k := key(c)
			if k == "" {
				return new(group) // no group matches the experiment
			}
			if groups[k] == nil {
				groups[k], order = new(group), append(order, k)
			}
			return groups[k]
		}
		for i := range theirs {
			if _, done := pairs[i]; !done {
				g := of(&theirs[i])
				g.base = append(g.base, i)
			}
		}
		for j := range ours {
			if !taken[j] {
				g := of(&ours[j])
				g.now = append(g.now, j)
			}
		}
		for _, k := range order {
			g := groups[k]
			for i, j := range onlyPairs(g.base, g.now, func(i, j int) bool { return same(&theirs[i], &ours[j]) }) {
				pairs[i], taken[j] = j, true
			}
		}
	}
	always := func(b, n *Content) bool { return true }
	for _, level := range []struct {
		key  func(c *Content) string
		same func(b, n *Content) bool
	}{
		{func(c *Content) string { return c.ContentKey }, always},
		{func(c *Content) string {
			if len(c.Command) == 0 {
				return ""
			}
			return strings.Join(append([]string{c.Name, c.ParamsText}, c.Command...), "\x00")
		}, always},
		{func(c *Content) string { return c.Name + "\x00" + c.ParamsText }, always},
		{func(c *Content) string { return c.ParamsText }, always},
		{func(c *Content) string { return c.Name + "\x00" }, func(b, n *Content) bool {
			return len(differingParams(b.Params, n.Params, false)) == 0
		}},
	} {
		for _, how := range []func(c *Content) string{(*Content).known, func(c *Content) string { return c.Source },
			func(*Content) string { return "" }} {
			pass(func(c *Content) string {
				k := level.key(c)
				if k == "" {
					return ""
				}
				return k + "\x00" + how(c)
			}, level.same)
		}
	}
	if pair && len(base) == 1 && len(now) == 1 {
		pairs[0] = 0
	}
	return pairs
}

// onlyPairs returns the pairs of experiments that match each other and no other experiment.
func onlyPairs(base, now []int, same func(i, j int) bool) map[int]int {
	pairs := map[int]int{}
	if len(base) == 0 || len(now) == 0 {
		return pairs
	}
	taken := map[int]bool{}
	for _, i := range base {
		found, rivals := -1, 0
		for _, j := range now {
			if !taken[j] && same(i, j) {
				found = j
				rivals++
			}
		}
		if rivals != 1 {
			continue
		}
		for _, k := range base {
			if _, done := pairs[k]; !done && k != i && same(k, found) {
				rivals++
			}
		}
		if rivals == 1 {
			pairs[i], taken[found] = found, true
		}
	}
	return pairs
}

// Content is an experiment with the texts by which [MatchExperiments] matches it.
type Content struct {
	*schemas.BaselineExperiment
	ContentKey, ParamsText string // keys by which experiments match; empty = none
}

// known returns the source of the experiment's figures, such as measured or predicted, and for predictions also the
// device.
func (c *Content) known() string {
	if c.Profile == nil {
		return c.Source
	}
	return c.Source + " " + *c.Profile
}

func Contents(list []schemas.BaselineExperiment) []Content {
	out := make([]Content, len(list))
	for i := range list {
		out[i] = Content{BaselineExperiment: &list[i], ParamsText: identity.ParamsText(list[i].Params)}
		if k := list[i].Key; k != nil {
			out[i].ContentKey = *k + identity.ToldText(list[i].Params)
		}
	}
	return out
}

// A Difference has the values of one thing, such as a parameter, in two experiments; a value is nil if that
// experiment has none.
type Difference struct {
	What          string
	Now, Baseline *string
}

// differingParams lists the parameters that differ. If lone is true, differingParams also lists the parameters that
// only one side has.
func differingParams(base, now map[string]any, lone bool) []Difference {
	var out []Difference
	text := func(v any) *string { return new(identity.TextOf(v)) }
	for _, k := range slices.Sorted(maps.Keys(now)) {
		b, ok := base[k]
		switch {
		case ok && identity.TextOf(b) != identity.TextOf(now[k]):
			out = append(out, Difference{k, text(now[k]), text(b)})
		case !ok && lone:
			out = append(out, Difference{k, text(now[k]), nil})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(base)) {
		if _, ok := now[k]; !ok && lone {
			out = append(out, Difference{k, nil, text(base[k])})
		}
	}
	return out
}

// differingArguments returns how two commands differ, nil if one of them is unknown.
func differingArguments(base, now []string) []Difference {
	if base == nil || now == nil || slices.Equal(base, now) {
		return nil
	}
	texts := identity.TellingArguments([]identity.Identity{{Command: now}, {Command: base}}, []int{0, 1})
	return []Difference{{"arguments", identity.OrNull(texts[0]), identity.OrNull(texts[1])}}
}

// ExperimentLabels returns each experiment's name, with the parameters, or else the arguments, that tell it from
// others of the same name.
func ExperimentLabels(list []schemas.BaselineExperiment) []string {
	labels, ids, named := make([]string, len(list)), make([]identity.Identity, len(list)), map[string][]int{}
	for i := range list {
		ids[i] = identity.Identity{Params: list[i].Params, Command: list[i].Command}
		named[list[i].Name] = append(named[list[i].Name], i)
	}
	for name, group := range named {
		keys := identity.TellingParams(ids, group)
		for _, i := range group {
			labels[i] = name
			if text := identity.ParamWords(&ids[i], keys); text != "" {
				labels[i] += " (" + text + ")"
			}
		}
		alike := map[string][]int{}
		for _, i := range group {
			alike[labels[i]] = append(alike[labels[i]], i)
		}
		for label, group := range alike {
			for k, text := range identity.TellingArguments(ids, group) {
				if text != "" {
					labels[group[k]] = label + " (" + text + ")"
				}
			}
		}
	}
	return labels
}

// tellNamesakes sets DiffersIn of a missing experiment and of a new experiment with the same name: the parameters or
// arguments in which the two differ. Without DiffersIn, a check would list the same name twice and explain nothing.
func tellNamesakes(list []Experiment) {
	for i := range list {
		was := &list[i]
		if was.State != StateGone {
			continue
		}
		var fewest []Difference
		for k := range list {
			now := &list[k]
			if now.State != StateNew || now.Name != was.Name {
				continue
			}
			differ := differingParams(was.Params, now.Params, true)
			if len(differ) == 0 {
				differ = differingArguments(was.command, now.command)
			}
			if len(differ) > 0 && (fewest == nil || len(differ) < len(fewest)) {
				fewest = differ
			}
			if len(now.DiffersIn) == 0 || len(differ) < len(now.DiffersIn) {
				now.DiffersIn = differ
			}
		}
		was.DiffersIn = fewest
	}
}
