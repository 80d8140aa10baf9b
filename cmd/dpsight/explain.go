package main

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/report"
)

type explainCmd struct {
	analysis
	Top    int      `help:"${explain_top}" default:"8" placeholder:"N"`
	Labels []string `help:"${labels}" placeholder:"A,B"`
	Out    string   `short:"o" help:"Folder to draw explain_waterfall into, as .png and .svg." placeholder:"DIR"`
	Force  bool     `help:"Overwrite pictures of the same name that dpsight did not draw."`
}

func (explainCmd) Help() string { return help("explain") }

func (c *explainCmd) Run(s *streams) error {
	n := len(c.Labels)
	err := refuse(
		misuse{c.Top < 0, fmt.Sprintf("--top %d: must be 0 or more", c.Top), "as in --top 8; 0 lists all modules"},
		misuse{n != 0 && (n != 2 || c.Labels[0] == "" || c.Labels[0] == c.Labels[1]),
			fmt.Sprintf("--labels %s: two different names are wanted", strings.Join(c.Labels, ",")),
			"as in --labels main,branch"})
	if err != nil {
		return err
	}
	doc, err := s.source(c.Store).Explain(c.Names, c.Labels)
	if err != nil {
		return err
	}
	if c.Out != "" {
		written, err := report.WriteExplanation(c.Out, doc, c.Force)
		if err != nil {
			return err
		}
		s.say(strings.Join(written, ", "))
	}
	return c.write(s, report.ExplainTables(doc, c.Top)...)
}
