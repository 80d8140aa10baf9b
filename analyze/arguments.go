package analyze

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/launch"
)

// builtinModule runs the built-in experiments. Their parameters say all that their command says, and a later dpsight
// writes more options for the same parameters.
const builtinModule = "dpsight_experiments"

// commandOf is a run's command as far as it tells experiments apart: all of its words, but the program without its
// folder. It is nil where something else says what was run: a suite's key, which is of the command too, or the
// parameters of a built-in experiment. Which of a script's arguments name an output folder, and could differ, is not
// guessed.
func commandOf(m *schemas.Manifest) []string {
	if m.Suite != nil && m.Suite.Key != "" || len(m.Command) == 0 || slices.Contains(m.Command, builtinModule) {
		return nil
	}
	words := slices.Clone(m.Command)
	words[0] = launch.Base(words[0])
	return words
}

// commandText is a command as one string that equal commands share.
func commandText(words []string) string { return strings.Join(words, "\x00") }

// argumentsOf splits a command into its arguments: an option with the word behind it, which may be its value, or a word
// alone.
func argumentsOf(words []string) []string {
	short := make([]string, len(words))
	for i, w := range words {
		short[i] = shortened(w)
	}
	return wholeArguments(short)
}

// wholeArguments is [argumentsOf] with words as long as they are, which compares them all.
func wholeArguments(words []string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		word := words[i]
		if strings.HasPrefix(word, "-") && !strings.Contains(word, "=") && i+1 < len(words) &&
			!strings.HasPrefix(words[i+1], "-") {
			i++
			word += " " + words[i]
		}
		out = append(out, word)
	}
	return out
}

// shortened keeps the end of a long word, where paths differ.
func shortened(word string) string {
	const most = 40
	if r := []rune(word); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return word
}

// tellingArguments are the arguments that not all runs of a group have, for each run: "--bs 8", empty where a run has
// no others.
func tellingArguments(ids []Identity, group []int) []string {
	of, have := make([][]string, len(group)), map[string]int{}
	for k, i := range group {
		of[k] = argumentsOf(ids[i].command)
		seen := map[string]bool{}
		for _, a := range of[k] {
			if !seen[a] {
				seen[a] = true
				have[a]++
			}
		}
	}
	out := make([]string, len(group))
	for k := range of {
		out[k] = strings.Join(slices.DeleteFunc(of[k], func(a string) bool { return have[a] == len(group) }), " ")
	}
	return out
}

// argumentNotes says of runs that share name and parameters, but not their commands, that they are different
// experiments.
func argumentNotes(ids []Identity) []string {
	groups, order := map[string][]int{}, []string{}
	for i := range ids {
		id := &ids[i]
		if id.command == nil {
			continue
		}
		key := id.title() + "\x00" + paramsText(id.Params) + "\x00" + id.kind()
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], i)
	}
	var notes []string
	for _, key := range order {
		var differ []string
		for _, text := range tellingArguments(ids, groups[key]) {
			if text == "" {
				text = "none"
			}
			if !slices.Contains(differ, text) {
				differ = append(differ, text)
			}
		}
		if len(differ) > 1 {
			const most = 4
			notes = append(notes, fmt.Sprintf("%s: runs whose arguments differ (%s) are different experiments; "+
				"collect --param says what varies", ids[groups[key][0]].title(), Some(differ, most)))
		}
	}
	return notes
}

// identitiesOf are experiments of a gate by what tells them apart.
func identitiesOf(list []schemas.BaselineExperiment) []Identity {
	ids := make([]Identity, len(list))
	for i := range list {
		ids[i] = Identity{Name: list[i].Name, Params: list[i].Params, Source: list[i].Source, Profile: list[i].Profile,
			command: list[i].Command}
	}
	return ids
}

// commandsDiffer says in which arguments a baseline's experiment and one of runs differ, nil where nothing is known of
// one of them.
func commandsDiffer(base, now []string) []string {
	if base == nil || now == nil || slices.Equal(base, now) {
		return nil
	}
	texts := tellingArguments([]Identity{{command: now}, {command: base}}, []int{0, 1})
	for i := range texts {
		if texts[i] == "" {
			texts[i] = "none"
		}
	}
	return []string{fmt.Sprintf("arguments: %s, baseline %s", texts[0], texts[1])}
}

