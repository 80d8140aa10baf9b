package report

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
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
	"github.com/dpsight/dpsight/schemas/screen"
)

// A finding is printed as a short block of text. Doubts about the run's figures come below all findings.
func TestFindingsBlocks(t *testing.T) {
	lay := memory.Layout{Reserved: 8 << 20, Idle: 3 << 20}
	found := findings.Found{Runs: []findings.Run{{Identity: identity.Identity{RunID: "r", Name: "r"},
		Remarks: []analyze.Remark{{Kind: analyze.RemarkEndedEarly, Status: schemas.StatusOOM}},
		NotLooked: []findings.NotLooked{{What: findings.Times,
			Why: "predicted"}},
		Findings: []findings.Finding{
			{ID: findings.ClipTemporaries, Of: findings.OfHighestRecorded, Bytes: new(int64(5 << 20)),
				Highest: findings.Highest{AllocatedBytes: 10 << 20}, Facts: findings.ClipTemporariesFacts{},
				SavesBytes: new(int64(2 << 20)), CostsMS: new(12.5), Confidence: findings.AtMost},
			{ID: findings.Cached, Of: findings.OfRecordedReserved, Facts: findings.CachedFacts{Layout: lay},
				SavesBytes: new(int64(3 << 20)), Confidence: findings.AtMost},
			{ID: findings.Cached, Of: findings.OfRecordedReserved, Facts: findings.CachedFacts{Layout: lay}},
			{ID: findings.SharedHooks, Bytes: new(int64(1)), Facts: findings.HookFacts{}},
		}}}}
	print := func(v FindingsView) string {
		var b strings.Builder
		if err := table.Write(&b, "table", v.Tables(found)...); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const short = `Findings in r
1. Norms and clipping need temporaries: 5.00 MiB [clip-temporaries]
   change  use smaller physical batches; norms are computed by tiles already
   saves   2.00 MiB of the peak allocated, 20 %; costs 12.5 ms of a step
   sure    at most: norms and clipping would need no memory of their own

2. 3.00 MiB of the 8.00 MiB that torch reserved were unused [cached]
   change  ` + expandable + `
   saves   3.00 MiB of the peak reserved
   sure    at most: reserved memory would never exceed the peak allocated

3. 3.00 MiB of the 8.00 MiB that torch reserved were unused [cached]
   seen    Reserved memory had the highest recorded value outside the steps: 8.00 MiB. ` +
		`Of it, 3.00 MiB (38 %) were unused: 3.00 MiB in segments without any block, and 0.00 MiB between blocks, ` +
		`which empty_cache cannot free.
   change  ` + expandable + `
   saves   unknown from this run

note: nothing to change for shared-hooks: --all explains why
note: do not add savings up: each assumes that nothing else changes
note: not checked: times: predicted runs have none
note: the run ended early (oom): its peak and times are of what it did until then
`
	if got := print(FindingsView{}); got != short {
		t.Errorf("got\n%s\nwant\n%s", got, short)
	}
	all := print(FindingsView{All: true})
	for _, want := range []string{
		"   seen    Temporaries of norms and clipping are 5.00 MiB (50 %) of the highest recorded moment, outside " +
			"the steps.\n",
		"4. DP hooks add 0.00 MiB, not the 0.00 MiB that they hold [shared-hooks]\n   seen    The hooks of the DP " +
			"method hold",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	of := slices.IndexFunc(findingColumns, func(c table.Column) bool { return c.Key == "of" })
	if got := (FindingsView{}).Tables(found)[0].Rows[0][of].Text; got != "highest recorded" {
		t.Errorf("of %q", got)
	}
	for schema, want := range map[int]string{1: FindingsSchema1, 2: FindingsSchema} {
		text, err := json.Marshal((FindingsView{Schema: schema}).Tables(found)[0].Document)
		if err != nil || !strings.Contains(string(text), `"schema":"`+want+`"`) ||
			strings.Contains(string(text), `"saves_bytes"`) != (schema == 1) ||
			strings.Contains(string(text), `"confidence":"at_most"`) != (schema == 2) {
			t.Errorf("%d: %v, %s", schema, err, text)
		}
	}
	found.Runs[0].Findings = slices.Repeat(found.Runs[0].Findings[:1], findingsShown+2)
	if got := print(FindingsView{}); strings.Contains(got, "\n6. ") ||
		!strings.Contains(got, "note: 2 more findings, clip-temporaries: --all prints them, with details\n") {
		t.Error(got)
	}
}

// The table of FindingKinds has exactly one row for each kind of finding.
func TestFindingKinds(t *testing.T) {
	rows := map[string]int{}
	for _, kind := range FindingKinds {
		rows[kind.ID]++
		if findingWords[kind.ID] == nil || kind.Means == "" || kind.Do == "" {
			t.Errorf("%+v is no kind of finding, or says nothing", kind)
		}
	}
	for id := range findingWords {
		if rows[id] != 1 {
			t.Errorf("%s has %d rows", id, rows[id])
		}
	}
}

// On a terminal no line of a finding is wider than the terminal. The text after a label is indented to the first word
// of the text.
func TestFindingsAreWrapped(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	line := schemas.Line{File: "train.py", Number: 46, Function: "evaluate", Text: "losses.append(model(x))"}
	found := findings.Found{Runs: []findings.Run{{Identity: identity.Identity{RunID: "r", Name: "r"},
		Findings: []findings.Finding{{ID: findings.OutputCopies, Bytes: new(int64(84 << 20)), OfBlocks: true,
			Line: &findings.LinePart{Line: &line, Bytes: 84 << 20}, Phase: schemas.PhaseEval, Holder: "losses[17]",
			Module:  &schemas.Module{Path: "net.0", Class: "Linear"},
			Highest: findings.Highest{AllocatedBytes: 840 << 20, IsPeak: true}, Confidence: findings.AtMost,
			Facts:      findings.OutputCopiesFacts{SizeBytes: 42 << 20, Copies: 2, Parts: 8},
			SavesBytes: new(int64(73 << 20))}}}}}
	var b strings.Builder
	if err := table.Write(screen.On(&b, false), "table", (FindingsView{}).Tables(found)...); err != nil {
		t.Fatal(err)
	}
	const want = `Findings in r
1. Head and loss hold 2 blocks of the output's size: 84.00 MiB [output-copies]
   where   allocated at train.py:46 in evaluate: losses.append(model(x)); module
           net.0; phase eval
   holder  losses[17]
   change  compute head and loss for a part of the tokens at a time, or use a
           fused kernel that never holds all logits and their gradients
   saves   73.00 MiB of the peak allocated, 9 %
   sure    at most, if the loss is computed in 8 parts, each with 1/8 of these
           blocks; the sum of the head's gradients is not counted; all other
           allocations stay as they are
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	told := NewFindingsDocument(found).Runs[0].Findings[0]
	if p := told.Place; told.Holder.Path != "losses[17]" || *p.Phase != "eval" || *p.Module != "net.0" ||
		p.Line.Line != 46 || *told.Saving.Bytes != 73<<20 || told.Saving.Of != findings.OfPeakAllocated {
		t.Errorf("%+v", told)
	}
}

// A finding names the line of the script that allocated the memory. If this line is unknown, a note says how to find
// it.
func TestFindingsNameTheirLine(t *testing.T) {
	line := schemas.Line{File: "train.py", Number: 46, Function: "main", Text: "x = model(y)"}
	run := findings.Run{Identity: identity.Identity{RunID: "r", Name: "r"}, Findings: []findings.Finding{
		{ID: findings.SharedHooks, Bytes: new(int64(5 << 20)), Facts: findings.HookFacts{}, OfBlocks: true,
			Line: &findings.LinePart{Line: &line, Bytes: 3 << 20}},
		{ID: findings.ClipTemporaries, Bytes: new(int64(1)), Facts: findings.ClipTemporariesFacts{}, OfBlocks: true}}}
	notes := func(change func(*findings.Run)) string {
		r := run
		change(&r)
		var b strings.Builder
		found := findings.Found{Runs: []findings.Run{r}}
		if err := table.Write(&b, "table", (FindingsView{All: true}).Tables(found)...); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	const unknown = "no line of the script is known for clip-temporaries: "
	for want, change := range map[string]func(*findings.Run){
		" train.py:46 allocated 3.00 MiB of it (x = model(y)).":                            func(*findings.Run) {},
		unknown + "dpsight collect and predict record lines, unless --lines none is given": func(*findings.Run) {},
		unknown + "dpsight collect --stacks python records the stack of each request": func(r *findings.Run) {
			r.Lines = true
		},
		unknown + "dpsight breakdown r --by stack shows stacks": func(r *findings.Run) {
			r.Source = schemas.Imported
		},
	} {
		if got := notes(change); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	told := NewFindingsDocument(findings.Found{Runs: []findings.Run{run}}).Runs[0].Findings
	if l := told[0].Place.Line; l == nil || l.File != "train.py" || l.Line != 46 || l.Bytes != 3<<20 ||
		told[1].Place.Line != nil {
		t.Errorf("%+v, %+v", l, told[1].Place.Line)
	}
}

// Every finding that package findings names has its words in this package, and an anchor in docs/findings.md.
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
		for _, spec := range consts.Specs { // the first block of constants has the ids
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
	page, err := os.ReadFile("../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range named {
		if n := strings.Count(string(page), `<a id="`+id+`"></a>`); n != 1 {
			t.Errorf("docs/findings.md has %d anchors of %s", n, id)
		}
	}
}
