package compare

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas/launch"
)

// argumentsDiffer returns a remark on the command arguments in which a run and its baseline differ, if both run the
// same script. argumentsDiffer leaves out arguments that a parameter states, since a separate note covers parameters.
func argumentsDiffer(baseline, run *analyze.Summary) []Remark {
	if baseline.Script != run.Script {
		return nil
	}
	ours, theirs := unaccounted(run, baseline)
	if len(ours)+len(theirs) == 0 {
		return nil
	}
	return []Remark{{Kind: RemarkArguments, Now: identity.ArgumentText(ours), Baseline: identity.ArgumentText(theirs)}}
}

// unaccounted returns, for each of two runs, the arguments of its command that the other lacks and that no differing
// parameter explains. A parameter, above all the method, explains an argument by its name, as --batch-size for
// batch_size, or by its value, as --clip ghost and --ghost for the method ghost. Python, the script's folder and the
// length of the run do not count as arguments. If the command of either run is unknown, unaccounted returns nil for
// both runs.
func unaccounted(a, b *analyze.Summary) (ours, theirs []string) {
	if a.Command == nil || b.Command == nil {
		return nil, nil
	}
	x, y := ownArguments(a), ownArguments(b)
	differ := map[string]bool{}
	for _, k := range identity.SortedKeys(a.Params, b.Params) {
		differ[k] = identity.TextOf(a.Params[k]) != identity.TextOf(b.Params[k])
	}
	rest := func(s *analyze.Summary, list, other []string) (out []string) {
		for _, arg := range list {
			if slices.Contains(other, arg) {
				continue
			}
			name, value := identity.Parted(arg)
			said := slices.Contains(identity.LengthParams, name) || differ[name]
			for k, v := range s.Params {
				_, flag := v.(bool) // true, false and the number of steps are values of many other options too
				said = said || differ[k] && v != nil && !flag && !slices.Contains(identity.LengthParams, k) &&
					(identity.TextOf(v) == value || identity.PlainName(identity.TextOf(v)) == name)
			}
			if !said {
				out = append(out, arg)
			}
		}
		return out
	}
	return rest(a, x, y), rest(b, y, x)
}

// ownArguments returns the words of a command from the script on. ownArguments drops the Python or launcher, and
// shortens the script's path to its file name.
func ownArguments(s *analyze.Summary) []string {
	words := slices.Clone(s.Command)
	if launch.IsPython(words[0]) || launch.IsLauncher(words[0]) {
		words = words[1:]
	}
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasSuffix(w, ".py") }); i >= 0 {
		words[i] = launch.Base(words[i])
	}
	return identity.WholeArguments(words)
}

// tellCommands adds, to runs of the same name but different commands, the arguments that differ as their value of
// argumentsKey.
func tellCommands(runs []*analyze.Summary) {
	ids, named := make([]identity.Identity, len(runs)), map[string][]int{}
	for i, r := range runs {
		ids[i] = r.Identity
		if r.Command != nil {
			named[r.Title()] = append(named[r.Title()], i)
		}
	}
	for _, group := range named {
		for k, text := range identity.TellingArguments(ids, group) {
			runs[group[k]].Arguments = text
		}
	}
}
