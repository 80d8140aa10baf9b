package compare_test

import (
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report"
)

// inWords returns a document with the warnings that report adds when it prints the document.
func inWords(doc OverheadDocument) OverheadDocument {
	return report.OverheadTables(Study{Overhead: &doc})[0].Document.(OverheadDocument)
}

// told returns a study with report's warnings on its overheads. A study without a baseline has no overheads.
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

// kinds returns the kinds of remarks.
func kinds(remarks []Remark) (out []RemarkKind) {
	for _, r := range remarks {
		out = append(out, r.Kind)
	}
	return out
}
