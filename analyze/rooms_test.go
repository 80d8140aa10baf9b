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

// rooms lists the packages below analyze in order. A package may import only packages that come before it in this list.
// The packages for tests come last.
var rooms = []string{"confidence", "identity", "memory", "grouping", "ranks", "hostmemory", "blocks", "timeline",
	"growth", "timing", "ladder", ".", "repeats", "compare", "trend", "exhibits", "gate", "explain", "clipping", "source",
	"findings", "predict", "fixture", "fixture/summaries"}

// mostLines and mostNames limit the size of each package below analyze.
const (
	mostLines = 5000
	mostNames = 120 // exported names, methods included
)

// TestRoomsAreInOrder checks the order of imports and the size of the packages below analyze.
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

// rowNames are the names of rows in a breakdown's document. Names of rows are values and not sentences, since a reader
// of the document may group by them.
var rowNames = map[string][]string{"grouping": {`"before the first step"`, `"not an activation"`,
	`"under 512 B"`, `"model and optimizer"`, `"MiB"`, `"GiB"`, `" < "`, `" → "`}}

// TestRoomsWithoutWords fails if a package below analyze contains units or sentences, since these packages return only
// figures and package report makes the sentences. Errors about bad input may be sentences.
func TestRoomsWithoutWords(t *testing.T) {
	for _, room := range rooms {
		paths, err := filepath.Glob(filepath.Join(room, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v, %v", room, paths, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, said := range wordsOf(f) {
				if slices.Contains(rowNames[room], said) {
					continue
				}
				t.Errorf("%s has words: %s", path, said)
			}
		}
	}
}

func TestWordsOf(t *testing.T) {
	const source = `package x
var lines = units.Plural(2, "line", "lines") + units.MiB(1)
var a, unit = fmt.Sprintf("%d of %d steps", 1, 2), "MiB"
var fine = fmt.Sprintf("%s %d", errors.New("no such step is there"), 1)
func f() { say("the peak lies in steps", 1) }
func (e *missing) Error() string { return "no such step is there" }
func (e *missing) Words() string { return "no step is there" }
func Error() string { return "a step is there" }`
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := wordsOf(f), []string{"Plural", "MiB", `"%d of %d steps"`, `"MiB"`, `"the peak lies in steps"`,
		`"no step is there"`, `"a step is there"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// unitWords are the functions of package units that only reports may call.
var unitWords = []string{"Fixed", "Grouped", "InMiB", "MiB", "Plural"}

// wordsOf returns the parts of a file that are meant for people. Texts for people are units, strings of three words or
// more outside of errors and Error methods, and calls of package units that put figures into words.
func wordsOf(f *ast.File) (found []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			return n.Recv == nil || n.Name.Name != "Error"
		case *ast.CallExpr:
			if s, is := n.Fun.(*ast.SelectorExpr); is && (s.Sel.Name == "Errorf" || s.Sel.Name == "New") {
				return false
			}
		case *ast.SelectorExpr:
			if x, is := n.X.(*ast.Ident); is && x.Name == "units" && slices.Contains(unitWords, n.Sel.Name) {
				found = append(found, n.Sel.Name)
			}
		case *ast.Field:
			return n.Tag == nil
		case *ast.BasicLit:
			unit := strings.Contains(n.Value, "MiB") || strings.Contains(n.Value, "GiB")
			if n.Kind == token.STRING && (unit || strings.Count(n.Value, " ") > 1) {
				found = append(found, n.Value)
			}
		}
		return true
	})
	return found
}

// exported counts the exported names in a declaration.
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
