package report_test

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

// If a category of 6,144 MiB grows by 5.1 %, a gate of 5 % fails and names the category. A growth of 4.9 % passes.
func TestGateOfFivePercent(t *testing.T) {
	for _, c := range []struct {
		more  float64
		fails bool
	}{{314, true}, {301, false}} {
		runs := headline()
		runs[2].blocks[10].mib += c.more // clip_temporaries
		doc := checked(t, summaries(runs...), "category:*=5%")
		named := strings.Contains(strings.Join(doc.Failures, "\n"), "ghost: clip_temporaries at the peak grew by")
		if doc.OK == c.fails || named != c.fails || len(doc.Failures) > 1 {
			t.Errorf("%g MiB more: ok is %t, failures %q", c.more, doc.OK, doc.Failures)
		}
	}
}

// The JUnit and SARIF files have each sentence about a failure once. The JUnit and SARIF files have no failure for an
// experiment that passes.
func TestCheckForOtherTools(t *testing.T) {
	runs := grownGhost()[1:]
	runs[0].status, runs[0].reason = schemas.StatusOOM, `CUDA out of memory: "<4 GiB>"`
	for what, doc := range map[string]report.CheckDocument{
		"what fails":  checked(t, summaries(runs...), "peak=1.001", "category:*=1.05"),
		"what passes": checked(t, summaries(headline()...), "peak=1.05"),
	} {
		dir := t.TempDir()
		junit, sarif := filepath.Join(dir, "check.xml"), filepath.Join(dir, "check.sarif")
		if err := report.WriteCheckFiles(&doc, junit, sarif, "", "v1"); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(junit)
		if err != nil {
			t.Fatal(err)
		}
		var suite struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure []struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		}
		if err := xml.Unmarshal(b, &suite); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, b)
		}
		var told []string
		failed := 0
		for _, c := range suite.Cases {
			for _, f := range c.Failure {
				told = append(told, f.Message)
			}
			failed += min(1, len(c.Failure))
		}
		if got, want := strings.Join(told, "\n"), strings.Join(doc.Failures, "\n"); got != want || failed != suite.Failures ||
			len(suite.Cases) != suite.Tests || suite.Tests != len(doc.Experiments) {
			t.Errorf("%s, JUnit: %d of %d fail:\n%s\nnot\n%s", what, failed, suite.Tests, got, want)
		}
		if b, err = os.ReadFile(sarif); err != nil {
			t.Fatal(err)
		}
		var log struct {
			Version string
			Runs    []struct {
				Tool struct {
					Driver struct{ Rules []struct{ ID string } }
				}
				Results []struct {
					RuleID  string
					Message struct{ Text string }
				}
			}
		}
		if err := json.Unmarshal(b, &log); err != nil || log.Version != "2.1.0" || len(log.Runs) != 1 {
			t.Fatalf("%s: %v\n%s", what, err, b)
		}
		rules := map[string]bool{}
		for _, r := range log.Runs[0].Tool.Driver.Rules {
			rules[r.ID] = true
		}
		told = nil
		for _, r := range log.Runs[0].Results {
			told = append(told, r.Message.Text)
			if !rules[r.RuleID] {
				t.Errorf("%s: no rule %q", what, r.RuleID)
			}
		}
		if got, want := strings.Join(told, "\n"), strings.Join(doc.Failures, "\n"); got != want {
			t.Errorf("%s, SARIF:\n%s\nnot\n%s", what, got, want)
		}
	}
	doc := checked(t, summaries(headline()...), "peak=1.05")
	if err := report.WriteCheckFiles(&doc, filepath.Join(t.TempDir(), "none", "x.xml"), "", "", "v1"); err == nil {
		t.Error("a file in a folder that is not there is no error")
	}
}
