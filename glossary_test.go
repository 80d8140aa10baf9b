package dpsight_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

const glossary = "docs/glossary.md"

// minTerms and maxTerms bound the number of terms. The glossary has the words that a reader needs, and not every name
// in the code.
const (
	minTerms = 40
	maxTerms = 60
)

// glossaryValues has, for some terms, the values that the glossary must name, in order.
var glossaryValues = map[string][]string{
	"confidence":   {schemas.ExactExpected, schemas.Close, schemas.Indicative},
	"conservation": {schemas.Exact, schemas.Bounded, schemas.Lossy, schemas.Unverifiable},
}

// word returns a pattern that matches a term as whole words, in singular or plural.
func word(term string) *regexp.Regexp {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.ToLower(term)), " ", `[\s-]`)
	if stem, ok := strings.CutSuffix(pattern, "y"); ok {
		pattern = stem + "(y|ies)"
	} else {
		pattern += "(s|es)?"
	}
	return regexp.MustCompile(`\b` + pattern + `\b`)
}

func TestGlossaryMatchesWholeWords(t *testing.T) {
	for _, c := range []struct {
		term, text string
		want       bool
	}{
		{"mark", "a mark.", true},
		{"mark", "the marks of a thread", true},
		{"mark", "a markdown file", false},
		{"mark", "a benchmark", false},
		{"category", "ten categories", true},
		{"category", "categorical", false},
		{"batch", "two batches", true},
		{"bare step", "bare-step times", true},
		{"bare step", "a bare stepladder", false},
	} {
		if got := word(c.term).MatchString(c.text); got != c.want {
			t.Errorf("%q in %q: %v", c.term, c.text, got)
		}
	}
}

// TestGlossary checks the glossary. Each term has one row, in alphabetical order. Each term occurs in another page, in
// a help text or in the code that writes reports. The table, document or folder in the term's last column exists. If a
// row names values, the code has the same values.
func TestGlossary(t *testing.T) {
	text, err := os.ReadFile(glossary)
	if err != nil {
		t.Fatal(err)
	}
	used := strings.ToLower(readers(t))
	var terms []string
	checked := 0 // how many terms of glossaryValues have a row
	row := regexp.MustCompile("(?m)^\\| ([a-z].*?) \\| (.*?) \\| `(.*?)` \\|$")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		term, meaning, where := m[1], m[2], m[3]
		terms = append(terms, term)
		if !strings.HasSuffix(meaning, ".") {
			t.Errorf("%s: the meaning is no sentence: %q", term, meaning)
		}
		if !word(term).MatchString(used) {
			t.Errorf("%s: no other page, no help text and no report uses the term", term)
		}
		if !defined(t, where) {
			t.Errorf("%s: there is no %s", term, where)
		}
		if values, ok := glossaryValues[term]; ok {
			checked++
			var named []string
			for _, value := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(meaning, -1) {
				named = append(named, value[1])
			}
			if !slices.Equal(named, values) {
				t.Errorf("%s: names the values %q, the code has %q", term, named, values)
			}
		}
	}
	if rows := strings.Count(string(text), "\n| ") - 1; rows != len(terms) {
		t.Errorf("%d of %d rows are a term, a meaning and a place in backquotes", len(terms), rows)
	}
	if checked != len(glossaryValues) {
		t.Errorf("%d of the %d terms with values have a row", checked, len(glossaryValues))
	}
	if n := len(terms); n < minTerms || n > maxTerms {
		t.Errorf("%d terms", n)
	}
	for i := 1; i < len(terms); i++ {
		if terms[i-1] >= terms[i] {
			t.Errorf("%q stands before %q", terms[i-1], terms[i])
		}
	}
}

// readers returns the texts that a user of dpsight reads, without the glossary. The texts are README.md, the pages of
// docs, the help texts and the sources of reports.
func readers(t *testing.T) string {
	t.Helper()
	files := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "cmd/dpsight/*.go", "report/*.go"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: no files, %v", pattern, err)
		}
		files = append(files, more...)
	}
	var all strings.Builder
	for _, file := range files {
		if filepath.ToSlash(file) == glossary || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// defined reports whether a place in the glossary's last column exists. A place is a path, a table of package schemas,
// or a document of a run.
func defined(t *testing.T, where string) bool {
	t.Helper()
	if _, err := os.Stat(where); err == nil {
		return true
	}
	name := where
	if table, ok := strings.CutSuffix(where, ".parquet"); ok {
		name = table
	}
	files, err := filepath.Glob("schemas/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no schemas, %v", err)
	}
	return name != "" && slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), `"`+name+`"`)
	})
}
