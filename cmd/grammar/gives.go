package grammar

import (
	"slices"

	"github.com/alecthomas/kong"
)

// Gives reports whether a flag stands on the command line. A flag that only the environment sets does not count.
func Gives(line *kong.Context, flag string) bool {
	return slices.ContainsFunc(line.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == flag })
}
