package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/report/paper"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/screen"
)

// parses checks that dpsight accepts a command line, without running it.
func parses(t *testing.T, line string) {
	t.Helper()
	var c cli
	parser, err := newParser(&c, t.Output(), t.Output(), func(int) { t.Errorf("%s: it only prints help", line) })
	if err != nil {
		t.Fatal(err)
	}
	args := words(line)
	ctx, err := parser.Parse(args[1:])
	if err != nil {
		t.Errorf("%s: %v", line, err)
		return
	}
	if ctx.Selected().Name == "collect" {
		if err := c.Collect.check(c.Collect.Values()); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// words splits a line as a shell does, with quotes, up to a comment, a pipe or a redirection.
func words(line string) []string {
	var out []string
	var word strings.Builder
	var quote rune
	open := false
	end := func() {
		if open {
			out = append(out, word.String())
		}
		word.Reset()
		open = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, open = r, true
		case r == ' ' || r == '\t':
			end()
		case strings.ContainsRune("|>;&", r), r == '#' && !open:
			end()
			return out
		default:
			word.WriteRune(r)
			open = true
		}
	}
	end()
	return out
}

// examplesExist checks that each path below examples/ in a command line exists.
func examplesExist(t *testing.T, line string) {
	t.Helper()
	for _, word := range words(line) {
		if _, path, found := strings.Cut(word, "examples/"); found {
			if _, err := os.Stat(filepath.Join("..", "..", "examples", path)); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// fits80 checks that lines fit on a terminal of 80 columns. Only a line of a single word, such as a path, may be
// longer.
func fits80(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if screen.Width(line) > 80 && strings.ContainsAny(strings.TrimSpace(line), " ") {
			t.Errorf("%s: %d columns: %s", what, screen.Width(line), line)
		}
	}
}

// The help of every subcommand has an example, and each example is a valid command.
func TestExamplesOfHelp(t *testing.T) {
	var c cli
	parser, err := newParser(&c, t.Output(), t.Output(), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	leaves := 0
	for _, of := range [][]string{{"--help"}, {"analyze", "--help"}} {
		fits80(t, strings.Join(of, " "), must(t, "", of...).stdout)
	}
	err = kong.Visit(parser.Model, func(v kong.Visitable, next kong.Next) error {
		n, ok := v.(*kong.Node)
		if !ok || n.Type != kong.CommandNode || len(n.Children) > 0 || n.Hidden { // short forms have the same help
			return next(nil)
		}
		leaves++
		name := "dpsight"
		for at := n; at.Type == kong.CommandNode; at = at.Parent {
			name = strings.Replace(name, "dpsight", "dpsight "+at.Name, 1)
		}
		examples := 0
		for line := range strings.Lines(strings.ReplaceAll(n.Detail, "\\\n", " ")) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "dpsight ") {
				parses(t, line)
				examplesExist(t, line)
				if strings.HasPrefix(line, name) || strings.HasPrefix(line, "dpsight "+n.Name+" ") { // without "analyze"
					examples++
				}
			}
		}
		if examples == 0 {
			t.Errorf("%s --help has no worked example", name)
		}
		r := dpsight(t, t.TempDir(), append(strings.Fields(name)[1:], "--help")...)
		if r.code != exitDone || r.stderr != "" || !strings.Contains(r.stdout, "Examples:\n") {
			t.Errorf("%s --help: exit code %d\n%s%s", name, r.code, r.stdout, r.stderr)
		}
		fits80(t, name+" --help", r.stdout)
		return next(nil)
	})
	if err != nil || leaves < 9 {
		t.Errorf("%d subcommands, %v", leaves, err)
	}
}

// Each text in help/options.txt belongs to an option or a command with that name. An option without a text is already
// an error when the command line's grammar is made.
func TestOptionTexts(t *testing.T) {
	var c cli
	parser, err := newParser(&c, t.Output(), t.Output(), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	err = kong.Visit(parser.Model, func(v kong.Visitable, next kong.Next) error {
		name, tag := "", ""
		switch v := v.(type) {
		case *kong.Node:
			name, tag = v.Name, v.Tag.Help
		case *kong.Value:
			name, tag = v.Name, v.OrigHelp
		}
		if m := optionText.FindStringSubmatch(tag); m != nil {
			used[m[1]] = true
			if !strings.HasSuffix("_"+m[1], "_"+strings.ReplaceAll(name, "-", "_")) {
				t.Errorf("the text of %s has the name %s", name, m[1])
			}
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(help("options")) {
		line = strings.TrimRight(line, "\n")
		if line != "" && !strings.HasPrefix(line, "  ") {
			names = append(names, line)
		}
		if screen.Width(line) > 100 {
			t.Errorf("%d columns: %s", screen.Width(line), line)
		}
	}
	if want := slices.Sorted(maps.Keys(used)); !slices.Equal(names, want) {
		t.Errorf("options.txt has, in this order,\n%q, and the tags name\n%q", names, want)
	}
}

var optionText = regexp.MustCompile(`^\$\{(\w+)\}$`)

// The commands, suites and configurations that documents show are valid.
func TestCommandsOfDocuments(t *testing.T) {
	suites := 0
	for _, name := range documents(t) {
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range shown(string(text)) {
				parses(t, line)
			}
			for _, block := range yamlBlock.FindAllSubmatch(text, -1) {
				if bytes.HasPrefix(block[1], []byte("check:")) {
					path := filepath.Join(t.TempDir(), schemas.ConfigFile)
					if err := os.WriteFile(path, block[1], 0o600); err != nil {
						t.Fatal(err)
					}
					if _, err := schemas.FindConfig(path); err != nil {
						t.Error(err)
					}
					continue
				}
				if bytes.HasPrefix(block[1], []byte("rows:")) {
					path := filepath.Join(t.TempDir(), "paper.yaml")
					if err := os.WriteFile(path, block[1], 0o600); err != nil {
						t.Fatal(err)
					}
					if _, err := paper.ReadConfig(path, "", false); err != nil {
						t.Error(err)
					}
					continue
				}
				suites++
				if _, err := suite.Parse(filepath.Base(name), block[1]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if suites < 2 {
		t.Errorf("%d suites", suites)
	}
}

// documents returns all pages that people write: those below docs except the reference, the READMEs and CONTRIBUTING.
func documents(t *testing.T) (pages []string) {
	t.Helper()
	err := filepath.WalkDir(docs, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path == filepath.Clean(referenceDir):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			pages = append(pages, path)
		}
		return nil
	})
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, name := range []string{"README.md", "README.zh.md", "CONTRIBUTING.md"} {
		pages = append(pages, filepath.Join("..", "..", name))
	}
	return pages
}

// pythonBlock matches a block of Python code, also one that is indented because it is in a list.
var pythonBlock = regexp.MustCompile("(?ms)^( *)```python[^\n]*\n(.*?)^ *```$")

// The Python code that documents show is valid.
func TestPythonOfDocuments(t *testing.T) {
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: there is no python3")
	}
	blocks := map[string]string{}
	for _, name := range documents(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range pythonBlock.FindAllSubmatch(text, -1) {
			blocks[fmt.Sprintf("%s, block %d", filepath.ToSlash(name), i+1)] =
				strings.ReplaceAll("\n"+string(m[2]), "\n"+string(m[1]), "\n")
		}
	}
	if len(blocks) < 10 {
		t.Errorf("only %d blocks of Python", len(blocks))
	}
	given, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	// A notebook's cell may contain await, and lines for IPython.
	cmd := exec.Command(interpreter, "-c", `
import ast, json, re, sys
for name, text in json.load(sys.stdin).items():
    try:
        compile(re.sub(r"(?m)^( *)%.*$", r"\1pass", text), name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        print(f"{name}: {error}")
`)
	cmd.Stdin = bytes.NewReader(given)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// shown returns the lines in a document's code blocks that call dpsight, with continued lines joined.
func shown(text string) []string {
	var out []string
	inside := false
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			inside = !inside
			continue
		}
		line = strings.TrimPrefix(strings.TrimPrefix(line, "$ "), "./")
		// in Python code, dpsight may be a variable
		if inside && strings.HasPrefix(line, "dpsight ") && !strings.HasPrefix(line, "dpsight = ") {
			out = append(out, line)
		}
	}
	return out
}

func TestShown(t *testing.T) {
	got := shown("dpsight not in a block\n```\n$ ./dpsight runs \\\n  --store x | head   # all\nmake demo\ndpsight = " +
		"MagicMock()\n```\ndpsight neither\n")
	if len(got) != 1 || strings.Join(words(got[0]), "|") != "dpsight|runs|--store|x" {
		t.Errorf("%q", got)
	}
}
