package dpsight_test

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The package cmd/dpsight has only flags, calls of packages and exit codes. So it stays small, and it does not parse
// texts with regular expressions.
func TestCommandLineHasNoLogic(t *testing.T) {
	const most = 2110
	files, err := filepath.Glob("cmd/dpsight/*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines, counted := 0, 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines, counted = lines+bytes.Count(text, []byte("\n")), counted+1
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, im := range f.Imports {
			if im.Path.Value == `"regexp"` {
				t.Errorf("%s imports regexp", path)
			}
		}
	}
	if lines >= most {
		t.Errorf("cmd/dpsight has %d lines without tests, not under %d", lines, most)
	}
	if counted < 10 {
		t.Errorf("cmd/dpsight has %d files: the test looks in the wrong place", counted)
	}
	// Code that only the grammar of the command line needs is in cmd/grammar. There are no packages beside cmd/dpsight
	// and cmd/grammar.
	for pattern, allowed := range map[string][]string{"cmd/*/*/*.go": nil, "cmd/*.go": nil,
		"cmd/*": {"cmd/dpsight", "cmd/grammar"}} {
		found, err := filepath.Glob(pattern)
		if err != nil || !slices.Equal(found, allowed) {
			t.Errorf("code of the command line stands in %v, and not only in %v: %v", found, allowed, err)
		}
	}
}
