// Package repeats says which runs are repeats of one experiment, so that their figures have a median: their content is
// the same, and nothing that both know of their origins differs (see [identity.Origin]).
package repeats

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
)

// Content tells experiments apart: what a suite hashed, else name, parameters and command; and what the run was made
// on. Without a suite and without a method it is the run: nobody knows what a script did the second time.
func Content(s *analyze.Summary) string {
	key := s.Key
	switch {
	case key != "":
	case s.Method() != "":
		key = s.Name + "\x00" + identity.CommandText(s.Command)
	default:
		return s.RunID
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\x00%s", key, s.Source)
	if s.Key == "" { // a suite's key says what was asked for; further repetitions may be bare to save disk
		fmt.Fprintf(&b, "\x00%v", s.Bare())
	}
	for _, f := range s.RunFacts {
		fmt.Fprintf(&b, "\x00%s=%s%s", f.What, f.Value, f.Whole)
	}
	return b.String()
}

// Same reports whether two runs are repeats of one experiment: its content is the same, and nothing that both know
// of their origins differs.
func Same(a, b *analyze.Summary) bool {
	return Content(a) == Content(b) && a.Origin.Alike(&b.Origin)
}

// Experiments groups runs into experiments with their repeats, in the order in which each first came.
func Experiments(runs []*analyze.Summary) [][]*analyze.Summary { return By(runs, Content) }

// By groups runs of one key whose origins do not differ. A run of which so little is known that it could be
// a repeat of two experiments is one of neither.
func By(runs []*analyze.Summary, key func(*analyze.Summary) string) [][]*analyze.Summary {
	var groups [][]*analyze.Summary
	of := map[string][]int{}                  // places in groups
	var origins []map[string]*identity.Origin // of each group, those that are not the same
	fits := func(r *analyze.Summary, in []int) (fitting []int) {
		for _, g := range in {
			alike := true
			for _, o := range origins[g] {
				alike = alike && r.Origin.Alike(o)
			}
			if alike {
				fitting = append(fitting, g)
			}
		}
		return fitting
	}
	add := func(known bool) {
		unknown := map[string][]int{}
		for _, r := range runs {
			if r.Origin.CodeKnown() != known {
				continue
			}
			k := key(r)
			fitting := fits(r, of[k])
			if !known && len(fitting) != 1 {
				if fitting = fits(r, unknown[k]); len(fitting) == 0 {
					unknown[k] = append(unknown[k], len(groups))
				}
			}
			if len(fitting) == 0 {
				if known {
					of[k] = append(of[k], len(groups))
				}
				groups, origins = append(groups, nil), append(origins, map[string]*identity.Origin{})
				fitting = []int{len(groups) - 1}
			}
			g := fitting[0]
			groups[g] = append(groups[g], r)
			origins[g][r.Origin.Key()] = &r.Origin
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

// Placed is what runs of one place of a pivot have in common that are repeats of one experiment, their origins apart: a
// pivot has no rows for names where parameters say what was run, and takes bare repetitions for repetitions. What
// differs in its seed alone is a repeat.
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
