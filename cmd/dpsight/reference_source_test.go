package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A source is what the reference takes from a package's source text: its types and constants, with their comments.
type source struct {
	types  map[string]*ast.TypeSpec
	docs   map[string]string   // comments of types and constants, by name
	values map[string]string   // values of constants that are strings, by name
	typed  map[string][]string // the names of a type's constants, in order
	consts []string            // the names of all constants, in order
	vars   []*ast.ValueSpec
	pkg    string // the package's own comment
	set    *token.FileSet
	files  []*ast.File
}

// readSource reads the package in a folder of the repository.
func readSource(t *testing.T, dir string) *source {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no sources, %v", dir, err)
	}
	s := &source{types: map[string]*ast.TypeSpec{}, docs: map[string]string{}, values: map[string]string{},
		typed: map[string][]string{}, set: token.NewFileSet()}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.set, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		s.files = append(s.files, file)
		s.pkg = cmp.Or(s.pkg, file.Doc.Text())
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				s.declare(g)
			}
		}
	}
	return s
}

func (s *source) declare(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			s.types[spec.Name.Name] = spec
			s.docs[spec.Name.Name] = cmp.Or(spec.Doc.Text(), g.Doc.Text())
		case *ast.ValueSpec:
			if g.Tok == token.VAR {
				s.vars = append(s.vars, spec)
				continue
			}
			for i, name := range spec.Names {
				s.consts = append(s.consts, name.Name)
				s.docs[name.Name] = comments(spec.Doc, spec.Comment)
				if i < len(spec.Values) {
					if text, ok := spec.Values[i].(*ast.BasicLit); ok && text.Kind == token.STRING {
						s.values[name.Name], _ = strconv.Unquote(text.Value)
					}
				}
				if of, ok := spec.Type.(*ast.Ident); ok {
					s.typed[of.Name] = append(s.typed[of.Name], name.Name)
				}
			}
		}
	}
}

// comments joins the comments above and behind a declaration into one line.
func comments(groups ...*ast.CommentGroup) string {
	var all []string
	for _, g := range groups {
		all = append(all, strings.Fields(g.Text())...)
	}
	return strings.Join(all, " ")
}

// A member is a field of a struct that a file stores: as a column of a table, or as a key of a document.
type member struct {
	field, name string // names in the code and in the file
	typ         ast.Expr
	null        bool // may be absent or null
	meaning     string
}

// members returns the fields of a struct type whose tag has a name for key, such as "json". If explained is true, a
// field without a comment fails the test.
func (s *source) members(t *testing.T, name, key string, explained bool) (out []member) {
	t.Helper()
	spec := s.types[name]
	if spec == nil {
		t.Fatalf("there is no type %s", name)
	}
	fields := spec.Type.(*ast.StructType).Fields.List
	for _, f := range fields {
		if f.Tag == nil || len(f.Names) != 1 {
			continue
		}
		tag, _ := strconv.Unquote(f.Tag.Value)
		parts := strings.Split(reflect.StructTag(tag).Get(key), ",")
		if parts[0] == "" || parts[0] == "-" {
			continue
		}
		_, pointer := f.Type.(*ast.StarExpr)
		out = append(out, member{f.Names[0].Name, parts[0], f.Type,
			pointer || slices.Contains(parts, "optional") || slices.Contains(parts, "omitempty"),
			comments(f.Doc, f.Comment)})
	}
	for i := range out {
		if explained && out[i].meaning == "" {
			t.Errorf("%s.%s has no comment: the reference takes its meaning from there", name, out[i].field)
		}
		out[i].meaning = s.said(out[i].meaning, out)
	}
	return out
}

var linked = regexp.MustCompile(`\[([\w.]+)\]`)

