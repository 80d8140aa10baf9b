package main

import (
	"errors"

	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report"
)

type accuracyCmd struct {
	analysis
	Predicted []string `help:"${predicted}" placeholder:"FILE|RUN"`
	ByDoubt   bool     `help:"Print instead how far off predictions were, for each kind of doubt."`
}

func (accuracyCmd) Help() string { return help("accuracy") }

func (c *accuracyCmd) Run(s *streams) error {
	doc, err := s.source(c.Store).Accuracy(c.Predicted, c.Names, version)
	if err != nil {
		return err
	}
	if len(doc.Experiments) == 0 && (c.ByDoubt || doc.Fitting.Of == 0) {
		return withHint(errors.New("no experiment was both measured and predicted"), "predict what was measured, with "+
			"the same name and parameters: dpsight collect --device phantom --store predicted …")
	}
	if c.ByDoubt {
		return c.write(s, report.KnownErrorsTable(predict.KnownErrorsOf(doc)))
	}
	return c.write(s, report.AccuracyTable(doc))
}
