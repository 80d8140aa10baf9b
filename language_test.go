package dpsight_test

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dialect matches phrases such as "of which". dpsight's comments and documents had too many sentences with phrases of
// the dialect.
var dialect = regexp.MustCompile(`\b(of which|that of|those of|but for)\b`)

var commentLine = regexp.MustCompile(`^\s*(//|#|\*|/\*)`)

// In documents, and in comments, fewer than one line in 200 may have a phrase of the dialect. docs/style.md has
// rewrites of such sentences.
func TestLittleDialect(t *testing.T) {
	type count struct{ lines, matches int }
	counts := map[string]*count{"documents": {}, "comments": {}}
	for _, file := range tracked(t) {
		switch filepath.Ext(file) {
		case ".md", ".go", ".py", ".c", ".h", ".ts", ".tsx":
		default:
			continue
		}
		if strings.Contains(file, "/testdata/") || strings.Contains(file, "/dist/") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, isDocument := counts["comments"], filepath.Ext(file) == ".md"
		if isDocument {
			c = counts["documents"]
		}
		for line := range strings.Lines(string(text)) {
			if !isDocument && !commentLine.MatchString(line) {
				continue
			}
			c.lines++
			if dialect.MatchString(line) {
				c.matches++
			}
		}
	}
	for what, c := range counts {
		if c.lines < 1000 {
			t.Errorf("only %d lines of %s were found", c.lines, what)
		}
		if 200*c.matches >= c.lines {
			t.Errorf("%d of %d lines of %s are in dialect (docs/style.md): 0.5 %% are too many", c.matches, c.lines, what)
		}
	}
}

// maxDocWords is the highest number of words in a sentence of a doc comment. A sentence of a document may have 40 words
// (styles/Dpsight).
const maxDocWords = 45

var sentenceEnd = regexp.MustCompile(`[.!?]["')\]]*(?:\s+|$)`)

// docSentences returns the sentences in the paragraphs and list items of a doc comment. docSentences leaves out code
// and headings.
func docSentences(text string) (sentences []string) {
	var p comment.Parser
	var walk func(blocks []comment.Block)
	walk = func(blocks []comment.Block) {
		for _, b := range blocks {
			switch b := b.(type) {
			case *comment.Paragraph:
				plain := string(new(comment.Printer).Text(&comment.Doc{Content: []comment.Block{b}}))
				sentences = append(sentences, sentenceEnd.Split(plain, -1)...)
			case *comment.List:
				for _, item := range b.Items {
					walk(item.Content)
				}
			}
		}
	}
	walk(p.Parse(text).Content)
	return sentences
}

// publicDocs returns the comments that go doc shows. go doc shows the comments of a package, of exported names and of
// their fields.
func publicDocs(f *ast.File) []*ast.CommentGroup {
	docs := []*ast.CommentGroup{f.Doc}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				docs = append(docs, d.Doc)
			}
		case *ast.GenDecl:
			if d.Tok == token.IMPORT { // the comment before cgo's import is C code
				continue
			}
			docs = append(docs, d.Doc)
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					docs = append(docs, s.Doc, s.Comment)
				case *ast.TypeSpec:
					docs = append(docs, s.Doc)
					if st, ok := s.Type.(*ast.StructType); ok && s.Name.IsExported() {
						for _, field := range st.Fields.List {
							docs = append(docs, field.Doc, field.Comment)
						}
					}
				}
			}
		}
	}
	return docs
}

// TestDocCommentsHaveShortSentences checks that no sentence that go doc shows has more than maxDocWords words.
func TestDocCommentsHaveShortSentences(t *testing.T) {
	sentences := 0
	for _, file := range tracked(t) {
		if filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "testdata/") {
			continue
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range publicDocs(f) {
			if doc == nil {
				continue
			}
			for _, sentence := range docSentences(doc.Text()) {
				sentences++
				if words := strings.Fields(sentence); len(words) > maxDocWords {
					t.Errorf("%s: %d words, over %d: %s …", files.Position(doc.Pos()), len(words), maxDocWords,
						strings.Join(words[:10], " "))
				}
			}
		}
	}
	if sentences < 2000 {
		t.Errorf("only %d sentences were found", sentences)
	}
}

func TestDocSentences(t *testing.T) {
	got := docSentences("A is \"one.\" Two\ngoes on.\n\n\tcode. More code.\n\n# Heading\n\n" +
		"  - an item\n    of two lines\n")
	want := []string{`A is "one`, "Two goes on", "an item of two lines"}
	got = slices.DeleteFunc(got, func(s string) bool { return s == "" })
	for i := range got {
		got[i] = strings.Join(strings.Fields(got[i]), " ")
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
