package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// What makes a run's figures doubtful stands below its findings, and what a saving costs beside it.
func TestFindingsNotes(t *testing.T) {
	lay := memory.Layout{Reserved: 8 << 20, Idle: 3 << 20}
	found := findings.Found{Runs: []findings.Run{{Identity: identity.Identity{RunID: "r", Name: "r"},
		Remarks: []analyze.Remark{{Kind: analyze.RemarkEndedEarly, Status: schemas.StatusOOM}},
		NotLooked: []findings.NotLooked{{What: findings.Times,
			Why: "predicted"}},
		Findings: []findings.Finding{
			{ID: findings.ClipTemporaries, Of: findings.OfHighestRecorded, Bytes: new(int64(5 << 20)),
				Highest: findings.Highest{AllocatedBytes: 10 << 20}, Facts: findings.ClipTemporariesFacts{},
				SavesBytes: new(int64(2 << 20)), CostsMS: new(12.5)},
			{ID: findings.Cached, Of: findings.OfRecordedReserved, Facts: findings.CachedFacts{Layout: lay},
				SavesBytes: new(int64(3 << 20))},
			{ID: findings.Cached, Of: findings.OfRecordedReserved, Facts: findings.CachedFacts{Layout: lay}},
			{ID: findings.SharedHooks, Bytes: new(int64(1)), Facts: findings.HookFacts{}},
		}}}}
	notes := FindingsTables(found)[0].Notes
	for _, want := range []string{
		"clip-temporaries: 5.00 MiB (50 %) of the highest recorded moment, outside the steps, are temporaries of " +
			"norms " +
			"and clipping. What to change: smaller physical batches; norms are taken by tiles already. It saves 2.00 " +
			"MiB of the peak allocated and costs 12.5 ms of a step (at most: norms and clipping would need no memory " +
			"of their own).",
		"cached: When what torch reserved was the highest recorded, 8.00 MiB outside the steps, 3.00 MiB (38 %) of " +
			"it held nothing: 3.00 MiB in segments without any block, and 0.00 MiB between blocks, which no call of " +
			"empty_cache gives back. What to change: " + expandable + ". It saves 3.00 MiB of the peak reserved (at " +
			"most: reserved would have to follow allocated to the byte, so that the highest of both are equal).",
		"not looked at: times: predicted runs have none",
		"saves –: cached: this run does not tell how much the change would save",
		"saves –: shared-hooks: there is nothing to change",
		"the run ended early (oom): its peak and times are of what it did until then",
	} {
		if !slices.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(notes, "\n"))
		}
	}
	of := slices.IndexFunc(findingColumns, func(c table.Column) bool { return c.Key == "of" })
	if got := FindingsTables(found)[0].Rows[0][of].Text; got != "highest recorded" {
		t.Errorf("of %q", got)
	}
}

// A finding names its line; where none is known, a note says what finds it.
func TestFindingsNameTheirLine(t *testing.T) {
	line := schemas.Line{File: "train.py", Number: 46, Function: "main", Text: "x = model(y)"}
	run := findings.Run{Identity: identity.Identity{RunID: "r", Name: "r"}, Findings: []findings.Finding{
		{ID: findings.SharedHooks, Bytes: new(int64(5 << 20)), Facts: findings.HookFacts{}, OfBlocks: true,
			Line: &findings.LinePart{Line: &line, Bytes: 3 << 20}},
		{ID: findings.ClipTemporaries, Bytes: new(int64(1)), Facts: findings.ClipTemporariesFacts{}, OfBlocks: true}}}
	notes := func(change func(*findings.Run)) string {
		r := run
		change(&r)
		return strings.Join(FindingsTables(findings.Found{Runs: []findings.Run{r}})[0].Notes, "\n")
	}
	const unknown = "which line of the script asked is not known of clip-temporaries: "
	for want, change := range map[string]func(*findings.Run){
		" train.py:46 asked for 3.00 MiB of it (x = model(y)).":                            func(*findings.Run) {},
		unknown + "dpsight collect and predict record lines, unless --lines none is given": func(*findings.Run) {},
		unknown + "dpsight collect --stacks python has the stacks of what asked": func(r *findings.Run) {
			r.Lines = true
		},
		unknown + "dpsight analyze breakdown r --by stack has the stacks": func(r *findings.Run) {
			r.Source = schemas.Imported
		},
	} {
		if got := notes(change); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	told := NewFindingsDocument(findings.Found{Runs: []findings.Run{run}}).Runs[0].Findings
	if l := told[0].Line; l == nil || l.File != "train.py" || l.Line != 46 || l.Bytes != 3<<20 || told[1].Line != nil {
		t.Errorf("%+v, %+v", l, told[1].Line)
	}
}

// Every finding that analyze names has its words.
func TestEveryFindingHasWords(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../analyze/findings/findings.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, decl := range f.Decls {
		consts, is := decl.(*ast.GenDecl)
		if !is || consts.Tok != token.CONST {
			continue
		}
		for _, spec := range consts.Specs { // the first block has them
			id, err := strconv.Unquote(spec.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			named = append(named, id)
		}
		break
	}
	slices.Sort(named)
	if worded := slices.Sorted(maps.Keys(findingWords)); len(named) < 20 || !slices.Equal(named, worded) {
		t.Errorf("named %q, with words %q", named, worded)
	}
}
