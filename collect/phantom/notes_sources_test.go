package phantom

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestNotesAreWhatIsWritten: analyses know notes by the parts of them that schemas.Note… name. Each is part of a string
// in the C or Python sources that write notes: a note that is put in other words must be so in schemas too.
func TestNotesAreWhatIsWritten(t *testing.T) {
	written := strings.Join(stringsWritten(t, "csrc", "pysrc", filepath.Join("..", "agent", "python")), "\n")
	notes := noteConstants(t)
	for name, text := range notes {
		if !strings.Contains(written, text) {
			t.Errorf("nothing writes a note with %q, as schemas.%s says", text, name)
		}
	}
	if len(notes) < 5 {
		t.Errorf("only %d constants are named Note…", len(notes))
	}
}

// noteConstants are the constants of schemas whose names begin with Note.
func noteConstants(t *testing.T) map[string]string {
	t.Helper()
	packages, err := filepath.Glob(filepath.Join("..", "..", "schemas", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	notes := map[string]string{}
	for _, path := range packages {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Note") || len(spec.Values) == 0 {
				return true
			}
			if text, ok := spec.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
				notes[spec.Names[0].Name], _ = strconv.Unquote(text.Value)
			}
			return true
		})
	}
	return notes
}

// Comments of C and Python, and the text between two adjacent string literals.
var (
	comments = regexp.MustCompile(`(?m)/\*(?s:.*?)\*/|^\s*//.*$|^\s*#.*$|\s//\s.*$`)
	seam     = regexp.MustCompile(`"\s*f?"`)
	literal  = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
)

// stringsWritten are the string literals of the sources in the folders.
func stringsWritten(t *testing.T, folders ...string) (out []string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.Contains(".c .h .py", filepath.Ext(path)) {
				return err
			}
			b, err := os.ReadFile(path)
			text := seam.ReplaceAllString(comments.ReplaceAllString(string(b), ""), "")
			out = append(out, literal.FindAllString(text, -1)...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}
