package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// usage is the parser's error, and where the options or commands are listed of the command that it got to. Where a
// subcommand is missing it names all of them: the parser stops after five.
func usage(err error, args []string) error {
	words, at, what := []string{"dpsight"}, (*kong.Node)(nil), "commands"
	var parse *kong.ParseError
	if errors.As(err, &parse) {
		for _, p := range parse.Context.Path {
			if p.Command != nil {
				words, at = append(words, p.Command.Name), p.Command
			}
		}
	}
	switch {
	case at == nil:
	case len(at.Children) == 0:
		what = "options"
	case len(words) == 1+len(args):
		var names []string
		for _, n := range at.Children {
			names = append(names, n.Name)
		}
		err = fmt.Errorf("%s must be followed by one of %s", at.Name, strings.Join(names, ", "))
	}
	hint := fmt.Sprintf("%s --help lists the %s", strings.Join(words, " "), what)
	if at != nil && takesCommand(at) && !slices.Contains(args, "--") {
		hint += "; the options of a command go after --, as in: " + strings.Join(words, " ") +
			" -- python train.py --epochs 1"
	}
	return advise(err, hint)
}

// takesCommand reports whether a command of the user's can follow.
func takesCommand(n *kong.Node) bool {
	return slices.ContainsFunc(n.Positional, func(p *kong.Positional) bool { return p.Name == "command" })
}

// joinNegatives ties a negative number to the option before it: the parser takes it for an option of one letter. A
// command of the user's, after --, is left alone.
func joinNegatives(args []string) []string {
	var out []string
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		last := len(out) - 1
		if negative(a) && last >= 0 && strings.HasPrefix(out[last], "--") && !strings.Contains(out[last], "=") {
			out[last] += "=" + a
			continue
		}
		out = append(out, a)
	}
	return out
}

// negative reports whether an argument begins as a negative number does: -3, -.5, -5s.
func negative(arg string) bool {
	digits, signed := strings.CutPrefix(arg, "-")
	digits = strings.TrimPrefix(digits, ".")
	return signed && digits != "" && digits[0] >= '0' && digits[0] <= '9'
}
