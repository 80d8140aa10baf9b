package schemas_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// TestCategoryTable checks that each constant of type Category has one row in CategoryTable. Each row must have a
// meaning, and a colour that no other row has.
func TestCategoryTable(t *testing.T) {
	rows, colors := map[schemas.Category]int{}, map[uint32]schemas.Category{}
	for _, row := range schemas.CategoryTable {
		rows[row.Category]++
		if other, ok := colors[row.Color]; ok || row.Color == 0 || row.BytesOf == "" {
			t.Errorf("%s has no meaning, no colour, or that of %q", row.Category, other)
		}
		colors[row.Color] = row.Category
	}
	file, err := parser.ParseFile(token.NewFileSet(), "categories.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Type == nil {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "Category" {
			constants++
			if name, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value); rows[name] != 1 {
				t.Errorf("%s has %d rows in CategoryTable", name, rows[name])
			}
		}
		return true
	})
	if constants != len(schemas.CategoryTable) {
		t.Errorf("%d constants, %d rows", constants, len(schemas.CategoryTable))
	}
}
