package grammar

import (
	"errors"
	"regexp"
	"slices"

	"github.com/alecthomas/kong"
)

// negative matches the parser's error for a negative number, such as -3, which kong takes for an option.
var negative = regexp.MustCompile(`^(--?\S+): expected .* value but got "(-[0-9.][^"]*)" \(short flag\)`)

// Parse reads a command line. "help COMMAND" is "COMMAND --help". A negative number behind an option is the
// option's value, and the option's own check reports what is wrong with it.
func Parse(parser *kong.Kong, args []string) (*kong.Context, error) {
	if len(args) == 0 || args[0] == "help" {
		args = append(slices.Clone(args[min(1, len(args)):]), "--help")
	}
	for {
		line, err := parser.Parse(args)
		var parse *kong.ParseError
		if err == nil || !errors.As(err, &parse) {
			return line, err
		}
		joined := joinNegative(args, err.Error())
		if joined == nil {
			return line, err
		}
		args = joined
	}
}

// joinNegative joins the option and the number in an error's text into one word, or returns nil if the text has none.
// The parser stops at its first error, so the first pair of that option and number is the right one.
func joinNegative(args []string, problem string) []string {
	said := negative.FindStringSubmatch(problem)
	if said == nil {
		return nil
	}
	for i := range len(args) - 1 {
		if args[i] == said[1] && args[i+1] == said[2] {
			return slices.Replace(slices.Clone(args), i, i+2, said[1]+"="+said[2])
		}
	}
	return nil
}
