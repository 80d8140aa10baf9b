package report

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// rulesName names a version of the rules of categories.
func rulesName(rules int) string {
	if rules == 0 {
		return "rules of unknown version"
	}
	return fmt.Sprintf("rules %d", rules)
}

// rulesNotes say in one line which rules the categories of several runs were made by. rulesNotes are empty if all runs
// share their rules.
func rulesNotes(ids []*identity.Identity, label func(i int) string) []string {
	apart := identity.RulesApart(ids)
	if apart == nil {
		return nil
	}
	var by []string
	for _, a := range apart {
		var labels []string
		for _, i := range a.Runs {
			labels = include(labels, label(i))
		}
		by = append(by, rulesName(a.Rules)+" ("+schemas.Shortlist(labels, mostNamed)+")")
	}
	return []string{"categories by different rules are not comparable: " + strings.Join(by, ", ") + "; " + sameRules}
}

// sameRules says how to make the categories of all runs by the same rules.
const sameRules = "dpsight ingest --again STORE makes all by the same rules"

// rulesNotesOf returns notes about the rules that made the categories of n runs. Runs have the same names as in the
// document.
func rulesNotesOf(n int, run func(i int) *identity.Identity) []string {
	ids := make([]*identity.Identity, n)
	for i := range ids {
		ids[i] = run(i)
	}
	return rulesNotes(ids, func(i int) string { return ids[i].Shown() })
}

// tellRules adds notes on rules to the last table.
func tellRules(tables []table.Table, n int, run func(i int) *identity.Identity) {
	last := &tables[len(tables)-1]
	last.Notes = append(last.Notes, rulesNotesOf(n, run)...)
}

// rulesOfStudy returns notes on the rules of a study's cells, and of a baseline outside the study's cells.
func rulesOfStudy(s *compare.Study) []string {
	var ids []*identity.Identity
	var labels []string
	seen := map[string]bool{}
	add := func(c *compare.Cell, label string) {
		if !seen[c.RunID] {
			seen[c.RunID] = true
			ids, labels = append(ids, &c.Identity), append(labels, label)
		}
	}
	for i := range s.Cells {
		add(&s.Cells[i], s.Cells[i].Label)
	}
	for i := range s.Cells {
		if b := s.Cells[i].Baseline; b != nil {
			add(b, "baseline "+b.Label)
		}
	}
	return rulesNotes(ids, func(i int) string { return labels[i] })
}
