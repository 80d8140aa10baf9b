package grammar

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// HelpWithDefault adds what a flag is where it is left out, which the parser's own help does not show beside a
// placeholder.
func HelpWithDefault(v *kong.Value) string {
	help := kong.DefaultHelpValueFormatter(v)
	if !v.HasDefault || v.Default == "" || v.IsBool() || strings.Contains(help, "(default") ||
		strings.Contains(help, "; default ") {
		return help
	}
	return fmt.Sprintf("%s (default: %s).", strings.TrimSuffix(help, "."), v.Default)
}

// HideShortForms leaves the analyses to the help of analyze.
func HideShortForms(program *kong.Node) {
	for _, analyze := range program.Children {
		for _, n := range program.Children {
			n.Hidden = n.Hidden || slices.ContainsFunc(analyze.Children, func(c *kong.Node) bool { return c.Name == n.Name })
		}
	}
}
