package main

import (
	"errors"
	"strings"

	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/selected"
)

type accuracyCmd struct {
	analysis
	Predicted []string `help:"The predictions: a file that dpsight check --write-baseline wrote of them, or runs; may be repeated (default: the predicted runs among those named)." placeholder:"FILE|RUN"`
	ByDoubt   bool     `help:"Print by kind of doubt how far off the predictions called close were, instead."`
}

func (accuracyCmd) Help() string { return help("accuracy") }

func (c *accuracyCmd) Run(s *streams) error {
	from := s.source(c.Store)
	if len(c.Predicted) == 0 {
		_, runs, err := from.Summaries(c.Names, selected.LeaveNone)
		if err != nil {
			return err
		}
		predicted := gate.BaselineOf(predict.Predictions(runs), version)
		return c.print(s, predict.Accuracy(predicted, runs, "the predicted runs"))
	}
	predicted, err := from.ReadBaselines("--predicted", c.Predicted, version, selected.LeaveNone)
	if err != nil {
		return err
	}
	files, names := filesAmong(c.Names)
	measured, err := from.ReadBaselines("what was measured", files, version, selected.LeaveNone)
	if err != nil {
		return err
	}
	if len(names) > 0 || len(c.Names) == 0 {
		_, runs, err := from.Summaries(names, selected.LeaveNone)
		if err != nil {
			return err
		}
		measured.Experiments = append(measured.Experiments, predict.Measurements(runs).Experiments...)
	}
	return c.print(s, predict.AccuracyOf(predicted, measured, strings.Join(c.Predicted, ", ")))
}

// filesAmong tells files from the names of runs.
func filesAmong(args []string) (files, names []string) {
	for _, arg := range args {
		if selected.IsFile(arg) {
			files = append(files, arg)
		} else {
			names = append(names, arg)
		}
	}
	return files, names
}

func (c *accuracyCmd) print(s *streams, doc predict.AccuracyDocument) error {
	if len(doc.Experiments) == 0 && (c.ByDoubt || doc.Fitting.Of == 0) {
		return withHint{errors.New("no experiment was both measured and predicted"),
			"predict what was measured, with the same name and parameters: dpsight collect --device phantom --store " +
				"predicted …"}
	}
	if c.ByDoubt {
		return c.write(s, report.KnownErrorsTable(predict.KnownErrorsOf(doc)))
	}
	return c.write(s, report.AccuracyTable(doc))
}
