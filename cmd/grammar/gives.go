package grammar

import (
	"slices"

	"github.com/alecthomas/kong"
)

// Gives reports whether the command line itself has a flag, rather than only the environment.
func Gives(line *kong.Context, flag string) bool {
	return slices.ContainsFunc(line.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == flag })
}
