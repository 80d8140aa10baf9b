package selected

import (
	"errors"
	"fmt"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/schemas"
)

const pairHint = "as in dpsight explain vanilla ghost; dpsight runs lists the runs"

// Explain explains why the second of two runs takes more or less than the first. labels are the names to show. Without
// labels, Explain shows the runs' own names.
func (s *Source) Explain(names, labels []string) (doc explain.Explanation, err error) {
	r, err := s.Select(names)
	if err != nil {
		return doc, err
	}
	switch n := len(r.Runs); {
	case n == 1 && len(names) == 2:
		return doc, schemas.WithHint(fmt.Errorf("%s and %s are the same run, %s", names[0], names[1], r.Runs[0].ID),
			"a run that shares its name with others is named by its id; dpsight runs lists the runs")
	case n != 2:
		return doc, schemas.WithHint(fmt.Errorf("two runs are compared, not %d", n), pairHint)
	}
	sides, err := RowsOf(r, explain.Tables, explain.NewInput)
	if err != nil {
		return doc, err
	}
	if len(sides) != 2 { // for example a store of two runs if one of them cannot be read
		return doc, schemas.WithHint(errors.New("only one of the two runs can be read"), pairHint)
	}
	for i, label := range labels {
		sides[i].As = label
	}
	a, b := &sides[0], &sides[1]
	around := r.repeats([]*analyze.Summary{&a.Summary, &b.Summary})
	explain.NoteRepeats(explain.TakeRepeats([2]*explain.Input{a, b}, around))
	if doc, err = explain.Explain(*a, *b); err != nil {
		return doc, schemas.WithHint(err, pairHint)
	}
	return doc, nil
}
