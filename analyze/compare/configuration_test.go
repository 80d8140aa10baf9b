package compare_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	. "github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/report"
)

// A configuration lists common and partial facts. A fact that only some runs have is not common. A fact whose values
// differ is neither common nor partial.
func TestConfiguration(t *testing.T) {
	s := told(NewMatchedStudy([]analyze.Summary{
		summaries.Ran("1", "vanilla", 1000, "model", "lm", "batch_size", 16, "seq_len", 512, "precision", "fp32"),
		summaries.Ran("2", "ghost", 1500, "model", "lm", "batch_size", 8, "seq_len", 512, "precision", "fp32",
			"max_grad_norm",
			1),
		summaries.Ran("3", "vanilla", 800, "model", "mlp", "batch_size", 16, "precision", "fp32"),
	}, nil, ""))
	c := s.Configuration
	var common, some []string
	for _, f := range c.Common {
		common = append(common, f.What)
	}
	for _, f := range c.Some {
		some = append(some, fmt.Sprintf("%s=%s %d", f.What, f.Value, len(f.Runs)))
	}
	if got := fmt.Sprint(common, some, c.Varying); got != "[precision] [seq_len=512 2 max_grad_norm=1 1] [method "+
		"model batch_size]" {
		t.Error(got)
	}
}

// If an experiment has no baseline with the same parameters, the study's label for baselines says so. For each
// experiment, the study lists how it differs from its baseline.
func TestBaselinesThatAreNotOfTheSameParameters(t *testing.T) {
	script := summaries.Ran("s", "", 500)
	script.Params = map[string]any{}
	v8, v16 := summaries.Ran("v8", "vanilla", 1000, "batch_size", 8, "model", "lm"),
		summaries.Ran("v16", "vanilla", 2000, "batch_size", 16,
			"model", "lm")
	for _, c := range []struct {
		runs  []analyze.Summary
		label string
		said  string
	}{
		{[]analyze.Summary{v8, v16, summaries.Ran("g", "ghost", 1500, "batch_size", 8, "model", "lm")},
			"the baseline of the same parameters", ""},
		{[]analyze.Summary{v8, v16, summaries.Ran("g", "ghost", 1500, "batch_size", 32, "model", "lm")},
			"the baseline of the nearest parameters", "batch_size differs: 32, baseline 8"},
		{[]analyze.Summary{v8, v16, script}, "the baseline of the nearest parameters",
			"only one of the two names its method"},
		{[]analyze.Summary{v8, script}, "v8", "only one of the two names its method"},
	} {
		for i := range c.runs {
			c.runs[i].Name = c.runs[i].RunID
		}
		s := told(NewMatchedStudy(c.runs, nil, ""))
		last := &s.Cells[len(s.Cells)-1]
		said := strings.Join(last.Overhead.Warnings, "; ")
		over := report.OverheadTables(s)[0].Title
		if over != "Overhead over "+c.label || c.said == "" && said != "" || !strings.Contains(said, c.said) {
			t.Errorf("%q, said %q, want %q, %q", over, said, c.label, c.said)
		}
		if unlike := last.UnlikeBaseline(); (len(unlike) > 0) != strings.Contains(c.said, "differs") {
			t.Errorf("unlike its baseline in %+v, said %q", unlike, c.said)
		}
	}
}