// said rewrites a comment for readers of a file. said replaces names of constants by their values, and names of fields
// by the names that the file has for them.
func (s *source) said(text string, among []member) string {
	text = linked.ReplaceAllStringFunc(text, func(link string) string {
		name := strings.Trim(link, "[]")
		if value, ok := s.values[name]; ok {
			return code(value)
		}
		return name
	})
	for _, m := range among {
		if m.field != strings.ToUpper(m.field) { // K and A are words of their own
			text = regexp.MustCompile(`(^|[^\w.`+"`"+`])`+m.field+`\b`).ReplaceAllString(text, "$1"+code(m.name))
		}
	}
	return markup.Replace(text)
}

// typeName returns the reference's words for a Go type, such as "list of string".
func (s *source) typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return s.typeName(e.X)
	case *ast.ArrayType:
		return "list of " + s.typeName(e.Elt)
	case *ast.MapType:
		return "object of " + s.typeName(e.Value)
	case *ast.SelectorExpr: // time.Time, json.RawMessage
		return map[string]string{"Time": "time", "RawMessage": "value"}[e.Sel.Name]
	case *ast.Ident:
		spec := s.types[e.Name]
		switch {
		case e.Name == "any":
			return "value"
		case spec == nil:
			return e.Name
		}
		if _, is := spec.Type.(*ast.StructType); is {
			return "object"
		}
		return s.typeName(spec.Type)
	}
	return "value"
}

// structOf returns the name of the package's struct type that a field's type is, points to or is a list of. structOf
// returns "" for other types.
func (s *source) structOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return s.structOf(e.X)
	case *ast.ArrayType:
		return s.structOf(e.Elt)
	case *ast.Ident:
		if spec := s.types[e.Name]; spec != nil {
			if _, is := spec.Type.(*ast.StructType); is {
				return e.Name
			}
		}
	}
	return ""
}

// choices returns the values of a type's constants, each with its meaning from the constant's comment.
func (s *source) choices(e ast.Expr) (out []string) {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	of, ok := e.(*ast.Ident)
	if !ok || s.types[of.Name] == nil {
		return nil
	}
	for _, name := range s.typed[of.Name] {
		if value, ok := s.values[name]; ok {
			out = append(out, strings.TrimSuffix(code(value)+": "+s.said(s.docs[name], nil), ": "))
		}
	}
	return out
}

// A tableVar is a table that the package declares: its name, the Go type of its rows, and its version.
type tableVar struct{ name, row, version string }

func (s *source) tables() (out []tableVar) {
	for _, v := range s.vars {
		if len(v.Values) != 1 {
			continue
		}
		lit, ok := v.Values[0].(*ast.CompositeLit)
		if !ok {
			continue
		}
		of, ok := lit.Type.(*ast.IndexExpr)
		if !ok || of.X.(*ast.Ident).Name != "Table" {
			continue
		}
		table := tableVar{row: of.Index.(*ast.Ident).Name}
		for _, e := range lit.Elts {
			pair := e.(*ast.KeyValueExpr)
			value, _ := pair.Value.(*ast.BasicLit)
			switch pair.Key.(*ast.Ident).Name {
			case "Name":
				table.name, _ = strconv.Unquote(value.Value)
			case "Version":
				table.version = value.Value
			}
		}
		out = append(out, table)
	}
	slices.SortFunc(out, func(a, b tableVar) int { return strings.Compare(a.name, b.name) })
	return out
}

// keysOf returns the keys of the YAML mapping that a function of the package reads. The comment above a key in the
// function is its meaning.
func (s *source) keysOf(t *testing.T, reader string) (out []member) {
	t.Helper()
	for _, file := range s.files {
		above := ast.NewCommentMap(s.set, file, file.Comments)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name != reader {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				pair, ok := n.(*ast.KeyValueExpr)
				if !ok {
					return true
				}
				if key, ok := pair.Key.(*ast.BasicLit); ok && key.Kind == token.STRING {
					name, _ := strconv.Unquote(key.Value)
					meaning := comments(above[pair]...)
					if meaning == "" {
						t.Errorf("the key %s has no comment: the reference takes its meaning from there", name)
					}
					out = append(out, member{name: name, meaning: markup.Replace(meaning)})
				}
				return true
			})
		}
	}
	if len(out) == 0 {
		t.Errorf("%s reads no keys", reader)
	}
	return out
}
