package dpsight_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the highest number of characters in a line.
const maxColumns = 120

// linesOf lists the ends of file names. The lines of a file with such a name may have at most maxColumns characters.
var linesOf = map[string]bool{
	".go": true, ".py": true, ".c": true, ".h": true, ".cpp": true, ".md": true, ".sh": true, ".yaml": true, ".yml": true,
	"Makefile": true, "run": true, // "run" is .ci/run
}

// generated lists files that a program writes. scripts/test-cuda.sh writes docs/test-cuda.md.
var generated = map[string]bool{"docs/test-cuda.md": true}

// TestLinesAreShort limits the lines of sources and documents to maxColumns. Lines that cannot be broken may be longer.
// In any file this is a line with a URL. In Markdown it is a table row, a picture, a link on its own line, and what a
// generator writes between comments.
func TestLinesAreShort(t *testing.T) {
	looked := map[string]int{}
	for _, name := range tracked(t) {
		name = filepath.ToSlash(name)
		kind := path.Ext(name)
		if kind == "" {
			kind = path.Base(name)
		}
		if !linesOf[kind] || generated[name] || strings.Contains(name, "/testdata/") {
			continue
		}
		looked[kind]++
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range longLines(string(text), kind) {
			t.Errorf("%s:%d has %d columns, over %d", name, i, utf8.RuneCountInString(line), maxColumns)
		}
	}
	for kind := range linesOf {
		if looked[kind] == 0 {
			t.Errorf("no file ends in %s: the test looks in the wrong place", kind)
		}
	}
}

var url = regexp.MustCompile(`https?://`)

// longLines returns the lines of a text that are too long and could be broken, by their line numbers.
func longLines(text, kind string) map[int]string {
	out := map[int]string{}
	markdown, generated := kind == ".md", false
	i := 0
	for line := range strings.Lines(text) {
		i++
		line = strings.TrimRight(line, "\n")
		if markdown && strings.HasPrefix(line, "<!-- ") {
			generated = line != "<!-- end -->" && !strings.HasPrefix(line, "<!-- figure ")
			continue
		}
		words := strings.Fields(strings.TrimLeft(line, " \t#*-"))
		switch {
		case utf8.RuneCountInString(line) <= maxColumns, generated, url.MatchString(line):
		case markdown && (len(words) < 2 || words[0][0] == '|' || strings.HasPrefix(line, "![")):
		default:
			out[i] = line
		}
	}
	return out
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("word ", 30)
	for _, c := range []struct {
		text, kind string
		want       int
	}{
		{"short\n" + long, ".go", 1}, {"| " + long + "|\n", ".md", 0}, {"| " + long + "|\n", ".py", 1},
		{"<!-- a command -->\n" + long + "\n<!-- end -->\n" + long, ".md", 1}, {long + "https://example.org", ".md", 0},
		{"![" + long + "](x.png)", ".md", 0}, {"// " + strings.Repeat("x", 130), ".go", 1},
		{"  [" + strings.Repeat("x", 130) + "](x.md)", ".md", 0},
		{strings.Repeat("é", 60) + " " + strings.Repeat("é", 59), ".go", 0},
		{"\tField int `help:\"" + long + "\"`", ".go", 1}, {"x := `\n" + long + "\n`\n// " + long, ".go", 2},
	} {
		if got := longLines(c.text, c.kind); len(got) != c.want {
			t.Errorf("%s: %q: %d long lines, want %d", c.kind, c.text, len(got), c.want)
		}
	}
}
