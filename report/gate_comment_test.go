package report_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

// grownAt returns a check of two experiments. The experiment ghost grew at a line of its script, and the experiment a
// did not grow.
func grownAt(t *testing.T) report.CheckDocument {
	t.Helper()
	was := map[schemas.Category]int64{schemas.Parameters: base, schemas.Activations: base}
	more := map[schemas.Category]int64{schemas.Parameters: base, schemas.Activations: base * 1051 / 1000}
	list, err := gate.ParseThresholds([]string{"category:*=5%"})
	if err != nil {
		t.Fatal(err)
	}
	r := gate.Check(baselineOf(fixture.Sized("a", was), fixture.Sized("ghost", was)),
		reduced(fixture.Sized("a", was), fixture.Sized("ghost", more)),
		gate.Options{Baseline: "main.json", Thresholds: list})
	at := schemas.BaselinePlace{Category: schemas.Activations, Module: "blocks.*.mlp", File: "my models/train.py",
		Line: 46, Function: "<module>", Bytes: base}
	now := at
	now.Bytes, now.Line = base*1051/1000, 47
	for i := range r.Experiments {
		if x := &r.Experiments[i]; x.Name == "ghost" {
			x.Locate([]schemas.BaselinePlace{at}, []schemas.BaselinePlace{now})
		}
	}
	return report.NewCheckDocument(r)
}

// The comment lists failing experiments first, with category, module and line of the growth. The comment escapes names
// of a script, so that they are not read as markup.
func TestComment(t *testing.T) {
	doc := grownAt(t)
	var b strings.Builder
	if err := report.WriteComment(&b, &doc); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{report.CommentMarker + "\n**❌ dpsight check failed: 1 of 2 experiments**\n",
		"\n| ghost | regressed | ", "; its largest place: activations of blocks.\\*.mlp, my models/train.py:47 in " +
			"&lt;module&gt; (+48.64 MiB)\n",
		"<details><summary>Where ghost grew</summary>\n\n| Category | Module | Line |",
		"| activations | blocks.\\*.mlp | my models/train.py:47 in &lt;module&gt; | 953.67 | 1,002.31 | +48.64 |",
		"<details><summary>Every figure that was compared</summary>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Index(text, "| ghost | regressed") > strings.Index(text, "| a | ok") {
		t.Errorf("what passes stands first:\n%s", text)
	}
	if open, shut := strings.Count(text, "<details>"), strings.Count(text, "</details>"); open != 2 || open != shut {
		t.Errorf("%d folds begin, %d end", open, shut)
	}
}

// For any length of a check's result, the comment fits GitHub's limit and says what it left out.
func TestCommentFits(t *testing.T) {
	doc := grownAt(t)
	x := doc.Experiments[1]
	for i := range 300 {
		x.Places = append(x.Places, gate.Place{Category: schemas.Noise, Module: strings.Repeat("m", 300),
			CurrentBytes: int64(i + 1)})
	}
	doc.Experiments = nil
	for i := range 10_000 {
		x.Label = fmt.Sprintf("ghost %d %s", i, strings.Repeat("ß", 2000))
		doc.Experiments = append(doc.Experiments, x)
	}
	doc.Warnings = []string{strings.Repeat("w", 100_000)}
	doc.Failures = make([]string, len(doc.Experiments))
	var b strings.Builder
	if err := report.WriteComment(&b, &doc); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := len(text); n > 65536 || n < 10_000 {
		t.Errorf("the comment has %d bytes", n)
	}
	for _, want := range []string{"failed: 10000 of 10000 experiments", " left out", " more\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in it", want)
		}
	}
	if open, shut := strings.Count(text, "<details>"), strings.Count(text, "</details>"); open != shut {
		t.Errorf("%d folds begin, %d end", open, shut)
	}
	doc.Experiments[0].Label = strings.Repeat("ß", 100_000)
	b.Reset()
	if err := report.WriteComment(&b, &doc); err != nil || b.Len() > 65536 || b.Len() < 10_000 {
		t.Errorf("with a name that is too long: %d bytes, %v", b.Len(), err)
	}
}

// The files for other tools have the state of each experiment. SARIF also has the line of the growth, with a path
// relative to the repository.
func TestPlacesForOtherTools(t *testing.T) {
	doc := grownAt(t)
	var sarif, junit strings.Builder
	if err := report.WriteSARIF(&sarif, &doc, "v1"); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Runs []struct {
			Results []struct {
				RuleID, Level string
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(sarif.String()), &log); err != nil {
		t.Fatal(err)
	}
	r := log.Runs[0].Results[0]
	at := r.Locations[0].PhysicalLocation
	if r.RuleID != gate.StateRegressed || r.Level != "error" || at.ArtifactLocation.URI != "my%20models/train.py" ||
		at.Region.StartLine != 47 {
		t.Errorf("%+v", r)
	}
	if err := report.WriteJUnit(&junit, &doc); err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Cases []struct {
			Out     string `xml:"system-out"`
			Failure []struct {
				Type string `xml:"type,attr"`
			} `xml:"failure"`
		} `xml:"testcase"`
	}
	if err := xml.Unmarshal([]byte(junit.String()), &suite); err != nil {
		t.Fatal(err)
	}
	if c := suite.Cases; len(c) != 2 || c[0].Out != gate.StateOK || c[1].Out != gate.StateRegressed ||
		c[1].Failure[0].Type != gate.StateRegressed {
		t.Errorf("%+v", c)
	}
}
