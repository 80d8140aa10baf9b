package compare_test

import (
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report"
)

// inWords returns a copy of the document with the warnings that package report adds when it prints the document.
func inWords(doc OverheadDocument) OverheadDocument {
	return report.OverheadTables(Study{Overhead: &doc})[0].Document.(OverheadDocument)
}

// told returns a copy of a study in which the overheads have package report's warnings. A study without a baseline has
// no overheads and stays as it is.
func told(s Study) Study {
	if s.Overhead == nil {
		return s
	}
	doc := inWords(*s.Overhead)
	s.Overhead = &doc
	for i := range s.Cells {
		s.Cells[i].Overhead.Warnings = doc.Cells[i].Warnings
	}
	return s
}

// kinds returns the kind of each remark.
func kinds(remarks []Remark) (out []RemarkKind) {
	for _, r := range remarks {
		out = append(out, r.Kind)
	}
	return out
}
