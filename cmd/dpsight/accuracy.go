package main

import (
	"errors"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
)

type accuracyCmd struct {
	analysis
	Predicted string `help:"The predictions: a file that dpsight check --write-baseline wrote of them, or runs (default: the predicted runs among those named)." placeholder:"FILE|RUN"`
}

func (accuracyCmd) Help() string {
	return `Holds predictions beside measured runs of the same experiments: peak allocated and reserved, how many blocks were allocated, and how
many bytes of the peak are under another category. Experiments are matched by content, as dpsight check does. A file that dpsight
check --write-baseline wrote of the measured runs stands for them.

Examples:
  dpsight collect --suite quick --device phantom --store predicted
  dpsight analyze accuracy --predicted predicted examples/quick
  dpsight check --write-baseline predicted.json predicted
  dpsight analyze accuracy --predicted predicted.json examples/quick --format markdown
  dpsight analyze accuracy --predicted examples/accuracy/predicted-first.json examples/accuracy/recorded-first.json`
}

func (c *accuracyCmd) Run(s *streams) error {
	if c.Predicted != "" && len(c.Names) == 1 && isFile(c.Names[0]) {
		predicted, _, err := gateBaseline(s, c.Store, c.Predicted)
		if err != nil {
			return err
		}
		measured, _, err := gateBaseline(s, c.Store, c.Names[0])
		if err != nil {
			return err
		}
		return c.write(s, analyze.AccuracyOf(*predicted, *measured, c.Predicted))
	}
	_, runs, err := summarized(s, c.Store, c.Names)
	if err != nil {
		return err
	}
	name, predicted := c.Predicted, analyze.BaselineOf(analyze.Predictions(runs), version)
	if c.Predicted != "" {
		b, _, err := gateBaseline(s, c.Store, c.Predicted)
		if err != nil {
			return err
		}
		predicted = *b
	} else {
		name = "the predicted runs"
	}
	return c.write(s, analyze.Accuracy(predicted, runs, name))
}

func (c *accuracyCmd) write(s *streams, doc analyze.AccuracyDocument) error {
	if len(doc.Experiments) == 0 {
		return withHint{errors.New("no experiment was both measured and predicted"),
			"predict what was measured, with the same name and parameters: dpsight collect --device phantom --store predicted …"}
	}
	return table.Write(s.out, c.Format, report.AccuracyTable(doc))
}
