package join

import (
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// dtype is the data type of the tensors that were tagged in an allocation.
type dtype struct {
	of    spool.DType // dtype of the tags; 0 = no tag has one
	mixed bool        // the block has tags of several dtypes
}

// name returns the dtype's name in allocations.parquet; empty if the dtype is unknown.
func (d dtype) name() string {
	if d.mixed {
		return schemas.MixedDTypes
	}
	return d.of.String()
}

// findDTypes reads dtypes from tags. An allocation without a tag takes its match's dtype.
func findDTypes(f *facts, tags lists[boundTag], m *matches, prefetched []bool) []dtype {
	out := make([]dtype, len(f.allocs))
	for alloc := range out {
		d := &out[alloc]
		for _, b := range tags.of(alloc) {
			switch t := f.context.tags[b.tag].DType; {
			case t == 0 || t == d.of:
			case d.of == 0:
				d.of = t
			default:
				d.mixed = true
			}
		}
	}
	for alloc := range out {
		if match, ok := m.of(alloc); ok && out[alloc].of == 0 && !isPrefetched(prefetched, alloc) {
			out[alloc] = out[match]
		}
	}
	return out
}
