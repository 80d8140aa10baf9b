package grammar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// HelpWithDefault appends a flag's default to its help. kong does not show the default of a flag that has a
// placeholder.
func HelpWithDefault(v *kong.Value) string {
	help := kong.DefaultHelpValueFormatter(v)
	if !v.HasDefault || v.Default == "" || v.IsBool() || strings.Contains(help, "(default") ||
		strings.Contains(help, "; default ") {
		return help
	}
	return fmt.Sprintf("%s (default: %s).", strings.TrimSuffix(help, "."), v.Default)
}

// OptionTexts inserts texts into the help of options and commands: ${NAME} stands for the text with that name. entries
// has a line with each name, followed by the lines of its text. Empty lines separate the texts. kong.Vars could do the
// same, but expands every variable for each option, which takes 0.1 s at each start.
func OptionTexts(entries string) kong.Option {
	var pairs []string
	for entry := range strings.SplitSeq(entries, "\n\n") {
		name, text, _ := strings.Cut(entry, "\n")
		pairs = append(pairs, "${"+name+"}", strings.Join(strings.Fields(text), " "))
	}
	texts := strings.NewReplacer(pairs...)
	return kong.PostBuild(func(k *kong.Kong) error {
		return kong.Visit(k.Model, func(v kong.Visitable, next kong.Next) error {
			switch v := v.(type) {
			case *kong.Node:
				v.Help = texts.Replace(v.Help)
			case *kong.Value:
				v.Help = texts.Replace(v.Help)
			}
			return next(nil)
		})
	})
}

// HideShortForms hides the analyses in dpsight's own help. The help of analyze lists them.
func HideShortForms(program *kong.Node) {
	for _, analyze := range program.Children {
		for _, n := range program.Children {
			n.Hidden = n.Hidden || slices.ContainsFunc(analyze.Children, func(c *kong.Node) bool { return c.Name == n.Name })
		}
	}
}
