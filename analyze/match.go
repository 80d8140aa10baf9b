package analyze

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// matchExperiments pairs experiments of a baseline with those of runs, by index. Content decides, never the place: the
// suite's key first, then name, parameters and command, then name and parameters, then parameters under another name,
// then the name where all parameters that both have agree (a later dpsight records more of them). A pairing must be the
// only one possible at its level, and experiments whose figures are known in the same way are paired first.
func matchExperiments(base, now []schemas.BaselineExperiment, pair bool) map[int]int {
	pairs, taken := map[int]int{}, map[int]bool{}
	ours, theirs := contents(now), contents(base)
	pass := func(same func(b, n *content) bool) {
		for i := range theirs {
			if _, done := pairs[i]; done {
				continue
			}
			found, rivals := -1, 0
			for j := range ours {
				if !taken[j] && same(&theirs[i], &ours[j]) {
					found = j
					rivals++
				}
			}
			if rivals != 1 {
				continue
			}
			for k := range theirs {
				if _, done := pairs[k]; !done && k != i && same(&theirs[k], &ours[found]) {
					rivals++
				}
			}
			if rivals == 1 {
				pairs[i], taken[found] = found, true
			}
		}
	}
	for _, same := range []func(b, n *content) bool{
		func(b, n *content) bool { return b.key != "" && b.key == n.key },
		func(b, n *content) bool {
			return b.Name == n.Name && b.params == n.params && b.Command != nil && slices.Equal(b.Command, n.Command)
		},
		func(b, n *content) bool { return b.Name == n.Name && b.params == n.params },
		func(b, n *content) bool { return b.params != "" && b.params == n.params },
		func(b, n *content) bool {
			return b.Name == n.Name && len(differingParams(b.Params, n.Params, false)) == 0
		},
	} {
		pass(func(b, n *content) bool { return b.known() == n.known() && same(b, n) })
		pass(func(b, n *content) bool { return b.Source == n.Source && same(b, n) })
		pass(same)
	}
	if pair && len(base) == 1 && len(now) == 1 {
		pairs[0] = 0
	}
	return pairs
}

// content is an experiment with what it is matched by.
type content struct {
	*schemas.BaselineExperiment
	key, params string // empty = none
}

// known is how the experiment's figures are: their source and, of predictions, the device.
func (c *content) known() string {
	if c.Profile == nil {
		return c.Source
	}
	return c.Source + " " + *c.Profile
}

func contents(list []schemas.BaselineExperiment) []content {
	out := make([]content, len(list))
	for i := range list {
		out[i] = content{BaselineExperiment: &list[i], params: paramsText(list[i].Params)}
		if k := list[i].Key; k != nil {
			out[i].key = *k + toldText(list[i].Params)
		}
	}
	return out
}

// differingParams lists "batch_size: 8, baseline 4" of parameters that differ, and with lone those that one side alone
// has.
func differingParams(base, now map[string]any, lone bool) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(now)) {
		b, ok := base[k]
		switch {
		case ok && textOf(b) != textOf(now[k]):
			out = append(out, fmt.Sprintf("%s: %s, baseline %s", k, textOf(now[k]), textOf(b)))
		case !ok && lone:
			out = append(out, fmt.Sprintf("%s: %s, baseline none", k, textOf(now[k])))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(base)) {
		if _, ok := now[k]; !ok && lone {
			out = append(out, fmt.Sprintf("%s: none, baseline %s", k, textOf(base[k])))
		}
	}
	return out
}

// experimentLabels gives each experiment its name, with the parameters that tell it from others of the same name, else
// the arguments.
func experimentLabels(list []schemas.BaselineExperiment) []string {
	labels, ids, named := make([]string, len(list)), make([]Identity, len(list)), map[string][]int{}
	for i := range list {
		ids[i] = Identity{Params: list[i].Params, command: list[i].Command}
		named[list[i].Name] = append(named[list[i].Name], i)
	}
	for name, group := range named {
		keys := tellingParams(ids, group)
		for _, i := range group {
			labels[i] = name
			if text := paramWords(&ids[i], keys); text != "" {
				labels[i] += " (" + text + ")"
			}
		}
		alike := map[string][]int{}
		for _, i := range group {
			alike[labels[i]] = append(alike[labels[i]], i)
		}
		for label, group := range alike {
			for k, text := range tellingArguments(ids, group) {
				if text != "" {
					labels[group[k]] = label + " (" + text + ")"
				}
			}
		}
	}
	return labels
}

// tellNamesakes says of experiments that are missing, and of new ones of the same name, in which parameters or
// arguments they differ: one name twice, without what tells them apart, explains nothing.
func tellNamesakes(list []CheckExperiment) {
	for i := range list {
		was := &list[i]
		if was.State != StateMissing && was.State != StateLeftOut {
			continue
		}
		var fewest []string
		for k := range list {
			now := &list[k]
			if now.State != StateNew || now.Name != was.Name {
				continue
			}
			differ := differingParams(was.Params, now.Params, true)
			if len(differ) == 0 {
				differ = commandsDiffer(was.command, now.command)
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
