package schemas

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryNumberSaysWhatItCounts fails for numeric fields of tables and documents that have no comment, since names
// alone have misled readers.
func TestEveryNumberSaysWhatItCounts(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is {
				return true
			}
			body, is := spec.Type.(*ast.StructType)
			if !is || !spec.Name.IsExported() {
				return true
			}
			for _, field := range body.Fields.List {
				if len(field.Names) == 0 || !field.Names[0].IsExported() || !isNumber(field.Type) {
					continue
				}
				seen++
				if strings.TrimSpace(field.Comment.Text()+field.Doc.Text()) == "" {
					t.Errorf("%s.%s has no comment", spec.Name.Name, field.Names[0].Name)
				}
			}
			return true
		})
	}
	if seen < 150 {
		t.Errorf("only %d numbers seen", seen)
	}
}

func isNumber(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return isNumber(e.X)
	case *ast.ArrayType:
		return isNumber(e.Elt)
	case *ast.Ident:
		return strings.HasPrefix(e.Name, "int") || strings.HasPrefix(e.Name, "uint") ||
			strings.HasPrefix(e.Name, "float")
	}
	return false
}
