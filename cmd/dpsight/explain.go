package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

type explainCmd struct {
	analysis
	Top    int      `help:"Modules to list under each category, and of those that take time; 0 lists all." default:"8" placeholder:"N"`
	Labels []string `help:"What to call the two runs, as main,branch (default: their names, and what tells them apart)." placeholder:"A,B"`
	Out    string   `short:"o" help:"Folder to draw explain_waterfall into, as .png and .svg." placeholder:"DIR"`
}

func (explainCmd) Help() string { return help("explain") }

func (c *explainCmd) Run(s *streams) error {
	const hint = "as in dpsight analyze explain vanilla ghost; dpsight runs lists the runs"
	if c.Top < 0 {
		return withHint{fmt.Errorf("--top %d: must be 0 or more", c.Top), "as in --top 8; 0 lists all modules"}
	}
	if n := len(c.Labels); n != 0 && (n != 2 || c.Labels[0] == "" || c.Labels[0] == c.Labels[1]) {
		return withHint{fmt.Errorf("--labels %s: two different names are wanted", strings.Join(c.Labels, ",")),
			"as in --labels main,branch"}
	}
	runs, err := s.source(c.Store).Select(c.Names)
	if err != nil {
		return err
	}
	switch n := len(runs.Runs); {
	case n == 1 && len(c.Names) == 2:
		return withHint{fmt.Errorf("%s and %s are the same run, %s", c.Names[0], c.Names[1], runs.Runs[0].ID),
			"a run that shares its name with others is named by its id; dpsight runs lists the runs"}
	case n != 2:
		return withHint{fmt.Errorf("two runs are compared, not %d", n), hint}
	}
	var sides []explain.Input
	err = runs.Each(schemas.WantAll|schemas.WantDetail|schemas.WantModuleTimes, false, func(in schemas.Tables) error {
		sides = append(sides, explain.NewInput(in))
		return nil
	})
	if err != nil {
		return err
	}
	if len(sides) != 2 { // a store of two, of which one cannot be read
		return withHint{errors.New("only one of the two runs can be read"), hint}
	}
	for i, label := range c.Labels {
		sides[i].As = label
	}
	a, b := &sides[0], &sides[1]
	explain.TakeRepeats([2]*explain.Input{a, b}, runs.Repeats(&a.Summary, &b.Summary))
	doc, err := explain.Explain(*a, *b)
	if err != nil {
		return withHint{err, hint}
	}
	if c.Out != "" {
		written, err := report.WriteExplanation(c.Out, doc)
		if err != nil {
			return withHint{err, "name a folder that can be written"}
		}
		s.say(strings.Join(written, ", "))
	}
	return c.write(s, report.ExplainTables(doc, c.Top)...)
}
