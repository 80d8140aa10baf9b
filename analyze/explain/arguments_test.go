package explain

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture/summaries"
)

// Runs of one script under names of their own are compared, and it is said that their arguments differ, but for those
// that a parameter says.
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
	const note = "compared though the commands differ in their arguments: --batch-size 32, baseline --batch-size 4"
	if !slices.ContainsFunc(doc.Warnings, func(w string) bool { return strings.HasSuffix(w, note) }) {
		t.Errorf("%q", doc.Warnings)
	}
}
