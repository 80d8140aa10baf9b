package analyze_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms are the packages of analyze, in order: each may import those above it. The packages for tests come last.
var rooms = []string{"prose", "confidence", "identity", "memory", "grouping", "timeline", "timing", "ladder", ".",
	"compare", "gate", "explain", "findings", "predict", "fixture", "fixture/summaries"}

// What one room holds at most.
const (
	mostLines = 5000
	mostNames = 120 // exported, methods counted
)

// TestRoomsAreInOrder holds the packages to their order and each to its size.
func TestRoomsAreInOrder(t *testing.T) {
	const module = "github.com/dpsight/dpsight/analyze"
	lines, names := map[string]int{}, map[string]int{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		room := filepath.ToSlash(filepath.Dir(path))
		place := slices.Index(rooms, room)
		if place < 0 {
			t.Errorf("%s lies in no room", path)
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines[room] += strings.Count(string(text), "\n")
		f, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			return err
		}
		for _, im := range f.Imports {
			p, _ := strconv.Unquote(im.Path.Value)
			rest, own := strings.CutPrefix(p, module)
			if !own {
				continue
			}
			other := strings.TrimPrefix(rest, "/")
			if other == "" {
				other = "."
			}
			if at := slices.Index(rooms, other); at < 0 || at >= place {
				t.Errorf("%s imports %s, which does not stand before it", path, other)
			}
		}
		for _, decl := range f.Decls {
			names[room] += exported(decl)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range rooms {
		if lines[room] == 0 {
			t.Errorf("the room %s is empty", room)
		}
		if lines[room] > mostLines || names[room] > mostNames {
			t.Errorf("%s has %d lines and %d exported names", room, lines[room], names[room])
		}
	}
}

// exported counts the exported names that a declaration makes.
func exported(decl ast.Decl) (n int) {
	count := func(id *ast.Ident) {
		if id.IsExported() {
			n++
		}
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		count(d.Name)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				count(s.Name)
			case *ast.ValueSpec:
				for _, id := range s.Names {
					count(id)
				}
			}
		}
	}
	return n
}
