package schemas_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

var update = flag.Bool("update", false, "write the table of categories in docs/categories.md anew")

// TestCategoryTable: every constant of type Category has one row, and every row has its own colour and a meaning.
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

// TestCategoriesInDocs: the table in docs/categories.md is CategoryTable. -update writes it.
func TestCategoriesInDocs(t *testing.T) {
	const page = "../docs/categories.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	table := strings.Builder{}
	table.WriteString("<!-- categories -->\n| category | bytes of |\n|:---|:---|\n")
	for _, row := range schemas.CategoryTable {
		table.WriteString("| `" + row.Category + "` | " + row.BytesOf + " |\n")
	}
	table.WriteString("<!-- end -->")
	block := regexp.MustCompile(`(?s)<!-- categories -->\n.*?<!-- end -->`)
	fresh := block.ReplaceAllLiteral(b, []byte(table.String()))
	switch {
	case len(block.FindAll(b, -1)) != 1:
		t.Errorf("%s has no table of categories", page)
	case string(fresh) == string(b):
	case *update:
		err = os.WriteFile(page, fresh, 0o644)
	default:
		t.Errorf("the table in %s is not CategoryTable: go test ./schemas -run TestCategoriesInDocs -update", page)
	}
	if err != nil {
		t.Fatal(err)
	}
}
