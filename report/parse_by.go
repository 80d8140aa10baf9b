package report

import (
	"errors"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/schemas"
)

// defaultTop is how many rows a breakdown by modules or the like has: a model has hundreds of modules, a screen some
// lines.
const defaultTop = 20

// ParseBy reads --by and the options that go with it; nil is a breakdown by category, for which there are none.
func ParseBy(dimensions string, depth int, fold bool, top *int) (*grouping.By, error) {
	if dimensions == "" {
		if depth != 0 || fold || top != nil {
			return nil, schemas.WithHint(errors.New("--depth, --fold and --top say how rows of --by are put together, "+
				"and there is no --by"), "as in --by category,module")
		}
		return nil, nil
	}
	parsed, err := grouping.ParseDimensions(dimensions)
	if err != nil {
		return nil, schemas.WithHint(err, "as in --by category,module")
	}
	by := grouping.By{Dimensions: parsed, Depth: depth, Fold: fold, Top: defaultTop}
	if top != nil {
		by.Top = *top
	}
	if err := by.Check(); err != nil {
		return nil, schemas.WithHint(err, "as in --by category,module --depth 2 --top 10")
	}
	return &by, nil
}
