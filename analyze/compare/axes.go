package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
)

// argumentsKey is the key for the command arguments in which runs of the same name differ; see [tellCommands].
const argumentsKey = "arguments"

// originKey is the key for the parts of their origin in which runs of the same content differ; see [tellOrigins].
const originKey = "origin"

// axisValue returns a run's value of a parameter, of a fact such as torch or GPU, of its identity (name, suite, source,
// run), or of its origin (revision, date, host, dpsight). If a run has no parameter method, its name stands for its
// method, as in [SuccessRow]. key must equal a parameter's name exactly; for a fact, upper and lower case are the same.
func axisValue(s *analyze.Summary, key string) (string, bool) {
	if v, ok := s.Params[key]; ok && v != nil {
		return identity.TextOf(v), true
	}
	for i := range s.RunFacts {
		if strings.EqualFold(s.RunFacts[i].What, key) {
			return s.RunFacts[i].Value, true
		}
	}
	switch key {
	case argumentsKey:
		return s.Arguments, s.Arguments != ""
	case originKey:
		return s.Made, s.Made != ""
	case "name", "method": // without this, commands without methods would share a row although they are not repeats
		return s.Title(), true
	case "run":
		return s.RunID, true
	case "source":
		return s.Source, true
	case "status":
		return s.Status, true
	case "suite":
		return s.Suite, s.Suite != ""
	case "script":
		return s.Script, s.Script != ""
	case "bare":
		return strconv.FormatBool(s.Bare()), true
	case dateKey:
		return s.Started.UTC().Format(time.DateOnly), !s.Started.IsZero()
	}
	v := s.Origin.Fact(key)
	return v, v != ""
}

// dateKey is the day on which a run was made, in UTC.
const dateKey = "date"

// askedKeys are the keys that become rows or columns only on request. Without a request, originKey distinguishes runs
// by everything that differs in their origins.
var askedKeys = []string{string(identity.PartRevision), dateKey, string(identity.PartHost),
	string(identity.PartDpsight)}

