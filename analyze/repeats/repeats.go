// Package repeats determines which runs are repeats of one experiment, so that their figures have a common median. Two
// runs are repeats if their content is the same and their origins agree in all parts known for both (see
// [identity.Origin]).
package repeats

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
)

// Content returns a run's content as a string: the suite's key, or else name, parameters and command, and in addition
// the environment. For a run without a suite and without a method, Content returns the run's id, since the script may
// do something else each time. A run without a suite and without a method has no repeats.
func Content(s *analyze.Summary) string {
	if s.Key == "" && s.Method() == "" {
		return s.RunID
	}
	return content(s)
}

// content is [Content] of a run that has a suite's key or a method.
func content(s *analyze.Summary) string {
	key := s.Key
	if key == "" {
		key = s.Name + "\x00" + identity.CommandText(s.Command)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\x00%s", key, s.Source)
	if s.Key == "" { // a suite's key shows the request; later repeats may be bare to save disk space
		fmt.Fprintf(&b, "\x00%v", s.Bare())
	}
	for _, f := range s.RunFacts {
		fmt.Fprintf(&b, "\x00%s=%s%s", f.What, f.Value, f.Whole)
	}
	return b.String()
}

// Same reports whether two runs are repeats of one experiment: their content is the same, and their origins agree in
// all parts known for both.
func Same(a, b *analyze.Summary) bool {
	return Content(a) == Content(b) && a.Origin.Alike(&b.Origin)
}

// Experiments groups runs into experiments with their repeats, in the order of each experiment's first run.
func Experiments(runs []*analyze.Summary) [][]*analyze.Summary {
	once := analyze.Once(content)
	return By(runs, func(s *analyze.Summary) string {
		if s.Key == "" && s.Method() == "" {
			return s.RunID
		}
		return once(s)
	})
}

// By groups runs that have the same key and whose origins do not differ. A run of unknown code that fits several of the
// groups of known code joins none of them, but a group of such runs.
func By(runs []*analyze.Summary, key func(*analyze.Summary) string) [][]*analyze.Summary {
	var groups [][]*analyze.Summary
	of := map[string][]int{} // indexes of runs, by group
	known := newOrigins()
	// origins has, for each group, the origins that differ from it. codes is the same for runs whose code is known:
	// their revisions do not matter and are left out.
	var origins, codes []map[int]bool
	fits := func(r *analyze.Summary, in []int) (fitting []int) {
		origin, of := known.number(&r.Origin, false), origins
		if r.Origin.CodeKnown() {
			origin, of = known.number(&r.Origin, true), codes
		}
		for _, g := range in {
			alike := true
			for o := range of[g] {
				alike = alike && known.alike(origin, o)
			}
			if alike {
				fitting = append(fitting, g)
			}
		}
		return fitting
	}
	add := func(codeKnown bool) {
		unknown := map[string][]int{}
		for _, r := range runs {
			if r.Origin.CodeKnown() != codeKnown {
				continue
			}
			k := key(r)
			fitting := fits(r, of[k])
			if !codeKnown && len(fitting) != 1 {
				if fitting = fits(r, unknown[k]); len(fitting) == 0 {
					unknown[k] = append(unknown[k], len(groups))
				}
			}
			if len(fitting) == 0 {
				if codeKnown {
					of[k] = append(of[k], len(groups))
				}
				fitting = []int{len(groups)}
				groups, origins, codes = append(groups, nil), append(origins, map[int]bool{}), append(codes, map[int]bool{})
			}
			g := fitting[0]
			groups[g] = append(groups[g], r)
			origins[g][known.number(&r.Origin, false)] = true
			if codeKnown {
				codes[g][known.number(&r.Origin, true)] = true
			}
		}
	}
	add(true)
	add(false)
	place := map[*analyze.Summary]int{}
	for i, r := range runs {
		place[r] = i
	}
	first := func(g []*analyze.Summary) int { return place[g[0]] }
	for _, g := range groups {
		slices.SortFunc(g, func(a, b *analyze.Summary) int { return place[a] - place[b] })
	}
	slices.SortFunc(groups, func(a, b []*analyze.Summary) int { return first(a) - first(b) })
	return groups
}

// origins numbers the origins of runs, and remembers which pairs are alike, since thousands of runs have few different
// origins.
type origins struct {
	numbers map[originKey]int
	all     []*identity.Origin
	like    map[[2]int]bool
}

// originKey identifies an origin: with its revision, or, if codes is true, without it.
type originKey struct {
	key   string
	codes bool
}

func newOrigins() *origins { return &origins{numbers: map[originKey]int{}, like: map[[2]int]bool{}} }

func (o *origins) number(of *identity.Origin, codes bool) int {
	key := originKey{of.Key(), codes}
	if codes {
		key.key = of.CodeKey()
	}
	n, ok := o.numbers[key]
	if !ok {
		n = len(o.all)
		o.numbers[key], o.all = n, append(o.all, of)
	}
	return n
}

func (o *origins) alike(a, b int) bool {
	pair := [2]int{min(a, b), max(a, b)}
	like, ok := o.like[pair]
	if !ok {
		like = o.all[a].Alike(o.all[b])
		o.like[pair] = like
	}
	return like
}

// Placed returns a key that is equal for runs in one cell of a pivot that are repeats of one experiment, if their
// origins agree too. The names of built-in experiments do not count, since parameters say what was run. Bare runs count
// as repeats, and so do runs that differ only in the seed.
func Placed(s *analyze.Summary) string {
	params := maps.Clone(s.Params)
	delete(params, "seed")
	delete(params, "bare")
	content := identity.ParamsText(params)
	if !identity.Builtin(s.Script) {
		content += "\x00" + s.Name + "\x00" + s.Script + "\x00" + s.Key + "\x00" + identity.CommandText(s.Command)
	}
	content += "\x00" + s.Source
	if s.Profile != nil {
		content += "\x00" + *s.Profile
	}
	return content
}
