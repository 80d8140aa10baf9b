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
	page := mangokong.NewManPage(1, line.Model).
		WithLongDescription("dpsight runs a PyTorch training script and records who holds the bytes of the CUDA caching "+
			"allocator, or predicts it without a GPU. The --help of each command has more, and examples.").
		WithSection("Exit status", "0: done. 1: an experiment or a check failed. 2: bad usage or bad input.").
		WithSection("Environment", "DPSIGHT_STORE is the folder of runs where --store is not given. DPSIGHT_PYTHON is the "+
			"interpreter of the built-in experiments. COLUMNS is how wide tables may be; else it is the terminal's "+
			"width. NO_COLOR turns colours off.")
	// The first line has the time of the call: two builds of one source are to have the same page.
	_, text, _ := strings.Cut(page.Build(roff.NewDocument()), "\n")
	_, err = fmt.Fprintf(line.Stdout, ".TH DPSIGHT 1\n%s\n", text)
	return err
}
