package dpsight_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// dialect is what this project's English had too much of: sentences that hang on "of which" and its kin.
var dialect = regexp.MustCompile(`\b(of which|that of|those of|but for)\b`)

var comment = regexp.MustCompile(`^\s*(//|#|\*|/\*)`)

// Fewer than one line in 200 is in the dialect that docs/style.md has rewrites of, in documents and in comments.
func TestLittleDialect(t *testing.T) {
	type count struct{ lines, matches int }
	counts := map[string]*count{"documents": {}, "comments": {}}
	for _, file := range tracked(t) {
		switch filepath.Ext(file) {
		case ".md", ".go", ".py", ".c", ".h", ".ts", ".tsx":
		default:
			continue
		}
		if strings.Contains(file, "/testdata/") || strings.Contains(file, "/dist/") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, isDocument := counts["comments"], filepath.Ext(file) == ".md"
		if isDocument {
			c = counts["documents"]
		}
		for line := range strings.Lines(string(text)) {
			if !isDocument && !comment.MatchString(line) {
				continue
			}
			c.lines++
			if dialect.MatchString(line) {
				c.matches++
			}
		}
	}
	for what, c := range counts {
		if c.lines < 1000 {
			t.Errorf("only %d lines of %s were found", c.lines, what)
		}
		if 200*c.matches >= c.lines {
			t.Errorf("%d of %d lines of %s are in dialect (docs/style.md): 0.5 %% are too many", c.matches, c.lines, what)
		}
	}
}
