package selected

import (
	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// Ending returns what is printed about the only run when it has ended. Ending does not look at other runs of the store:
// reading thousands of them would take longer than the run.
func (r *Runs) Ending() (e report.Ending, err error) {
	_, err = r.Each(findings.Tables, false, func(in schemas.Tables) error {
		checked := findings.CheckRun(in)
		found := findings.Find([]findings.Checked{checked}, nil)
		e.Run, e.Found, e.Dir = &checked.Summary, &found.Runs[0], r.Runs[0].Dir
		return nil
	})
	return e, err
}

// PredictionTables returns tables of predicted runs in a format. For a single run, people get its ending instead,
// unless they request all tables.
func (s *Source) PredictionTables(runs []predict.PredictionRun, dirs []string, format string,
	verbose bool) ([]table.Table, error) {
	if len(runs) != 1 || verbose || format != table.Formats[0].Name {
		return report.PredictionTables(predict.NewPredictionDocument(runs...)), nil
	}
	one, err := s.Folder(dirs[0])
	if err != nil {
		return nil, err
	}
	e, err := one.Ending()
	if err != nil {
		return nil, err
	}
	e.Prediction = &runs[0]
	return []table.Table{report.EndingTable(e)}, nil
}