// axisKeys lists the keys that can become rows and columns, in the order in which a comparison chooses them.
func axisKeys(runs []*analyze.Summary) []string {
	seen := map[string]bool{}
	var params, facts []string
	for _, r := range runs {
		for k := range r.Params {
			if !seen[k] {
				seen[k] = true
				params = append(params, k)
			}
		}
		for _, f := range r.RunFacts {
			if !seen[f.What] {
				seen[f.What] = true
				facts = append(facts, f.What)
			}
		}
	}
	slices.Sort(params)
	var keys []string
	for _, k := range identity.AxisOrder {
		if slices.Contains(params, k) {
			keys = append(keys, k)
		}
	}
	keys = append(keys, "source")
	for _, k := range params {
		if !slices.Contains(identity.AxisOrder, k) && !slices.Contains(identity.AxisLast, k) {
			keys = append(keys, k)
		}
	}
	if slices.ContainsFunc(runs, func(r *analyze.Summary) bool { return r.Arguments != "" }) {
		keys = append(keys, "name", argumentsKey)
	}
	for _, k := range identity.AxisLast {
		if slices.Contains(params, k) {
			keys = append(keys, k)
		}
	}
	for _, k := range append(facts, "name", "script", originKey, "suite", "status", "run") {
		if k == originKey && !slices.ContainsFunc(runs, func(r *analyze.Summary) bool { return r.Made != "" }) {
			continue
		}
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// checkAxes refuses a key that no run has.
func checkAxes(runs []*analyze.Summary, keys []string) error {
	for _, k := range keys {
		if !slices.ContainsFunc(runs, func(r *analyze.Summary) bool { _, ok := axisValue(r, k); return ok }) {
			return fmt.Errorf("no run has %q; there are %s", k, strings.Join(axisNames(runs), ", "))
		}
	}
	for i, k := range keys {
		if slices.Contains(keys[:i], k) {
			return fmt.Errorf("%q is given twice among rows and columns", k)
		}
	}
	return nil
}

// axisNames lists the keys that an error proposes for an unknown key. Of the facts, it lists only the few that people
// compare by.
func axisNames(runs []*analyze.Summary) []string {
	keys := axisKeys(runs)
	for _, k := range askedKeys {
		if slices.ContainsFunc(runs, func(r *analyze.Summary) bool { _, ok := axisValue(r, k); return ok }) {
			keys = append(keys, k)
		}
	}
	return slices.DeleteFunc(keys, func(k string) bool {
		return strings.Contains(k, " ") || k == "cuDNN" || k == "deterministic"
	})
}

// representatives returns the first run for each combination of the values that distinguish runs. Run ids, days and
// suites do not count unless they are in asked.
func representatives(runs []*analyze.Summary, asked []string) (some []*analyze.Summary) {
	type class struct {
		analyze.Likeness
		title, status, arguments, made, asked string
	}
	seen := map[class]bool{}
	for _, r := range runs {
		c := class{r.Likeness(), r.Title(), r.Status, r.Arguments, r.Made, keyOf(r, asked)}
		if !seen[c] {
			seen[c] = true
			some = append(some, r)
		}
	}
	return some
}

// differing returns the keys that distinguish runs beyond the keys already taken: each key whose value does not follow
// from the keys before it. A clipping norm that only DP methods have follows from the method. The last keys distinguish
// experiments that the earlier keys do not distinguish.
func differing(runs []*analyze.Summary, taken []string, placed placing) []string {
	var out []string
	chosen, experiment := slices.Clone(taken), experimentOf(runs, placed)
	for _, k := range axisKeys(runs) {
		if slices.Contains(chosen, k) || k == "status" || k == "suite" {
			continue
		}
		// These keys come last. A run's name only repeats its parameters, unless commands differ in other arguments.
		// Bare and full repeats of one experiment need no key to distinguish them.
		last := k == "run" || k == "script" || k == "bare" && len(chosen) > 0 || k == "name" && len(chosen) > 0 &&
			!slices.ContainsFunc(runs, func(r *analyze.Summary) bool { return r.Arguments != "" })
		if k == "bare" && last {
			continue
		}
		values := map[string]*analyze.Summary{}
		for _, r := range runs {
			v, _ := axisValue(r, k)
			group := keyOf(r, chosen)
			old, ok := values[group]
			if !ok {
				values[group] = r
				continue
			}
			if was, _ := axisValue(old, k); was != v && (!last || experiment[old] != experiment[r]) {
				out, chosen = append(out, k), append(chosen, k)
				break
			}
		}
	}
	return out
}

// keyOf returns a run's values for several keys as one string.
func keyOf(s *analyze.Summary, keys []string) string {
	var b strings.Builder
	for _, k := range keys {
		v, _ := axisValue(s, k)
		b.WriteString(v + "\x00")
	}
	return b.String()
}

// An axis is the rows or the columns of a comparison: the places that runs have, in order.
type axis struct {
	keys   []string
	places []axisPlace
}

// axisPlace is one row or column: a value for each key, nil if the place's runs have no value.
type axisPlace []*string

func newAxis(runs []*analyze.Summary, keys []string) axis {
	a := axis{keys: keys}
	seen := map[string]bool{}
	first := make([]map[string]int, len(keys)) // the index of the first row with each value
	numeric := make([]bool, len(keys))
	for i := range keys {
		first[i], numeric[i] = map[string]int{}, true
	}
	for n, r := range runs {
		id := keyOf(r, keys)
		if seen[id] {
			continue
		}
		seen[id] = true
		p := make(axisPlace, len(keys))
		for i, k := range keys {
			v, ok := axisValue(r, k)
			if !ok {
				continue
			}
			p[i] = &v
			if _, err := strconv.ParseFloat(v, 64); err != nil {
				numeric[i] = false
			}
			if _, ok := first[i][v]; !ok {
				first[i][v] = n
			}
		}
		a.places = append(a.places, p)
	}
	slices.SortStableFunc(a.places, func(x, y axisPlace) int {
		for i := range keys {
			switch {
			case x[i] == nil || y[i] == nil:
				if (x[i] == nil) != (y[i] == nil) { // cells without a value come last
					if x[i] == nil {
						return 1
					}
					return -1
				}
			case numeric[i]:
				f, _ := strconv.ParseFloat(*x[i], 64)
				g, _ := strconv.ParseFloat(*y[i], 64)
				if c := cmp.Compare(f, g); c != 0 {
					return c
				}
			default:
				if c := cmp.Compare(first[i][*x[i]], first[i][*y[i]]); c != 0 {
					return c
				}
			}
		}
		return 0
	})
	return a
}

// id returns the place's values as one string, in the form in which [keyOf] returns a run's values.
func (p axisPlace) id() string {
	var b strings.Builder
	for _, v := range p {
		if v != nil {
			b.WriteString(*v)
		}
		b.WriteString("\x00")
	}
	return b.String()
}

// values returns the place as a map from key to value, as JSON documents show it.
func (a *axis) values(p axisPlace) map[string]*string {
	m := map[string]*string{}
	for i, k := range a.keys {
		m[k] = p[i]
	}
	return m
}
