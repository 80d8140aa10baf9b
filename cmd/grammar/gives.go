package grammar

import (
	"slices"

	"github.com/alecthomas/kong"
)

// Gives reports whether a command line itself has a flag, and not the environment alone.
func Gives(line *kong.Context, flag string) bool {
	return slices.ContainsFunc(line.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == flag })
}