// argumentsDiffer says in which arguments the commands of a run and of its baseline differ that run the same script,
// but for those that a parameter says, which is a note of its own.
func argumentsDiffer(baseline, run *Summary) []string {
	if baseline.script != run.script {
		return nil
	}
	ours, theirs := unaccounted(run, baseline)
	if len(ours)+len(theirs) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("compared though the commands differ in their arguments: %s, baseline %s",
		argumentText(ours), argumentText(theirs))}
}

// argumentText shows arguments that one side has, each word cut to its end where it is long.
func argumentText(arguments []string) string {
	if len(arguments) == 0 {
		return "none"
	}
	short := make([]string, len(arguments))
	for i, a := range arguments {
		if option, value, ok := strings.Cut(a, " "); ok && strings.HasPrefix(a, "-") {
			short[i] = shortened(option) + " " + shortened(value)
		} else {
			short[i] = shortened(a)
		}
	}
	return strings.Join(short, " ")
}

// unaccounted are, for each of two runs, the arguments of its command that the other's lacks and that no parameter in
// which the two differ accounts for, the method's own above all: by its name, as --batch-size does batch_size, or by
// its value, as --clip ghost and --ghost do the method ghost. Neither Python nor the folder that the script lies in is
// an argument, nor is what says how long the run is. All are nil where nothing is known of a command.
func unaccounted(a, b *Summary) (ours, theirs []string) {
	if a.command == nil || b.command == nil {
		return nil, nil
	}
	x, y := a.ownArguments(), b.ownArguments()
	differ := map[string]bool{}
	for _, k := range sortedKeys(a.Params, b.Params) {
		differ[k] = textOf(a.Params[k]) != textOf(b.Params[k])
	}
	rest := func(s *Summary, list, other []string) (out []string) {
		for _, arg := range list {
			if slices.Contains(other, arg) {
				continue
			}
			name, value := parted(arg)
			said := slices.Contains(lengthParams, name) || differ[name]
			for k, v := range s.Params {
				_, flag := v.(bool) // true and false are values of much else, and so is a number of steps
				said = said || differ[k] && v != nil && !flag && !slices.Contains(lengthParams, k) &&
					(textOf(v) == value || plainName(textOf(v)) == name)
			}
			if !said {
				out = append(out, arg)
			}
		}
		return out
	}
	return rest(a, x, y), rest(b, y, x)
}

// ownArguments are all words but for a Python's or a launcher's name, with the script's in the place of its path.
func (s *Summary) ownArguments() []string {
	words := slices.Clone(s.command)
	if launch.IsPython(words[0]) || launch.IsLauncher(words[0]) {
		words = words[1:]
	}
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasSuffix(w, ".py") }); i >= 0 {
		words[i] = launch.Base(words[i])
	}
	return wholeArguments(words)
}

// parted splits an argument into its option, as a parameter is named, and its value.
func parted(arg string) (name, value string) {
	name, value, _ = strings.Cut(arg, " ")
	if n, v, ok := strings.Cut(name, "="); ok && value == "" {
		name, value = n, v
	}
	return plainName(name), value
}

// plainName is an option, or a value, as a parameter is named: --batch-size is batch_size.
func plainName(word string) string {
	return strings.ReplaceAll(strings.TrimLeft(word, "-"), "-", "_")
}

// tellCommands gives runs of one name whose commands differ the arguments by which they do.
func tellCommands(runs []*Summary) {
	ids, named := make([]Identity, len(runs)), map[string][]int{}
	for i, r := range runs {
		ids[i] = r.Identity
		if r.command != nil {
			named[r.title()] = append(named[r.title()], i)
		}
	}
	for _, group := range named {
		for k, text := range tellingArguments(ids, group) {
			runs[group[k]].arguments = text
		}
	}
}
