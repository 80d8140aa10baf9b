package main

import (
	"bytes"
	"maps"
	"os"
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

// parses checks that a command line is one that dpsight takes, without running it.
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

// words splits as a shell does: up to a comment, a pipe or a redirection, with quotes.
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

// examplesExist checks that what a command line names in examples is there.
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

// fits80 checks that lines fit on a terminal of 80 columns. A longer word, such as a path, must be on a line of its
// own.
func fits80(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if screen.Width(line) > 80 && strings.ContainsAny(strings.TrimSpace(line), " ") {
			t.Errorf("%s: %d columns: %s", what, screen.Width(line), line)
		}
	}
}

// Every subcommand shows how it is used, and what it shows works.
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
		if !ok || n.Type != kong.CommandNode || len(n.Children) > 0 || n.Hidden { // a short form has the same help
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
				if strings.HasPrefix(line, name) {
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

// Each text of help/options.txt belongs to an option, or a command, of its name. A name that it lacks is an error when
// the grammar is made.
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
	pages, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil || len(pages) < 4 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range guides(t) {
		pages = append(pages, filepath.Join(docs, page), filepath.Join(docs, "zh", page))
	}
	suites := 0
	for _, name := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		t.Run(filepath.Base(name), func(t *testing.T) {
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

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// shown lists the lines of a document's code blocks that call dpsight, continued lines joined.
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
		// Python has that name too
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
