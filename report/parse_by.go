package report

import (
	"errors"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/schemas"
)

// defaultTop is the default number of rows in a breakdown by module, line and so on. A model has hundreds of modules.
const defaultTop = 20

// ByOptions are the option --by and the options that need it.
type ByOptions struct {
	Dimensions      string
	Depth           int
	Fold, FullStack bool
	Top             *int // nil if not given
}

// Parse reads the options, and returns nil for a breakdown by category, which has no options.
func (o ByOptions) Parse() (*grouping.By, error) {
	if o.Dimensions == "" {
		if o.Depth != 0 || o.Fold || o.FullStack || o.Top != nil {
			return nil, schemas.WithHint(errors.New("--depth, --fold, --full-stack and --top say how rows of --by are put "+
				"together, and there is no --by"), "as in --by category,module")
		}
		return nil, nil
	}
	parsed, err := grouping.ParseDimensions(o.Dimensions)
	if err != nil {
		return nil, schemas.WithHint(err, "as in --by category,module")
	}
	by := grouping.By{Dimensions: parsed, Depth: o.Depth, Fold: o.Fold, FullStack: o.FullStack, Top: defaultTop}
	if o.Top != nil {
		by.Top = *o.Top
	}
	if err := by.Check(); err != nil {
		return nil, schemas.WithHint(err, "as in --by category,module --depth 2 --top 10")
	}
	return &by, nil
}
