package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each kind of remark, reason and caution in analyze is a case of a function in this package. Without a case, a kind
// would get the words of another kind.
func TestEveryKindHasWords(t *testing.T) {
	said := map[string]bool{}
	for _, file := range parseAll(t, "*_words.go") {
		ast.Inspect(file, func(n ast.Node) bool {
			if c, ok := n.(*ast.CaseClause); ok {
				for _, value := range c.List {
					if s, ok := value.(*ast.SelectorExpr); ok {
						said[s.X.(*ast.Ident).Name+"."+s.Sel.Name] = true
					}
				}
			}
			return true
		})
	}
	var kinds []string
	for _, file := range slices.Concat(parseAll(t, "../analyze/*.go"), parseAll(t, "../analyze/*/*.go")) {
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				for _, name := range kindsIn(g) {
					kinds = append(kinds, file.Name.Name+"."+name)
				}
			}
		}
	}
	if len(kinds) < 100 {
		t.Errorf("only %d kinds were found", len(kinds))
	}
	for _, kind := range kinds {
		if !said[kind] {
			t.Errorf("%s has no words", kind)
		}
	}
}

// kindsIn returns the constants of a block that [TestEveryKindHasWords] checks. kindsIn finds these constants by their
// type or by their name.
func kindsIn(block *ast.GenDecl) (names []string) {
	of := "" // a constant without a type has the type of the previous one
	for _, s := range block.Specs {
		spec := s.(*ast.ValueSpec)
		if typ, ok := spec.Type.(*ast.Ident); ok {
			of = typ.Name
		}
		name := spec.Names[0].Name
		worded := slices.Contains([]string{"RemarkKind", "Kind", "UncheckedKind", "CautionKind",
			"Why", "Unseen"}, of)
		if worded || strings.HasPrefix(name, "Remark") || strings.HasPrefix(name, "Unsampled") {
			names = append(names, name)
		}
	}
	return names
}

func parseAll(t *testing.T, pattern string) (files []*ast.File) {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
