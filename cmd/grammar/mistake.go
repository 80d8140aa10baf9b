// Package grammar explains mistakes on the command line, completes words in a shell, and writes the manual page.
package grammar

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/near"
)

// Mistake returns the parser's error with a hint what to do next. If a subcommand is missing, Mistake names all
// subcommands: the parser's error names only five.
func Mistake(err error, args []string) error {
	words, at := []string{"dpsight"}, (*kong.Node)(nil)
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		for _, p := range parse.Context.Path {
			if p.Command != nil {
				words, at = append(words, p.Command.Name), p.Command
			}
		}
	}
	command := strings.Join(words, " ")
	if hint := schemas.Hint(err); hint != "" {
		return schemas.WithHint(err, hint)
	}
	if at == nil {
		return noCommand(err, parse, args)
	}
	last := args[len(args)-1]
	what := "options"
	switch {
	case len(at.Children) > 0:
		what = "commands"
		if len(words) == 1+len(args) {
			err = fmt.Errorf("%s must be followed by one of %s", at.Name, strings.Join(names(at.Children), ", "))
		}
	case takesValue(at, last):
		err = fmt.Errorf("%s must be followed by its value", last)
	}
	hint := command + " --help lists the " + what
	missing, lacks := strings.CutPrefix(err.Error(), "missing flags: ")
	switch {
	case lacks:
		first, _, _ := strings.Cut(missing, " or ")
		hint = "as in: " + command + " " + strings.ReplaceAll(first, ",", "")
	case strings.Contains(err.Error(), "expected duration"):
		hint = "a duration has a unit, as in 90s or 10m"
	case takesCommand(at) && !slices.Contains(args, "--") && !strings.Contains(err.Error(), "did you mean"):
		hint += "; a script's own options go behind it, as in: " + command + " python train.py --epochs 1"
	}
	return schemas.WithHint(err, hint)
}

// noCommand explains a first word that is no command. The word may be misspelt, or a hidden analysis, which the parser
// does not suggest. The first word may also begin a user's command, with "collect" missing before it.
func noCommand(err error, parse *kong.ParseError, args []string) error {
	const list = "dpsight --help lists the commands"
	if parse == nil || len(args) == 0 {
		return schemas.WithHint(err, list)
	}
	word := args[0]
	meant := near.Word(word, names(slices.DeleteFunc(slices.Clone(parse.Context.Model.Children),
		func(n *kong.Node) bool { return !n.Hidden })))
	switch _, missing := os.Stat(word); {
	case meant != "":
		return schemas.WithHint(err, "did you mean dpsight "+meant+"? "+list)
	case strings.HasPrefix(word, "python"):
		return schemas.WithHint(fmt.Errorf("%s is no command of dpsight", word), "dpsight collect "+
			strings.Join(args, " ")+" records the script; "+list)
	case strings.HasSuffix(word, ".py"):
		return schemas.WithHint(fmt.Errorf("%s is no command of dpsight", word), "dpsight collect python "+
			strings.Join(args, " ")+" records the script; "+list)
	case missing == nil && !strings.HasPrefix(word, "-"):
		return schemas.WithHint(err, "dpsight runs "+word+" lists the runs of a folder; "+list)
	}
	return schemas.WithHint(err, list)
}

func names(nodes []*kong.Node) (list []string) {
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return list
}

// takesCommand reports whether a user's command can follow a command of dpsight.
func takesCommand(n *kong.Node) bool {
	return slices.ContainsFunc(n.Positional, func(p *kong.Positional) bool { return p.Name == "command" })
}

// takesValue reports whether a word is an option that a value must follow.
func takesValue(n *kong.Node, arg string) bool {
	return slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool {
		return !f.IsBool() && ("--"+f.Name == arg || "-"+string(f.Short) == arg)
	})
}
