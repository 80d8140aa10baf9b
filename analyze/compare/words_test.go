package compare_test

import (
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report"
)

// inWords returns a document with its words, as it is printed.
func inWords(doc OverheadDocument) OverheadDocument {
	return report.OverheadTables(Study{Overhead: &doc})[0].Document.(OverheadDocument)
}

// told returns a study with the words of its overheads. A study without a baseline has none.
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

// kinds are what remarks are about.
func kinds(remarks []Remark) (out []RemarkKind) {
	for _, r := range remarks {
		out = append(out, r.Kind)
	}
	return out
}
