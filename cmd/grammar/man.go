package grammar

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
	mangokong "github.com/alecthomas/mango-kong"
	"github.com/muesli/roff"
)

// Man is the command that prints the manual page.
type Man struct{}

// Help is the text above the options.
func (Man) Help() string {
	return `Prints the manual page, dpsight(1), in roff.

Examples:
  dpsight man > ~/.local/share/man/man1/dpsight.1
  dpsight man | man -l -`
}

// Run prints the page.
func (Man) Run(line *kong.Context) error {
	err := kong.Visit(line.Model, func(v kong.Visitable, next kong.Next) error {
		if n, ok := v.(*kong.Node); ok {
			n.Detail = "" // examples would be filled like prose
		}
		return next(nil)
	})
	if err != nil {
		return err
	}
	var exits, variables strings.Builder
	for _, e := range ExitCodes {
		fmt.Fprintf(&exits, "%s: %s ", e.Code, e.Means)
	}
	for _, v := range Environment {
		fmt.Fprintf(&variables, "%s: %s ", v.Name, v.Means)
	}
	page := mangokong.NewManPage(1, line.Model).
		WithLongDescription("dpsight runs a PyTorch training script and records who holds the bytes of the CUDA caching "+
			"allocator, or predicts it without a GPU. The --help of each command has more, and examples.").
		WithSection("Exit status", exits.String()).
		WithSection("Environment", variables.String())
	// The first line has the time of the call. Man leaves the first line out, so that two builds of the same source
	// have the same page.
	_, text, _ := strings.Cut(page.Build(roff.NewDocument()), "\n")
	_, err = fmt.Fprintf(line.Stdout, ".TH DPSIGHT 1\n%s\n", text)
	return err
}
