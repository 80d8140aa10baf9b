package paper_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/report/paper"
	"github.com/dpsight/dpsight/schemas"
)

// renamed returns a copy of a recorded run with another name, which alone identifies the copy.
func renamed(s *analyze.Summary, name string) analyze.Summary {
	odd := *s
	odd.Name, odd.RunID, odd.Params = name, "20260101T000000Z-"+name, map[string]any{"case": name}
	odd.Key, odd.SuiteID, odd.Suite = "", "", ""
	odd.RunFacts = []identity.Fact{{What: "case", Value: name, Param: true}}
	return odd
}

// oddModels returns the models of papers of unusual stores.
func oddModels(t *testing.T) map[string]paper.Model {
	t.Helper()
	whole := configured(t, "headline", func(c *paper.Config) { c.Steps = paper.AllSteps })
	runs := whole.Study.Runs
	of := func(list ...analyze.Summary) paper.Model {
		m := whole
		m.Study = compare.NewStudy(list, &list[0])
		m.Views = map[string]*exhibits.View{}
		for i := range list { // a run with an odd name is drawn with the data of a recorded run
			m.Views[list[i].RunID] = whole.Views[runs[i%len(runs)].RunID]
		}
		return m
	}
	long := strings.Repeat("a_very_long_name&%#~^", 3)[:60]
	var forty []analyze.Summary
	for i := range 40 {
		forty = append(forty, renamed(&runs[0], fmt.Sprintf("run_%d_%s", i, long[:40])))
	}
	large, small := renamed(&runs[0], "large"), renamed(&runs[1], "one_byte")
	large.PeakBytes, small.PeakBytes = new(int64(100<<30)), new(int64(1))
	var failed []analyze.Summary
	for i, status := range []string{schemas.StatusOOM, schemas.StatusOOM, schemas.StatusFailed} {
		s := renamed(&runs[i], fmt.Sprintf("oom %d", i))
		s.Status = status
		failed = append(failed, s)
	}
	return map[string]paper.Model{
		"one":     of(renamed(&runs[0], "alone")),
		"forty":   of(forty...),
		"long":    of(renamed(&runs[0], long), renamed(&runs[1], long+"1"), renamed(&runs[2], long+"2")),
		"chinese": of(renamed(&runs[0], "基线训练"), renamed(&runs[1], "幽灵裁剪方法的长名称"), renamed(&runs[2], "每样本 梯度")),
		"sizes":   of(large, small),
		"all oom": of(failed...),
	}
}

// Papers of unusual stores are written without LaTeX too. Names are not read as LaTeX commands, no two rows have the
// same label, and failed runs are marked as failed.
func TestOddPapers(t *testing.T) {
	t.Parallel()
	for name, m := range oddModels(t) {
		dir := t.TempDir()
		if _, err := paper.Write(dir, m); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, rows := texRows(t, read(t, dir, "tables", "main.tex"))
		want := min(len(m.Study.Cells), 44)
		if len(rows) != want {
			t.Errorf("%s: %d rows of %d experiments", name, len(rows), want)
		}
		seen := map[string]bool{}
		for _, r := range rows {
			if seen[r.label] {
				t.Errorf("%s: two rows are %q", name, r.label)
			}
			seen[r.label] = true
		}
		switch name {
		case "long":
			if !strings.Contains(read(t, dir, "tables", "main.tex"), `a very lo`) {
				t.Errorf("%v", rows)
			}
		case "all oom":
			if rows[0].cells[0] != "OOM" || rows[2].cells[0] != "failed" {
				t.Errorf("%v", rows)
			}
		case "sizes":
			if rows[1].cells[0] != "<0.01" || rows[0].cells[0] != "100.00" {
				t.Errorf("%v", rows)
			}
		case "chinese":
			if !strings.Contains(read(t, dir, "tables", "main.tex"), `\dpsCJK{基线训练}{run 1}`) {
				t.Errorf("%v", rows)
			}
		}
	}
}
