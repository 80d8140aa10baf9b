package identity

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/launch"
)

// CommandOf returns the words of a run's command that distinguish experiments; the program's folder is left out.
// CommandOf returns nil if something else identifies what was run: a suite's key, which covers the command, or the
// parameters of a built-in experiment. CommandOf does not guess which arguments name an output folder, so runs that
// differ only in this folder are different experiments.
func CommandOf(m *schemas.Manifest) []string {
	if m.Suite != nil && m.Suite.Key != "" || len(m.Command) == 0 || slices.Contains(m.Command, BuiltinModule) {
		return nil
	}
	words := slices.Clone(m.Command)
	words[0] = launch.Base(words[0])
	return words
}

// CommandText returns a command as one string. Only equal commands have equal strings.
func CommandText(words []string) string { return strings.Join(words, "\x00") }

// argumentsOf splits a command into its arguments: an option with the next word, which may be its value, or a word
// alone.
func argumentsOf(words []string) []string {
	short := make([]string, len(words))
	for i, w := range words {
		short[i] = shortened(w)
	}
	return WholeArguments(short)
}

// WholeArguments is [argumentsOf] without shortening words, for comparing commands.
func WholeArguments(words []string) []string {
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

// shortened cuts the beginning of a long word, since paths mostly differ at their end.
func shortened(word string) string {
	const most = 40
	if r := []rune(word); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return word
}

// TellingArguments returns, for each run, its arguments that not all runs of the group have, such as "--bs 8"; "" if a
// run has none.
func TellingArguments(ids []Identity, group []int) []string {
	// Repeats that were read from an index share their commands in memory, so each command is split once.
	runs, have := map[*string]int{}, map[string]int{}
	at := func(i int) *string {
		if len(ids[i].Command) == 0 {
			return nil
		}
		return &ids[i].Command[0]
	}
	of := map[*string][]string{}
	for _, i := range group {
		if runs[at(i)]++; runs[at(i)] == 1 {
			of[at(i)] = argumentsOf(ids[i].Command)
		}
	}
	for command, arguments := range of {
		seen := map[string]bool{}
		for _, a := range arguments {
			if !seen[a] {
				seen[a] = true
				have[a] += runs[command]
			}
		}
	}
	told := map[*string]string{}
	for command, arguments := range of {
		told[command] = strings.Join(slices.DeleteFunc(arguments, func(a string) bool { return have[a] == len(group) }), " ")
	}
	out := make([]string, len(group))
	for k, i := range group {
		out[k] = told[at(i)]
	}
	return out
}

// Unlike are the experiments of one name and parameters whose commands differ.
type Unlike struct {
	Title     string
	Arguments []string // the arguments that not all experiments have, one entry for each experiment; "" = none
}

// UnlikeArguments finds runs that have the same name and parameters but different commands, and so are different
// experiments.
func UnlikeArguments(ids []Identity) (found []Unlike) {
	groups, order, texts := map[string][]int{}, []string{}, map[uintptr]string{}
	for i := range ids {
		id := &ids[i]
		if id.Command == nil {
			continue
		}
		at := paramsAt(id)
		if _, ok := texts[at]; !ok {
			texts[at] = ParamsText(id.Params)
		}
		key := id.Title() + "\x00" + texts[at] + "\x00" + id.kind()
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], i)
	}
	for _, key := range order {
		u := Unlike{Title: ids[groups[key][0]].Title()}
		for _, text := range TellingArguments(ids, groups[key]) {
			if !slices.Contains(u.Arguments, text) {
				u.Arguments = append(u.Arguments, text)
			}
		}
		if len(u.Arguments) > 1 {
			found = append(found, u)
		}
	}
	return found
}

// IdentitiesOf returns an identity for each experiment of a baseline, with the name, parameters and command that
// distinguish it.
func IdentitiesOf(list []schemas.BaselineExperiment) []Identity {
	ids := make([]Identity, len(list))
	for i := range list {
		ids[i] = Identity{Name: list[i].Name, Params: list[i].Params, Source: list[i].Source, Profile: list[i].Profile,
			Command: list[i].Command}
	}
	return ids
}

// ArgumentText formats the arguments that only one side has. ArgumentText shortens long words to their ends.
func ArgumentText(arguments []string) string {
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

// Parted splits an argument into its option, as a parameter is named, and its value.
func Parted(arg string) (name, value string) {
	name, value, _ = strings.Cut(arg, " ")
	if n, v, ok := strings.Cut(name, "="); ok && value == "" {
		name, value = n, v
	}
	return PlainName(name), value
}

// PlainName returns an option, or a value, in the form of a parameter's name: --batch-size becomes batch_size.
func PlainName(word string) string {
	return strings.ReplaceAll(strings.TrimLeft(word, "-"), "-", "_")
}
