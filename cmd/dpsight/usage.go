package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// plain says a mistake on the command line in the words of its reader: the parser's own name its grammar. The usage
// that the parser could print is left out: it pushes the sentence off the screen.
func plain(root *kong.Node, args []string, err error) error {
	at, words := commandOf(root, args)
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "unexpected argument "); ok && len(at.Children) > 0 {
		name, more, _ := strings.Cut(rest, ",")
		if more != "" {
			more = ";" + more
		}
		return fmt.Errorf("unknown command %q%s", strings.Join(append(words, name), " "), more)
	}
	if strings.HasPrefix(text, "expected one of ") && len(at.Children) > 0 {
		var names []string // the parser stops after five
		for _, n := range at.Children {
			names = append(names, n.Name)
		}
		return fmt.Errorf("%s needs to know what: one of %s", strings.Join(words, " "), strings.Join(names, ", "))
	}
	if strings.HasPrefix(text, "expected ") && len(at.Positional) > 0 {
		return fmt.Errorf("no %s is given", at.Positional[0].Name)
	}
	if m := unfit.FindStringSubmatch(text); m != nil {
		if m[3] == `"EOL"` {
			return fmt.Errorf("%s needs a value", m[1])
		}
		if what := kinds[m[2]]; what != "" {
			return fmt.Errorf("%s must be %s, not %s", m[1], what, m[3])
		}
	}
	return err
}

// usageHint says where to look.
func usageHint(root *kong.Node, args []string, err error) string {
	at, words := commandOf(root, args)
	var parse *kong.ParseError
	if (at.Name == "collect" || at.Name == "predict") && errors.As(err, &parse) && !slices.Contains(args, "--") &&
		strings.HasPrefix(err.Error(), "unknown flag") {
		if slices.ContainsFunc(args[len(words):], func(a string) bool { return !strings.HasPrefix(a, "-") }) {
			return "the options of a command go after --, as in: dpsight " + at.Name + " -- python train.py --epochs 1"
		}
	}
	what := "options"
	if len(at.Children) > 0 {
		what = "commands"
	}
	return fmt.Sprintf("%s --help lists the %s", strings.Join(append([]string{"dpsight"}, words...), " "), what)
}

// joinNegatives ties a negative number to the option before it, which the parser would take for options of one letter:
// what is wrong with it is for the option to say. A command of the user's, after --, is left alone.
func joinNegatives(args []string) []string {
	var out []string
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		last := len(out) - 1
		if negative.MatchString(a) && last >= 0 && strings.HasPrefix(out[last], "--") &&
			!strings.Contains(out[last], "=") {
			out[last] += "=" + a
			continue
		}
		out = append(out, a)
	}
	return out
}

// unfit is what the parser says of a value that is not of its option's kind, and kinds how a reader calls that kind.
var (
	unfit = regexp.MustCompile(`^(--[a-z-]+): expected (.*?) but got (".*?")`)
	kinds = map[string]string{"duration": "a duration such as 90s or 10m", "a valid 64 bit int": "a whole number"}
)

var negative = regexp.MustCompile(`^-\.?[0-9]`)

// commandOf follows the leading arguments that name a subcommand.
func commandOf(root *kong.Node, args []string) (at *kong.Node, words []string) {
	at = root
	for _, a := range args {
		i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == a })
		if i < 0 {
			break
		}
		at, words = at.Children[i], append(words, a)
	}
	return at, words
}
