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

// TestNotesAreWhatIsWritten checks that the text of every constant schemas.Note… occurs in a string of the C or Python
// sources that write notes. Analyses recognise notes by these texts, so whoever changes a note's words must change the
// constant too.
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

// noteConstants returns the values of the string constants of package schemas whose names begin with Note, by name.
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

// comments matches comments of C and Python. seam matches what lies between two adjacent string literals, and literal a
// string literal.
var (
	comments = regexp.MustCompile(`(?m)/\*(?s:.*?)\*/|^\s*//.*$|^\s*#.*$|\s//\s.*$`)
	seam     = regexp.MustCompile(`"\s*f?"`)
	literal  = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`)
)

// stringsWritten returns the string literals of the C and Python sources in the folders.
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
