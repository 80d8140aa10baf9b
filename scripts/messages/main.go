// Messages writes a program's texts for users into files that a checker of prose can read. Messages takes texts from
// the strings and from the help of options in each Go file that is named. Each text becomes an item of a Markdown list,
// on the same line as in the Go file.
//
//	go run ./scripts/messages FOLDER FILE...
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: messages FOLDER FILE...")
		os.Exit(2)
	}
	for _, file := range os.Args[2:] {
		if err := write(os.Args[1], file); err != nil {
			fmt.Fprintln(os.Stderr, "messages:", err)
			os.Exit(1)
		}
	}
}

// write writes the texts of a Go file into a file in the folder. The written file has the Go file's name with .md
// appended. If a Go file has no texts, write writes no file.
func write(folder, file string) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	list, err := listOf(file, source)
	if err != nil || list == "" {
		return err
	}
	out := filepath.Join(folder, file+".md")
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(out, []byte(list), 0o644)
}

// listOf makes a Markdown list of the texts in a Go file. A text that begins at line N of the source is line N of the
// list.
func listOf(file string, source []byte) (string, error) {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, source, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	texts := map[int]string{}
	last := 0
	ast.Inspect(parsed, func(n ast.Node) bool {
		text, whole := textOf(n)
		if isProse(text) {
			line := positions.Position(n.Pos()).Line
			for texts[line] != "" {
				line++ // an earlier text is already on the text's line
			}
			texts[line] = "- " + item(text)
			last = max(last, line)
		}
		return !whole
	})
	var out strings.Builder
	for line := range last {
		out.WriteString(texts[line+1] + "\n")
	}
	return out.String(), nil
}

// textOf returns the text of a syntax node. whole says that the text includes the nodes below it.
func textOf(n ast.Node) (text string, whole bool) {
	switch n := n.(type) {
	case *ast.ImportSpec:
		return "", true
	case *ast.Field:
		if n.Tag != nil {
			tag, _ := strconv.Unquote(n.Tag.Value)
			return reflect.StructTag(tag).Get("help"), true
		}
	case *ast.BinaryExpr:
		return concatenated(n)
	case *ast.BasicLit:
		return concatenated(n)
	}
	return "", false
}

// concatenated joins strings that the source joins with +. If one side of a + is no string, concatenated returns false.
// In this case, each string is a separate text.
func concatenated(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, ok := concatenated(e.X)
		right, also := concatenated(e.Y)
		if e.Op == token.ADD && ok && also {
			return left + right, true
		}
	}
	return "", false
}

var word = regexp.MustCompile(`^[A-Za-z][a-z']*[,;:.?]?$`)

// isProse distinguishes sentences from file names, formats and SQL. A sentence has at least three plain words, and
// these are at least half of its text.
func isProse(text string) bool {
	fields := strings.Fields(text)
	words := len(slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return !word.MatchString(f) }))
	return words >= 3 && 2*words >= len(fields)
}

// item returns a text as one list item. item escapes characters that mean something in Markdown, since they would hide
// parts of the text.
func item(text string) string {
	return strings.NewReplacer("\n", " ", "*", `\*`, "`", "", "<", `\<`, "#", `\#`).Replace(text)
}
