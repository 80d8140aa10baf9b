// Package dpsight_test holds the line that data flows in one direction.
package dpsight_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/dpsight/dpsight/"

// mayImport says which of dpsight's top folders the packages of one may import. Tests may import more.
var mayImport = map[string][]string{
	"schemas": {"schemas"},
	"collect": {"schemas", "collect"},
	"ingest":  {"schemas", "ingest"},
	"analyze": {"schemas", "analyze"},
	"report":  {"schemas", "analyze", "report"},
	"cmd":     {"schemas", "collect", "ingest", "analyze", "report", "cmd"},
	"scripts": {"schemas", "collect", "ingest"}, // the maintainers' own tools
}

// pure packages, and those below them, neither read nor write: no files, no printing, no processes.
var pure = []string{"analyze", "ingest/steps", "ingest/join", "ingest/replay"}

func isPure(dir string) bool {
	for _, p := range pure {
		if dir == p || strings.HasPrefix(dir, p+"/") {
			return true
		}
	}
	return false
}

func TestImportsGoOneWay(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != "." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		path = filepath.ToSlash(path)
		top, _, _ := strings.Cut(path, "/")
		allowed, ok := mayImport[top]
		if !ok {
			t.Errorf("%s lies in no folder of the layout", path)
			return nil
		}
		seen[top] = true
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, im := range f.Imports {
			p, _ := strconv.Unquote(im.Path.Value)
			if isPure(filepath.ToSlash(filepath.Dir(path))) &&
				(p == "os" || p == "os/exec" || p == "net" || p == "log") {
				t.Errorf("%s is pure and imports %s", path, p)
			}
			rest, own := strings.CutPrefix(p, module)
			if !own {
				continue
			}
			to, _, _ := strings.Cut(rest, "/")
			if !contains(allowed, to) {
				t.Errorf("%s imports %s: %s may import %s", path, rest, top, strings.Join(allowed, ", "))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for top := range mayImport {
		if !seen[top] {
			t.Errorf("the folder %s has no Go file: the test looks in the wrong place", top)
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
