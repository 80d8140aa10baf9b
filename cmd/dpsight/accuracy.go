package main

import (
	"errors"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

type accuracyCmd struct {
	analysis
	Predicted []string `help:"The predictions: a file that dpsight check --write-baseline wrote of them, or runs; may be repeated (default: the predicted runs among those named)." placeholder:"FILE|RUN"`
	ByDoubt   bool     `help:"Print by kind of doubt how far off the predictions called close were, instead."`
}

func (accuracyCmd) Help() string {
	return `Holds predictions beside measured runs of the same experiments: peak allocated and reserved, how many blocks were allocated, and how
many bytes of the peak are under another category; and whether what was predicted to fit did. Experiments are matched by content, as dpsight check does. A file that dpsight
check --write-baseline wrote of the measured runs stands for them.

With --by-doubt it prints, for each kind of what made predictions no better than close, how far off these were.

Examples:
  dpsight collect --suite quick --device phantom --store predicted
  dpsight analyze accuracy --predicted predicted examples/quick
  dpsight check --write-baseline predicted.json predicted
  dpsight analyze accuracy --predicted predicted.json examples/quick --format markdown
  dpsight analyze accuracy --predicted examples/accuracy/predicted-development.json examples/accuracy/recorded-development.json
  dpsight analyze accuracy --by-doubt --predicted examples/accuracy/predicted-development.json examples/accuracy/recorded-development.json`
}

func (c *accuracyCmd) Run(s *streams) error {
	if len(c.Predicted) == 0 {
		_, runs, err := summarizedBut(s, c.Store, c.Names, leaveNone)
		if err != nil {
			return err
		}
		return c.write(s, analyze.Accuracy(analyze.BaselineOf(analyze.Predictions(runs), version), runs,
			"the predicted runs"))
	}
	var predicted, measured schemas.Baseline
	for _, name := range c.Predicted {
		b, _, err := gateBaseline(s, c.Store, "--predicted", name, leaveNone)
		if err != nil {
			return err
		}
		predicted.Experiments = append(predicted.Experiments, b.Experiments...)
	}
	var names []string
	for _, name := range c.Names {
		if !isFile(name) {
			names = append(names, name)
			continue
		}
		b, _, err := gateBaseline(s, c.Store, "what was measured", name, leaveNone)
		if err != nil {
			return err
		}
		measured.Experiments = append(measured.Experiments, b.Experiments...)
	}
	if len(names) > 0 || len(c.Names) == 0 {
		_, runs, err := summarizedBut(s, c.Store, names, leaveNone)
		if err != nil {
			return err
		}
		measured.Experiments = append(measured.Experiments, analyze.Measurements(runs).Experiments...)
	}
	return c.write(s, analyze.AccuracyOf(predicted, measured, strings.Join(c.Predicted, ", ")))
}

func (c *accuracyCmd) write(s *streams, doc analyze.AccuracyDocument) error {
	if len(doc.Experiments) == 0 && (c.ByDoubt || doc.Fitting.Of == 0) {
		return withHint{errors.New("no experiment was both measured and predicted"),
			"predict what was measured, with the same name and parameters: dpsight collect --device phantom --store " +
				"predicted …"}
	}
	if c.ByDoubt {
		return table.Write(s.out, c.Format, report.KnownErrorsTable(analyze.KnownErrorsOf(doc)))
	}
	return table.Write(s.out, c.Format, report.AccuracyTable(doc))
}
