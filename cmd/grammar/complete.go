package grammar

import (
	"embed"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/posener/complete"
	"github.com/willabides/kongplete"
)

//go:embed shells
var shells embed.FS

// Completion is the command that prints a shell's completion script.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// Help is the text above the options.
func (Completion) Help() string {
	return `Prints a script that makes a shell complete commands, options, runs of the store,
suites, methods and devices.

Examples:
  dpsight completion bash > ~/.local/share/bash-completion/completions/dpsight
  dpsight completion zsh > ~/.zfunc/_dpsight   # a folder of fpath
  dpsight completion fish > ~/.config/fish/completions/dpsight.fish`
}

// Run prints the script.
func (c *Completion) Run(line *kong.Context) error {
	script, err := shells.ReadFile("shells/" + c.Shell)
	if err != nil {
		return err
	}
	_, err = line.Stdout.Write(script)
	return err
}

// Complete prints the completions of the word being typed, one per line, if a shell requests them through the
// environment. Complete reports whether a shell requested completions.
func Complete(parser *kong.Kong) bool {
	line := os.Getenv("COMP_LINE")
	if line == "" {
		return false
	}
	for _, n := range parser.Model.Children { // only help hides the short forms
		n.Hidden = false
	}
	command, err := kongplete.Command(parser, kongplete.WithPredictors(predictors()))
	if err != nil {
		parser.Errorf("%v", err)
		return true
	}
	for _, n := range parser.Model.Children {
		for _, alias := range n.Aliases {
			command.Sub[alias] = command.Sub[n.Name]
		}
	}
	command.Sub["help"] = complete.Command{Sub: maps.Clone(command.Sub)}
	if point, err := strconv.Atoi(os.Getenv("COMP_POINT")); err == nil && point >= 0 && point < len(line) {
		line = line[:point]
	}
	typed := readLine(line)
	candidates := command.Predict(typed)
	slices.Sort(candidates) // candidates come from maps, so their order is random
	for _, word := range slices.Compact(candidates) {
		if rest, is := strings.CutPrefix(word, typed.Last); is {
			fmt.Fprintln(parser.Stdout, behindEquals(typed.Last)+rest)
		}
	}
	return true
}

// readLine splits the typed line into the form that predictors take. "--flag=word" becomes two words, except within
// quotes: readLine does not interpret quoted text.
func readLine(line string) complete.Args {
	words := strings.Fields(line)
	if len(words) == 0 || strings.TrimRight(line, " \t") != line {
		words = append(words, "")
	}
	last := words[len(words)-1]
	if flag, value, joined := strings.Cut(last, "="); joined && strings.HasPrefix(flag, "-") {
		words = append(words[:len(words)-1], flag, value)
	}
	words = words[min(1, len(words)-1):]
	done := words[:len(words)-1]
	args := complete.Args{All: words, Completed: done, Last: words[len(words)-1]}
	if len(done) > 0 {
		args.LastCompleted = done[len(done)-1]
	}
	return args
}

// behindEquals returns the part of a word behind its last "=", which is all that shells complete.
func behindEquals(word string) string { return word[strings.LastIndex(word, "=")+1:] }
