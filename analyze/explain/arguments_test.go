package explain

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
)

// Explain compares runs of the same script under different names. A note says which arguments of these runs differ. The
// note leaves out arguments whose difference a parameter already shows.
func TestExplainedThoughArgumentsDiffer(t *testing.T) {
	base := summaries.Scripted("base", 1000, map[string]any{"method": "vanilla"}, "python", "train.py", "--batch-size",
		"4")
	other := summaries.Scripted("other", 1000, map[string]any{"method": "ghost"}, "python", "src/train.py", "--dp",
		"ghost",
		"--batch-size", "32")
	doc, err := Explain(Input{Summary: base}, Input{Summary: other})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(doc.Said, func(s compare.Said) bool {
		return s.Kind == compare.RemarkArguments && s.Now == "--batch-size 32" && s.Baseline == "--batch-size 4"
	}) {
		t.Errorf("%+v", doc.Said)
	}
}
