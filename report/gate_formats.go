package report

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"net/url"
	"path"
	"path/filepath"

	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/schemas"
)

// junit is a check in the form of other tools' test reports: each experiment is a test case.
type junit struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string         `xml:"classname,attr"`
	Name    string         `xml:"name,attr"`
	Skipped *junitSkipped  `xml:"skipped"`
	Failure []junitFailure `xml:"failure"`
	Out     string         `xml:"system-out"` // the state of the experiment
}

type junitFailure struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

// WriteJUnit writes a check as JUnit XML. Each failing sentence is a failure of its experiment. An experiment that was
// compared with nothing is skipped. If the check as a whole fails, the XML has a separate case for it.
func WriteJUnit(w io.Writer, doc *CheckDocument) error {
	suite := junit{Name: checkRule}
	told := 0
	for i := range doc.Experiments {
		x := &doc.Experiments[i]
		c := junitCase{Class: checkRule, Name: x.Label, Out: stateText(x)}
		for _, f := range x.failures(doc.FloorBytes) {
			c.Failure = append(c.Failure, junitFailure{x.State, f.sentence})
		}
		told += len(c.Failure)
		switch {
		case len(c.Failure) > 0:
			suite.Failures++
		case len(x.Comparisons) == 0:
			c.Skipped = &junitSkipped{stateText(x)}
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
	}
	for _, sentence := range doc.Failures[told:] { // failures that belong to no experiment
		suite.Cases = append(suite.Cases, junitCase{Class: checkRule, Name: checkRule,
			Failure: []junitFailure{{gate.VerdictUnchecked, sentence}}, Out: gate.VerdictUnchecked})
		suite.Failures++
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// checkRule is the name under which other tools list the check.
const checkRule = "dpsight check"

// The parts of SARIF 2.1.0 that a check uses.
type (
	sarif struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
		// Suppressions say that the baseline lets the result pass. Without suppressions, the result counts.
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int64 `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"name"`
	}
)

// sarifRules are the states of an experiment that fail a check, and the rule for a check that compared nothing.
var sarifRules = []sarifRule{
	{gate.StateRegressed, sarifText{"memory or time grew more than its threshold allows"}},
	{gate.StateNotComparable, sarifText{"what the baseline knows could not be checked"}},
	{gate.StateGone, sarifText{"the baseline has an experiment that no run is of"}},
	{gate.StateNewlyFailing, sarifText{"an experiment fails that ended well in the baseline"}},
	{gate.StateNewlyOOM, sarifText{"an experiment runs out of memory that ended well in the baseline"}},
	{gate.VerdictUnchecked, sarifText{"nothing was compared"}},
}

// WriteSARIF writes a check as SARIF 2.1.0. Each failing sentence is a result, under the rule of its experiment's
// state. A result's place is the line with the largest growth, relative to the repository, or the baseline's file if no
// line is known. The experiment is the result's logical location. Acknowledged results are included, but suppressed.
func WriteSARIF(w io.Writer, doc *CheckDocument, version string) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{checkRule, version, sarifRules}}, Results: []sarifResult{}}
	add := func(rule string, f checkFailure, experiment string) {
		at := sarifLocation{Physical: sarifPhysical{Artifact: sarifArtifact{uriOf(doc.Baseline)}}}
		if p := f.place; p != nil && p.File != "" && !path.IsAbs(p.File) {
			at.Physical = sarifPhysical{sarifArtifact{uriOf(p.File)}, &sarifRegion{p.Line}}
		}
		if experiment != "" {
			at.Logical = []sarifLogical{{experiment}}
		}
		run.Results = append(run.Results, sarifResult{RuleID: rule, Level: "error", Message: sarifText{f.sentence},
			Locations: []sarifLocation{at}})
	}
	for i := range doc.Experiments {
		x := &doc.Experiments[i]
		for _, f := range x.failures(doc.FloorBytes) {
			add(x.State, f, x.Label)
		}
	}
	for _, sentence := range doc.Failures[len(run.Results):] {
		add(gate.VerdictUnchecked, checkFailure{sentence: sentence}, "")
	}
	for i := range doc.Experiments {
		x := &doc.Experiments[i]
		for _, sentence := range x.acknowledged(doc.FloorBytes) {
			add(gate.StateRegressed, checkFailure{sentence: sentence}, x.Label)
			run.Results[len(run.Results)-1].Suppressions = []sarifSuppression{{"external", sentence}}
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(sarif{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// uriOf returns a path as a URI. A relative path becomes a relative URI.
func uriOf(name string) string { return (&url.URL{Path: filepath.ToSlash(name)}).String() }

// WriteCheckFiles writes a check as JUnit XML, SARIF and a comment, into the named files. Formats without a name are
// left out.
func WriteCheckFiles(doc *CheckDocument, junit, sarif, comment, version string) error {
	for _, f := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{junit, func(w io.Writer) error { return WriteJUnit(w, doc) }},
		{sarif, func(w io.Writer) error { return WriteSARIF(w, doc, version) }},
		{comment, func(w io.Writer) error { return WriteComment(w, doc) }},
	} {
		if f.path == "" {
			continue
		}
		if err := schemas.WriteFile(f.path, f.write); err != nil {
			return schemas.WithHint(err, "name a file that can be written")
		}
	}
	return nil
}
