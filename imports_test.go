// Package dpsight_test has the rules for the whole repository: what may import what, which files the tree has, how
// long their lines are, how small the command line stays, and that documents name only what exists.
package dpsight_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/dpsight/dpsight/"

// mayImport has, for each top folder, the top folders that its packages may import. Tests may import more.
var mayImport = map[string][]string{
	"schemas": {"schemas"},
	"collect": {"schemas", "collect"},
	"ingest":  {"schemas", "ingest"},
	"analyze": {"schemas", "analyze"},
	"report":  {"schemas", "analyze", "report"},
	// live shows growing runs. live reads journals, replays them as ingest does, and serves the page that report makes.
	"live":    {"schemas", "ingest", "report", "live"},
	"cmd":     {"schemas", "collect", "ingest", "analyze", "report", "live", "cmd"},
	"scripts": {"schemas", "collect", "ingest"}, // the maintainers' own tools
}

// pure lists packages that must not read or write. The listed packages and the packages below them use no files, print
// nothing and start no processes.
var pure = []string{"analyze", "ingest/steps", "ingest/join", "ingest/modelnames", "ingest/replay",
	"ingest/annotations"}

func isPure(dir string) bool {
	for _, p := range pure {
		if dir == p || strings.HasPrefix(dir, p+"/") {
			return true
		}
	}
	return false
}

func TestImportsGoOneWay(t *testing.T) {
	seen, pureFiles := map[string]bool{}, 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != "." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		file = filepath.ToSlash(file)
		top, _, _ := strings.Cut(file, "/")
		allowed, ok := mayImport[top]
		if !ok {
			t.Errorf("%s lies in no folder of the layout", file)
			return nil
		}
		seen[top] = true
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		if dir := path.Dir(file); isPure(dir) {
			pureFiles++
			for _, use := range impurities(f) {
				t.Errorf("%s is pure and uses %s", file, use)
			}
		}
		for _, im := range f.Imports {
			p, _ := strconv.Unquote(im.Path.Value)
			rest, own := strings.CutPrefix(p, module)
			if !own {
				continue
			}
			to, _, _ := strings.Cut(rest, "/")
			if !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s: %s may import %s", file, rest, top, strings.Join(allowed, ", "))
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
	if pureFiles < 100 {
		t.Errorf("%d files are pure: the test looks in the wrong place", pureFiles)
	}
}

// touching lists packages that use files, processes or the network. The packages below them count too.
var touching = []string{"io/fs", "io/ioutil", "log", "net", "os", "path/filepath", "syscall",
	module + "schemas/store"}

// fileVerbs matches functions of dpsight's own packages that read or write files, mostly by the first word of their
// names.
var fileVerbs = regexp.MustCompile(`^(Check|Open|Pack|Read|Request|Seal|Unpack|Write)([A-Z]|$)|` +
	`^(IsRun|LiveJournals|Requested|SealedJournals)$`)

// impurities returns the imports and functions in a file that a pure package must not use.
func impurities(f *ast.File) (found []string) {
	names := map[string]string{} // import path of each package, by its name in the file
	for _, im := range f.Imports {
		p, _ := strconv.Unquote(im.Path.Value)
		names[path.Base(p)] = p
		if im.Name != nil {
			names[im.Name.Name] = p
		}
		if im.Name != nil && im.Name.Name == "." || slices.ContainsFunc(touching, func(t string) bool {
			return p == t || strings.HasPrefix(p, t+"/")
		}) {
			found = append(found, p)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		from, ok := call.X.(*ast.Ident)
		if !ok {
			return true
		}
		p, name := names[from.Name], call.Sel.Name
		prints := p == "fmt" && (strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan"))
		if prints || strings.HasPrefix(p, module+"schemas") && fileVerbs.MatchString(name) {
			found = append(found, from.Name+"."+name)
		}
		return true
	})
	return found
}

// impurities finds what a pure package must not use, even under another name.
func TestImpurities(t *testing.T) {
	const source = `package pure

import (
	"fmt"
	"io/fs"
	"os/exec"

	data "github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/store"
)

var write = data.WriteFile

func f(c data.Checkpoint, reader data.Reader, s spool.Request) {
	fmt.Println(fmt.Sprint(c.Device))
	data.ReadManifest("run")
	spool.ReadDir("run")
	reader.Read()
}
`
	f, err := parser.ParseFile(token.NewFileSet(), "pure.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"io/fs", "os/exec", module + "schemas/store", "data.WriteFile", "spool.Request", "fmt.Println",
		"data.ReadManifest", "spool.ReadDir"}
	if got := impurities(f); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
