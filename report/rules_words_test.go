package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	madeup "github.com/dpsight/dpsight/analyze/fixture/summaries"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/screen"
)

// If the runs of a study have categories of different versions of the rules, a note names the runs of each version. The
// note includes a baseline from another store. With one version there is no note.
func TestRulesOfStudy(t *testing.T) {
	a, b, c := madeup.Ran("a", "ghost", 1000), madeup.Ran("b", "flash", 1000), madeup.Ran("c", "vanilla", 1000)
	a.Rules, b.Rules, c.Rules = new(10), new(10), new(10)
	study := compare.NewStudy([]analyze.Summary{a, b}, &c)
	if notes := rulesOfStudy(&study); notes != nil {
		t.Errorf("%q", notes)
	}
	b.Rules, c.Rules = new(9), new(0)
	study = compare.NewStudy([]analyze.Summary{a, b}, &c)
	const want = "categories by different rules are not comparable: rules of unknown version (baseline vanilla), " +
		"rules 9 (flash), rules 10 (ghost); dpsight ingest --again STORE makes all by the same rules"
	if notes := rulesOfStudy(&study); len(notes) != 1 || notes[0] != want {
		t.Errorf("%q", notes)
	}
}

// On a screen of 80 columns, a table shows a limited number of moved bytes and counts the rest. JSON has all of them.
func TestMovedIsBounded(t *testing.T) {
	doc := schemas.Ingested{Schema: schemas.IngestedSchema, Inputs: []schemas.IngestedInput{{}, {}}}
	for i := range 30 {
		doc.Remade = append(doc.Remade, schemas.Remade{RunID: fmt.Sprintf("20261122T203420Z-vanilla-cde3%02d", i),
			RulesBefore: 9, Rules: 10, Moved: []schemas.Moved{
				{Device: "cuda:0", Category: new(schemas.OptimizerTemporaries), AfterBytes: 123456 << 20},
				{Device: "cuda:0", BeforeBytes: 123456 << 20}}})
	}
	shown := func(format string) string {
		var out strings.Builder
		if err := table.Write(&screen.Output{Writer: &out, Columns: 80}, format, IngestedTables(doc, format)...); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := shown("table")
	for line := range strings.Lines(text) {
		if n := screen.Width(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if n := strings.Count(text, "-vanilla-"); n != mostMoved ||
		!strings.Contains(text, "20 more lines: --format json") ||
		!strings.Contains(text, "optimizer_temporaries") || !strings.Contains(text, "peak allocated") {
		t.Errorf("%d lines\n%s", n, text)
	}
	if n := strings.Count(shown("csv"), "-vanilla-"); n != 60 {
		t.Errorf("CSV has %d lines", n)
	}
	if n := strings.Count(shown("json"), `"after_bytes"`); n != 60 {
		t.Errorf("JSON has %d", n)
	}
	for i := range doc.Remade {
		doc.Remade[i].Moved = nil
	}
	if text := shown("table"); strings.Contains(text, "moved") {
		t.Errorf("nothing moved:\n%s", text)
	}
}
